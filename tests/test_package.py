"""The package from outside: its version, its public names, and what importing it costs."""

import re
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

import kernling
import stubs
from kernling import baselines, registry


def loaded_after(statement):
    """The top-level modules that a fresh interpreter holds after a statement."""
    code = f"import sys\n{statement}\nprint(*(name for name in sys.modules if '.' not in name))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_children_import_the_code_under_test(run_python):
    assert Path(run_python("import kernling; print(kernling.__file__)").strip()) == Path(kernling.__file__)


def test_version_is_the_installed_one():
    assert kernling.__version__ == version("kernling")


@pytest.mark.parametrize("name", kernling.__all__)
def test_public_names_are_there(name):
    thing = getattr(kernling, name)
    assert thing.__name__ == name
    assert name in dir(kernling)


def test_every_registered_estimator_is_public():
    for entry in registry.METHODS.values():
        home = kernling if entry.is_main else baselines
        assert all(getattr(home, cls.__name__) is cls for cls in entry.classes())


@pytest.mark.parametrize("path", stubs.stubs(), ids=lambda path: path.name)
def test_type_checkers_see_the_public_names(path):
    assert path.read_text() == stubs.stubs()[path], "run python tests/stubs.py"


@pytest.mark.parametrize("name", registry.METHODS)
def test_every_method_has_a_title_and_says_whom_to_cite(name):
    learner = registry.find(name).learner()
    assert learner.name == name
    assert learner.title
    assert not learner.title.endswith(".")
    assert re.match(r"([A-Z]\S*\. )+[A-Z].*: .+ \((19|20)\d\d\)", learner.citation), learner.citation


@pytest.mark.long  # Python compiles all libraries anew
def test_without_docstrings_there_is_nothing_to_cite(run_python):
    program = "from kernling import registry; print(repr(registry.find('fogd').learner().citation))"
    assert run_python(program, PYTHONOPTIMIZE="2", NUMBA_DISABLE_JIT="1").strip() == "''"


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="NoSuchThing"):
        kernling.NoSuchThing  # noqa: B018


def test_importing_is_light():
    assert not {"numba", "sklearn", "scipy", "numpy"} & loaded_after("import kernling")
    assert not {"numba", "sklearn", "scipy", "numpy", "fastapi", "uvicorn"} & loaded_after("import kernling.cli.commands")


def test_types_are_announced():
    assert files("kernling").joinpath("py.typed").is_file()


@pytest.mark.parametrize("place", [0, 1], ids=["a table", "dictionaries"])
def test_programs_of_the_readme_print_what_it_says(place, tmp_path, monkeypatch, capsys):
    root = Path(__file__).parents[1]
    readme = root.joinpath("README.md").read_text()
    program, printed = (re.findall(rf"```{kind}\n(.*?)```", readme, re.DOTALL)[place] for kind in ("python", "text"))
    monkeypatch.chdir(tmp_path)
    Path("docs").symlink_to(root / "docs")
    exec(compile(program, "README.md", "exec"), {})
    assert capsys.readouterr().out == printed
