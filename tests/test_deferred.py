"""What importing and fitting leave out until it is used, and that it is there then."""

import platform
from importlib import import_module

import pytest

from kernling.deferred import HASTY, NAMES

LATE = {
    *("pandas", "narwhals", "joblib", "asyncio", "numba", "yaml", "pydoc", "subprocess"),
    *("numpy.f2py", "numpy.ma", "numpy.polynomial", "numpy.testing"),
    *("scipy.linalg", "scipy.special", "scipy.stats", "scipy.interpolate", "scipy.optimize", "scipy.io", "scipy.sparse.linalg"),
}
MODULES = "import sys; print(*sys.modules)"

USES = """
import numpy, sklearn.utils.fixes, sklearn.utils.validation, sklearn.utils._array_api, numba.core.config
assert sklearn.utils.fixes.pd.DataFrame({'a': [1]}).a[0] == 1
assert sklearn.utils._array_api.special.expit(0.0) == 0.5
assert sklearn.utils.validation.check_array([[1]]).shape == (1, 1)
assert sklearn.utils.fixes._mode(numpy.ones(3)).mode == 1
assert numpy.f2py.__path__ and numpy.testing.assert_equal and numpy.ma.masked_array([1], [True]).sum() is numpy.ma.masked
assert numpy.polynomial.Polynomial([1, 2])(3) == 7 and numpy.ctypeslib.as_array
assert sklearn.utils._array_api.np_compat.ma.masked is numpy.ma.masked
assert sklearn.utils.validation.joblib.hash(1) and "joblib" in sys.modules
assert sklearn.utils.fixes._sparse_linalg_cg(numpy.eye(2), numpy.ones(2))[1] == 0
assert sklearn.utils.fixes.laplacian(numpy.eye(2)).shape == (2, 2)
assert sklearn.utils.parallel.Parallel and sklearn.utils.extmath.linalg.det(numpy.eye(2)) == 1.0
import scipy.linalg.cython_blas, scipy._lib._docscrape, scipy._lib._testutils
assert scipy.linalg.cython_blas.__pyx_capi__ and scipy.sparse.linalg.norm
assert scipy._lib._docscrape.FunctionDoc(len)["Summary"] and scipy._lib._testutils.subprocess.run
assert not numba.core.config._HAVE_YAML or numba.core.config.yaml.safe_load("1") == 1
import pandas, scipy.stats.distributions, scipy.special
assert pandas.DataFrame and scipy.stats.norm and scipy.special.expit
"""

FIT = """
import numpy as np
X = np.random.default_rng(0).normal(size=(200, 3))
kernling.{name}().fit(X, X[:, 0] > 0).predict(X)
"""

SCIKIT_LEARN = """
import numpy as np
from sklearn import datasets, preprocessing

X, y = datasets.load_iris(return_X_y=True)
low = datasets.make_low_rank_matrix(5, 4, effective_rank=2, random_state=0)
light = "scipy.stats" in sys.modules
print(light, preprocessing.StandardScaler().fit_transform(X).sum(), low.sum())
for step in (
    preprocessing.PolynomialFeatures(2),
    preprocessing.PowerTransformer(),
    preprocessing.PowerTransformer("box-cox"),
    preprocessing.QuantileTransformer(n_quantiles=20, output_distribution="normal"),
    preprocessing.RobustScaler(unit_variance=True),
    preprocessing.SplineTransformer(sparse_output=True),
):
    found = step.fit_transform(X)
    print(found.sum(), step.inverse_transform(found).sum() if hasattr(step, "inverse_transform") else "")
"""

WAITS = """
import os, time
import numpy, threadpoolctl
time.sleep(0.2)
before = time.process_time() - time.thread_time()
import {module}
time.sleep(0.2)
waited = time.process_time() - time.thread_time() - before
blas = [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["internal_api"] == "openblas"]
print(waited, max(blas) - 1, len(blas), os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
"""


@pytest.fixture
def loaded_after(run_python):
    """The modules among those that are imported late which a fresh interpreter holds after a program."""
    return lambda program: set(run_python(f"import sys\n{program}\n{MODULES}").split()) & LATE


@pytest.mark.parametrize("name", HASTY)
def test_hasty_modules_are_where_they_were(name):
    assert import_module(name)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_where_they_were(name):
    assert all(hasattr(import_module(name), one) for one in NAMES[name])


def test_modules_that_are_not_installed_are_not_there(loaded_after):
    hidden = "from importlib.machinery import PathFinder; find = PathFinder.find_spec\n"
    hidden += "PathFinder.find_spec = lambda name, *more: None if name in ('pandas', 'yaml') else find(name, *more)\n"
    use = "import kernling; kernling.AVMClassifier; from numba.core import config; assert not config._HAVE_YAML"
    assert not loaded_after(hidden + use) & {"pandas", "yaml"}


def test_estimators_come_without_what_they_rarely_use(loaded_after):
    statement = "import kernling; kernling.AVMClassifier"
    assert loaded_after(statement) == set()
    assert loaded_after(f"{statement}\n{USES}") >= {"pandas", "subprocess", "pydoc"}
    assert "pandas" in loaded_after(f"import pandas; {statement}")


@pytest.mark.parametrize("name", ["AutoClassifier", "AVMClassifier"])
def test_fitting_imports_no_more(name, loaded_after):
    program = f"import kernling\n{FIT.format(name=name)}"
    loaded_after(program)  # compiles
    assert loaded_after(program) == set()


def test_preprocessing_is_the_same_without_statistics_until_they_are_used(run_python):
    plain = run_python(f"import sys\n{SCIKIT_LEARN}").split()
    light = run_python(f"import sys, kernling\n{SCIKIT_LEARN}").split()
    assert (plain[0], light[0]) == ("True", "False")
    assert plain[1:] == light[1:]


def test_modules_keep_their_loaders(run_python):
    program = (
        "import kernling, sklearn, sklearn.datasets as d; print(*(type(m.__spec__.loader).__name__ for m in (sklearn, d)))"
    )
    assert run_python(program).split() == ["SourceFileLoader"] * 2


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="elsewhere, ticks last longer")
def test_threads_of_blas_soon_sleep(run_python, monkeypatch):
    """Those of SciPy's copy: there are as many as without kernling, and the user's setting is kept."""
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)  # which commands set
    several = {"OPENBLAS_NUM_THREADS": "2"}
    waited, *threads, setting = run_python(WAITS.format(module="kernling.core.blas"), **several).split()
    assert float(waited) <= 0.06 * int(threads[0])  # by default, 0.1
    assert setting == "None"
    usual = run_python(WAITS.format(module="scipy.linalg"), OPENBLAS_THREAD_TIMEOUT="20", **several).split()
    own = run_python(WAITS.format(module="kernling.core.blas"), OPENBLAS_THREAD_TIMEOUT="20", **several).split()
    assert own[1:] == usual[1:] == [*threads, "20"]
