"""Versions of Numba: the error for those that were not tested, and the same range everywhere."""

import tomllib
from pathlib import Path

import pytest

from kernling.compiler.versions import TESTED, check_version

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
OTHER = """
import numpy as np
import numba, llvmlite
{library}.__version__ = {version!r}
import kernling
X = np.random.default_rng(0).normal(size=(50, 3))
try:
    kernling.AVMClassifier().fit(X, X[:, 0] > 0)
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("name", TESTED)
def test_the_package_declares_the_tested_range(name):
    low, high = TESTED[name]
    assert f"{name}>={low},<{high}" in tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["dependencies"]


@pytest.mark.parametrize("version", ["0.62.0", "0.65.1", "0.68.1", "0.68.1rc2", "0.68.0+7.gabc"])
def test_tested_versions_pass(version):
    check_version("numba", version)


@pytest.mark.parametrize("version", ["0.9.9", "0.61.2", "0.69.0", "0.69.0rc1", "0.100.0", "1.0.0"])
def test_other_versions_do_not(version):
    with pytest.raises(ImportError, match=r"numba>=0\.62,<0\.69"):
        check_version("numba", version)


@pytest.mark.parametrize(("library", "version"), [("numba", "0.70.0"), ("llvmlite", "0.52.0")])
def test_fitting_names_the_range(library, version, run_python, tmp_path):
    low, high = TESTED[library]
    wanted = f"{library}>={low},<{high}"
    said = run_python(OTHER.format(library=library, version=version), KERNLING_CACHE=str(tmp_path))
    assert said == f"kernling compiles with {wanted}, but {library} {version} is installed: pip install '{wanted}'\n"
