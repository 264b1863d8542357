"""The package as it would be released: its archives install and run without the repository, and its types reach users."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = "import numpy as np, kernling as kl; print(kl.__file__, kl.AVMClassifier(delta=1.0).fit(np.eye(4), [0, 1, 0, 1]).t_)"


def run(*command, **options) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> dict[str, Path]:
    """The source archive, and the wheel that is built from it."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("archives")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return {path.suffix: path for path in folder.iterdir()}


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".gz", ".whl"])
def test_archives_install_and_run_without_the_repository(suffix, archives, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", archives[suffix])
    where, events = run(python, "-c", PROGRAM, cwd=tmp_path).split()
    assert where.startswith(str(tmp_path))
    assert events == "4"
    assert run(tmp_path / "venv" / "bin" / "kernling", "--version", cwd=tmp_path).startswith("kernling 0.")
    assert "avm/table4" in run(tmp_path / "venv" / "bin" / "kernling", "papers", cwd=tmp_path)


@pytest.mark.long
def test_types_reach_users(tmp_path):
    """mypy believes a package in site-packages only if it has py.typed; scikit-learn's methods are typed nowhere."""
    venv.create(tmp_path / "venv", symlinks=True)
    packages = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    packages.joinpath("all.pth").write_text(f"{ROOT / 'src'}\n" + "\n".join(p for p in sys.path if p.endswith("site-packages")))
    python = tmp_path / "venv" / "bin" / "python"
    project = ROOT / "tests" / "typed_project"
    options = ["--strict", "--allow-untyped-calls", "--python-executable", python, "--cache-dir", tmp_path / "cache"]
    said = run(sys.executable, "-m", "mypy", *options, "--config-file=", "uses.py", cwd=project)
    assert said.startswith("Success")
