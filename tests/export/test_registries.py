"""docs/guide/registries.md does what it shows, where MLflow and skops are installed."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "registries.md"


def programs() -> dict[str, str]:
    """The program of each section."""
    _, *sections = re.split(r"^## (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    found = zip(sections[::2], sections[1::2], strict=True)
    return {name: "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)) for name, text in found}


def test_skops(tmp_path, monkeypatch):
    pytest.importorskip("skops")
    monkeypatch.chdir(tmp_path)
    exec(programs()["skops"], {})


@pytest.mark.long
def test_mlflow(tmp_path, monkeypatch):
    pytest.importorskip("skops")
    pytest.importorskip("mlflow")
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    exec(programs()["skops"], scope)
    exec(programs()["MLflow"], scope)
