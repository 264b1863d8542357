"""The documentation: what its pages run, the links between them, and examples for every public name."""

import doctest
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import kernling

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATED = ("gallery", "generated")  # made by sphinx-build
PAGES = sorted(page for page in DOCS.rglob("*.md") if not set(GENERATED) & set(page.relative_to(DOCS).parts))
MODULES = (
    "kernling",
    "kernling.baselines",
    "kernling.io",
    "kernling.tables",
    "kernling.evaluate",
    "kernling.report",
    "kernling.distributed",
    "kernling.compat",
    "kernling.export",
)
NAMES = [f"{module}.{name}" for module in MODULES for name in import_module(module).__all__]


def blocks(page: Path) -> str:
    """The Python prompts of a page, one after the other."""
    return "\n".join(re.findall(r"^```python\n(>>>.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: str(page.relative_to(DOCS)))
def test_what_a_page_shows_is_what_comes_out(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(blocks(page), {}, page.name, str(page), 0)
    failed = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed
    assert not failed, capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name):
    module, _, attribute = name.rpartition(".")
    thing = getattr(import_module(module), attribute)
    assert ">>>" in (thing.__doc__ or ""), f"{name} has no example"
    assert "\\\n" not in thing.__doc__, f"a line of {name}'s docstring ends in a backslash: one, not two, in the source"


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Links to files; sphinx-build checks those within a page and to generated ones."""
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if re.match(r"[a-z]+:", link):
            assert link.startswith("https://"), link
        elif not set(GENERATED) & set(Path(link).parts):
            assert (page.parent / link).exists(), f"{page.name} links to {link}, which does not exist"


def test_every_method_has_a_page_or_is_a_baseline():
    main = {name for name, entry in kernling.registry.METHODS.items() if entry.is_main}
    told = set(re.findall(r"\{docstring\} (\w+)", "".join(page.read_text() for page in (DOCS / "methods").glob("*.md"))))
    assert told == main


def test_all_that_is_documented_is_installed_with_the_documentation():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    own = next(one for one in extras["docs"] if one.startswith("kernling["))
    assert {"river", "dask", "plot"} <= set(own.removeprefix("kernling[").removesuffix("]").split(","))


def test_badges_are_true():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    badge = {name: (DOCS / "_static" / f"badge-{name}.svg").read_text() for name in ("python", "licence")}
    assert f"python: {project['requires-python'].removeprefix('>=')} or later" in badge["python"]
    assert f"licence: {project['license']}" in badge["licence"]


def test_citation_is_of_this_version():
    assert f"version: {kernling.__version__}\n" in (ROOT / "CITATION.cff").read_text()
