"""Private parts of other libraries are those that one table lists."""

import ast
from pathlib import Path

import pytest

import kernling
from kernling.compiler import private_parts
from kernling.compiler.private_parts import PARTS, check

PACKAGE = Path(kernling.__file__).parent
PUBLIC = {"numba", "numba.extending", "llvmlite", "llvmlite.ir", "llvmlite.binding"}


def trees(folder):
    for path in sorted(folder.rglob("*.py")):
        if path.name != "private_parts.py":
            yield path, ast.parse(path.read_text())


def imported(tree):
    """Yield the names that are imported from private modules of Numba and llvmlite."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_private(node.module or "") and node.level == 0:
            yield from (f"{node.module}:{alias.name}" for alias in node.names)
        if isinstance(node, ast.Import):
            yield from (f"{alias.name}:" for alias in node.names if is_private(alias.name))


def is_private(module):
    return module.split(".")[0] in ("numba", "llvmlite") and module not in PUBLIC


def private_attributes(tree):
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    }


def defined(tree):
    """Return the private names that are defined here: methods, functions, variables and attributes of self."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for one in (inner for target in targets for inner in ast.walk(target)):
                if isinstance(one, ast.Name):
                    found.add(one.id)
                if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "self":
                    found.add(one.attr)
    return found


def test_imports_of_private_modules_are_listed():
    names = [name.partition(":") for parts in PARTS.values() for name in parts.names]
    listed = {f"{module}:{path.split('.')[0]}" for module, _, path in names}
    for path, tree in trees(PACKAGE / "compiler"):
        assert set(imported(tree)) <= listed, path.name


def test_private_attributes_are_listed():
    known = set.union(*(defined(tree) for _, tree in trees(PACKAGE / "compiler"))) | {"_fields", "_replace", "_fields_"}
    listed = {name for parts in PARTS.values() for name in parts.attributes}
    listed |= {part for parts in PARTS.values() for name in parts.names for part in name.partition(":")[2].split(".")}
    for path, tree in trees(PACKAGE / "compiler"):
        assert private_attributes(tree) <= known | listed, path.name
    used = set.union(*(private_attributes(tree) | defined(tree) for _, tree in trees(PACKAGE / "compiler")))
    assert {name for parts in PARTS.values() for name in parts.attributes} <= used, "a part that is no longer used"


def test_the_rest_of_the_package_uses_neither_numba_nor_llvmlite():
    for path, tree in trees(PACKAGE):
        if "compiler" not in path.relative_to(PACKAGE).parts:
            imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
            names = [getattr(node, "module", None) or "" for node in imports] + [
                one.name for node in imports for one in node.names
            ]
            assert not {name.split(".")[0] for name in names} & {"numba", "llvmlite"}, path


@pytest.mark.parametrize("purpose", PARTS)
def test_all_parts_are_there(purpose):
    check(purpose)


def test_a_part_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(private_parts.PARTS, "cache", PARTS["cache"]._replace(names=("numba.core.caching:Nothing.here",)))
    with pytest.raises(ImportError, match=r"no numba\.core\.caching\.Nothing\.here"):
        check("cache")
