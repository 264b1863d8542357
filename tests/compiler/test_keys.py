"""Keys of the compile cache: an edit of anything that is compiled in gives what an empty cache gives."""

import gc
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import kernling
from kernling.compiler import jit
from kernling.compiler.keys import reached

KEYS = """
from kernling.compiler.keys import shared_hash
from kernling.methods import avm
from kernling.tables.fill import fill_rows

print(shared_hash(), avm.step.stamp, fill_rows.stamp)
"""
ALL = """
import dis, gc, importlib, json, pkgutil
import kernling
from kernling.compiler.decorators import Compiled

ROOMS = ("core", "driver", "components", "methods", "baselines", "io", "tables", "estimators", "merging")
for module in pkgutil.walk_packages(kernling.__path__, "kernling."):
    if module.name.split(".")[1] in ROOMS:
        importlib.import_module(module.name)
everything = [one for one in gc.get_objects() if isinstance(one, Compiled)]


def codes(code):
    return [code, *(inner for one in code.co_consts if hasattr(one, "co_code") for inner in codes(one))]


def read_by(function):
    instructions = (one for code in codes(function.__code__) for one in dis.get_instructions(code))
    return {one.argval for one in instructions if one.opname == "LOAD_GLOBAL"} & function.__globals__.keys()
"""


def copy_to(folder):
    """Copy the package; return where it is."""
    package = folder / "kernling"
    shutil.copytree(Path(kernling.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def edited(package, path, old, new):
    """Edit a file of a copy, or append to it; return what it was."""
    before = (package / path).read_text()
    assert old in before
    (package / path).write_text(before.replace(old, new) if old else before + new)
    return before


@pytest.fixture
def copied(run_python, tmp_path):
    """A function that edits a copy of the package and runs a program with it."""
    package = copy_to(tmp_path / "copy")

    def run(program, *edits, cache="cache"):
        before = {edit[0]: edited(package, *edit) for edit in edits}
        try:
            found = {"PYTHONPATH": os.pathsep.join([str(package.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])}
            return run_python(program, **found, KERNLING_CACHE=str(tmp_path / cache), PYTHONDONTWRITEBYTECODE="1")
        finally:
            for path, text in before.items():
                (package / path).write_text(text)

    return run


EDITS = [
    (("core/updates.py", "", "\n\n# a comment\n"), ""),
    (
        ("methods/avm.py", "if params.rule == ALWAYS else math.inf)", "if params.rule != ALWAYS else math.inf)"),
        "",
    ),  # how models merge
    (("methods/avm.py", "default=0.00001", "default=0.00002"), ""),
    (("tables/fill.py", '"""Replace NaN by', '"""Put for NaN'), ""),
    (("tables/fill.py", "FAR = 10.0", "FAR = 11.0"), "fill"),
    (("components/scaling.py", "ENOUGH = ", "ENOUGH = 1 + "), "fill"),
    (("tables/fill.py", "@jit_exact\ndef fill_rows", "from ..compiler import jit\n@jit\ndef fill_rows"), "fill"),
    (("methods/avm.py", "stats[LARGEST_Y] = max", "stats[LARGEST_Y] = min"), "avm"),
    (("core/losses.py", "return -1.0 if m < 1.0", "return -2.0 if m < 1.0"), "avm"),  # called by what a step calls
    (("compiler/decorators.py", '"error_model": "numpy"', '"error_model": "python"'), "shared avm fill"),
    (("compiler/fast_backend/values.py", "", "\n# how values are compiled\n"), "shared"),
    (("__init__.py", '__version__ = "', '__version__ = "9.'), "shared"),
]
EACH = """
import os, sys
import numpy, scipy.linalg, sklearn.base

for folder in sys.argv[2:]:  # each in a process of its own, which has imported what does not change
    sys.stdout.flush()
    if os.fork() == 0:
        sys.path.insert(0, folder)
        exec(sys.argv[1])
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.fixture(scope="module")
def keys(run_python, tmp_path_factory):
    """The keys of the package as it is, and after each edit."""
    if not hasattr(os, "fork"):
        pytest.skip("processes cannot fork here")
    folders = [tmp_path_factory.mktemp("edit") for _ in range(len(EDITS) + 1)]
    for folder, edit in zip(folders, [None, *EDITS], strict=True):
        package = copy_to(folder)
        if edit:
            edited(package, *edit[0])
    return run_python(EACH, KEYS, *map(str, folders), PYTHONDONTWRITEBYTECODE="1").splitlines()


@pytest.mark.parametrize("place", range(len(EDITS)), ids=lambda place: EDITS[place][0][0])
def test_a_key_follows_what_is_compiled_in_and_nothing_else(keys, place):
    names, changed = ("shared", "avm", "fill"), EDITS[place][1]
    found = zip(names, keys[0].split(), keys[1 + place].split(), strict=True)
    assert [name for name, before, after in found if before != after] == changed.split()


EVERY_GLOBAL = (
    ALL
    + """
import types
import numpy as np
from kernling.compiler.decorators import ENTRY


def other(value):
    if isinstance(value, Compiled):
        copy = types.FunctionType(value.py_func.__code__.replace(co_consts=(*value.py_func.__code__.co_consts, 1)),
                                  value.py_func.__globals__, value.py_func.__name__)
        return Compiled(copy, value.owner, value.kind, value.options)
    if isinstance(value, (int, float, np.generic)):
        return type(value)(-value if value else 1)
    return value + 1 if isinstance(value, np.ndarray) else None


def key(one):
    return Compiled(one.py_func, one.owner, one.kind, one.options).stamp


count, unseen = 0, []
for one in everything:
    names = one.py_func.__globals__
    before = key(one)
    for name in read_by(one.py_func):
        usual, changed = names[name], other(names[name])
        if changed is None:
            continue
        names[name] = changed
        count += 1
        if key(one) == before:
            unseen.append((one.full_name, name))
        names[name] = usual
print(json.dumps([count, unseen]))
"""
)


def test_every_global_that_compiled_code_reads_is_part_of_its_key(run_python):
    """Bytecode is read by the standard library here."""
    count, unseen = json.loads(run_python(EVERY_GLOBAL))
    assert count > 500
    assert unseen == []


CONSTANTS = (
    ALL
    + """
from kernling import registry
from kernling.compiler.keys import reached

programs = {}
methods = [f"kernling.methods.{name}" for name in registry.METHODS]
for one in sorted(everything, key=lambda one: methods.index(one.owner.__module__) if one.owner.__module__ in methods else -1):
    for inside in reached(one):
        for name in read_by(inside.py_func):
            if isinstance(inside.py_func.__globals__[name], float):
                place = inside.py_func.__globals__["__name__"], name
                programs.setdefault(place, one.owner.__module__)
                if one.owner.__module__.startswith("kernling.methods") and "methods" not in programs[place]:
                    programs[place] = one.owner.__module__
print(json.dumps([(*place, program) for place, program in sorted(programs.items())]))
"""
)
METHOD = """
import numpy as np
from kernling import registry

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4))
for cls in registry.find({name!r}).classes():
    y = None if cls.task == "one-class" else X[:, 0] * X[:, 1] if cls.task == "regression" else X[:, 0] * X[:, 1] > 0
    for dtype in (np.float64, np.float32):
        model = cls(**({{"random_state": 0}} if "random_state" in cls().get_params() else {{}}))
        model.fit(X.astype(dtype), y)
        said = getattr(model, "decision_function", model.predict)(X.astype(dtype))  # labels hardly change
        print(repr(np.abs(np.asarray(said, float)).sum()), getattr(model, "n_stored_", ""))
"""
STREAM = """
import numpy as np
from kernling.tables.fill import Fill
from kernling.tables.plain import STATISTICS, _learn

X = np.random.default_rng(0).standard_cauchy(size=(3000, 3))
table = np.zeros((len(STATISTICS), 3))
print(*Fill(3).learn(X).mean.tolist(), _learn(X[:1] * 1e30, X[:1].copy(), table, table.copy(), 5.0))
"""


def check(copied, module, name, program):
    """Check that an old cache gives the same as an empty one after a change; return whether the change can be seen."""
    path = "/".join(module.split(".")[1:]) + ".py"
    edit = path, "", f"\n\n{name} = type({name})({name} * 1.5)\n"
    usual, found = copied(program), copied(program, edit)
    assert found == copied(program, edit, cache=f"empty {module} {name}"), (module, name)
    return found != usual


def test_a_changed_constant_gives_what_an_empty_cache_gives(copied):
    assert check(copied, "kernling.tables.fill", "FAR", STREAM), "its effect can be seen"


@pytest.mark.long
def test_all_constants(copied, run_python):
    """Integers are mostly places in arrays, so code with others may not be run; their keys are checked above."""
    told = 0
    constants = json.loads(run_python(CONSTANTS))
    assert len(constants) > 50
    for module, name, reader in constants:
        method = reader.removeprefix("kernling.methods.")
        told += check(copied, module, name, STREAM if "." in method else METHOD.format(name=method))
    assert told >= 5, "too few of them have an effect that can be seen; most are limits"


def made(number):
    def function(x):
        return x + number

    return jit(function)


def test_closures_are_followed():
    one, two, again = made(1.0), made(2.0), made(1.0)
    assert one.stamp == again.stamp != two.stamp
    assert [one(1.0), two(1.0)] == [2.0, 3.0]


def test_what_a_function_refers_to_does_not_lead_to_numba():
    """River measures a model by walking to all it refers to, and fails on Numba's weak references."""
    one = made(3.0)
    assert one(1.0) == 4.0
    assert one.dispatcher.overloads
    assert not [kept for kept in gc.get_referents(vars(one)) if type(kept).__module__.startswith("numba")]


@jit
def even(n):
    return True if n == 0 else odd(n - 1)


@jit
def odd(n):
    return False if n == 0 else even(n - 1)


def test_functions_that_call_each_other_have_keys():
    assert {one.__name__ for one in reached(even)} == {"even", "odd"}
    assert even.stamp != odd.stamp


TABLE = {"a": 1}


@jit
def with_unknown(x):
    return x + len(TABLE)


def test_a_value_of_unknown_kind_stands_for_its_whole_file(monkeypatch):
    from kernling.compiler import keys

    before = with_unknown.content.text
    monkeypatch.setattr(keys, "_file_hash", lambda path: f"hash of {path}")
    after = keys.content_of(with_unknown.full_name, with_unknown.py_func, with_unknown.options).text
    assert f"TABLE: hash of {__file__}" in after
    assert "hash of" not in before


SWAPPED = """
from typing import NamedTuple
from kernling.compiler import jit

class Pair(NamedTuple):
    {first}: float
    {second}: float

@jit
def difference(pair):
    return pair.a - pair.b

print(difference(Pair(3.0, 1.0)))
"""


def test_the_order_of_fields_is_part_of_the_key(run_python, tmp_path):
    program = "import sys; sys.path.insert(0, sys.argv[1]); import pairs"
    for first, second, expected in (("a", "b", 2.0), ("b", "a", -2.0)):
        (tmp_path / "pairs.py").write_text(SWAPPED.format(first=first, second=second))
        found = run_python(program, str(tmp_path), KERNLING_CACHE=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1")
        assert float(found) == expected


EDITED_LATER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import later
if sys.argv[2] == "edit":
    Path(later.__file__).write_text(Path(later.__file__).read_text().replace("+ 1.0", "+ 2.0"))
print(later.more(1.0))
"""


def test_a_file_that_is_edited_while_a_program_runs_is_not_compiled_under_the_key_of_the_old_one(run_python, tmp_path):
    source = "from kernling.compiler import jit\n\n@jit\ndef more(x):\n    return x + 1.0\n"
    for action in ("edit", "keep"):
        (tmp_path / "later.py").write_text(source)
        found = run_python(
            EDITED_LATER, str(tmp_path), action, KERNLING_CACHE=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1"
        )
        assert float(found) == np.float64(2.0)
