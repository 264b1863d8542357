"""The two backends give the same; the fast one says what it leaves to Numba, and is used only if it works."""

import json

import numpy as np
import pytest

from kernling import registry

SAMPLE = ("fogd",)  # compiles few functions: Numba alone takes half a minute for most methods
FIT = """
import json, sys
import numpy as np
from kernling import registry
from kernling.compiler.backends import fast_backend

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
found = {}
for cls in registry.find(sys.argv[1]).classes():
    y = None if cls.task == "one-class" else X[:, 0] * X[:, 1] if cls.task == "regression" else X[:, 0] * X[:, 1] > 0
    model = cls(**({"random_state": 0} if "random_state" in cls().get_params() else {}))
    model.fit(X, y)
    score = next(getattr(model, name) for name in ("decision_function", "predict", "transform") if hasattr(model, name))
    scores = score(X)
    found[cls.__name__] = np.asarray(scores, float).ravel().tolist()
print(json.dumps([fast_backend() is None, found]))
"""


@pytest.mark.parametrize(
    "method", [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.long) for name in registry.METHODS]
)
def test_both_backends_give_the_same(method, run_python):
    """By default LLVM optimises little of what Numba compiles, which takes two thirds of the time."""
    level = {"NUMBA_OPT": "0"} if method in SAMPLE else {}
    (alone, found), (fast, expected) = (
        (only_numba, scores)
        for backend, options in (("numba", level), ("fast", {}))
        for only_numba, scores in [json.loads(run_python(FIT, method, KERNLING_COMPILER=backend, **options))]
    )
    assert alone
    assert not fast
    for name, scores in expected.items():
        np.testing.assert_allclose(found[name], scores, rtol=1e-6, atol=1e-8, err_msg=name)  # sums in another order


ALLOCATES = """
import numpy as np
from kernling.compiler import inner, jit

@inner
def twice(x):
    kept = np.empty(2)
    kept[0] = kept[1] = x
    return kept[0] + kept[1]

@jit
def called(x):
    return twice(x)

print(called(2.0))
"""


def test_inner_functions_may_allocate(run_python, tmp_path):
    (tmp_path / "program.py").write_text(ALLOCATES)
    for backend in ("numba", "fast"):
        program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import program"
        assert run_python(program, KERNLING_COMPILER=backend, KERNLING_CACHE=str(tmp_path / "cache")) == "4.0\n"


def test_an_unknown_backend_is_an_error(run_python):
    program = "try:\n    import kernling.methods.avm\nexcept ValueError as error:\n    print(error)"
    told = run_python(program, KERNLING_COMPILER="gcc")
    assert told == "KERNLING_COMPILER is 'gcc': set it to fast or numba, or do not set it\n"


ONE = """
import sys, warnings
import numpy as np
{damage}
from kernling.compiler import backends
from kernling.core.limits import row_within

checked = []
check = backends._check
backends._check = lambda compilers: (checked.append(True), check(compilers))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    right = row_within(np.eye(3), -1.0, 1.0), row_within(np.eye(2, dtype=np.float32), -1.0, 0.5)
print(right, len(checked), backends.fast_backend() is not None, len(caught), *(one.message for one in caught))
"""
WRONG = """
from kernling.compiler.fast_backend.arithmetic import Arithmetic
Arithmetic.absolute = lambda self, value: value
"""
WITHOUT_FRONT_END = 'sys.modules["kernling.compiler.fast_backend.ast_to_llvm"] = None  # to import it fails'
WITHOUT_PRIVATE_PARTS = 'sys.modules["kernling.compiler.fast_backend.link_once"] = None  # as if Numba had moved what it needs'


def test_the_canary_is_compiled_once_for_each_cache(run_python, tmp_path):
    program = ONE.format(damage="")
    assert run_python(program, KERNLING_CACHE=str(tmp_path)) == "(True, False) 1 True 0\n"
    for path in tmp_path.rglob("*row_within*"):
        path.unlink()
    assert run_python(program, KERNLING_CACHE=str(tmp_path)) == "(True, False) 0 True 0\n"


@pytest.mark.parametrize(
    ("damage", "reason", "checks"),
    [
        (WRONG, "a small program returned", 1),
        (WITHOUT_FRONT_END, "import of kernling.compiler.fast_backend.ast_to_llvm halted", 1),
        (WITHOUT_PRIVATE_PARTS, "link_once", 0),
    ],
)
def test_numba_compiles_alone_if_the_fast_backend_does_not_work(damage, reason, checks, run_python, tmp_path):
    told = run_python(ONE.format(damage=damage), KERNLING_CACHE=str(tmp_path))
    assert told.startswith(f"(True, False) {checks} False 1 the fast compiler does not work here")
    assert reason in told


FELL_BACK = """
import json, logging, sys
import numpy as np
from kernling import registry
from kernling.compiler import compiling

logging.basicConfig(stream=sys.stderr)
logging.getLogger("kernling.compiler").setLevel(logging.DEBUG)
told = []
logging.getLogger("kernling.compiler").addHandler(logger := logging.Handler())
logger.emit = lambda record: told.append(record.getMessage())
X = np.random.default_rng(0).normal(size=(50, 3))
for name in sys.argv[1].split():
    model = registry.find(name).classes()[0]()
    model.fit(X, X[:, 0] > 0).predict(X)
    model.learn_one(X[0], True).predict_one(X[0])
print(json.dumps([sorted(compiling.fallbacks), compiling.functions, told]))
"""


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        ("avm spa", []),
        ("polk krls auto", ["_cosines_and_sines"]),
        ("dualsvrg aogd", ["_cosines_and_sines"]),
    ],
)
@pytest.mark.long
def test_what_the_main_methods_leave_to_numba(methods, expected, run_python, tmp_path):
    fallbacks, functions, told = json.loads(run_python(FELL_BACK, methods, KERNLING_CACHE=str(tmp_path)))
    assert fallbacks == expected
    assert functions > 20, "an empty cache"
    assert [message.split(" is compiled by Numba: ")[0] for message in told] == expected


COSINE = """
import json, logging
import numpy as np
from kernling.compiler import compiling
from kernling.core import fourier

with_reason = []
logging.getLogger("kernling.compiler").setLevel(logging.DEBUG)
logging.getLogger("kernling.compiler").addHandler(logger := logging.Handler())
logger.emit = lambda record: with_reason.append(record.getMessage())
table = np.zeros((2, 3))
from numba import typeof
fourier._cosines_and_sines.overload(tuple(map(typeof, (table, np.zeros(2), np.zeros(3), np.zeros((4, 3))))))
print(json.dumps([compiling.fallbacks, with_reason]))
"""


def test_a_fallback_is_logged_and_counted(run_python, tmp_path):
    fallbacks, told = json.loads(run_python(COSINE, KERNLING_CACHE=str(tmp_path)))
    assert list(fallbacks) == ["_cosines_and_sines"]
    assert "sincos" in fallbacks["_cosines_and_sines"]
    assert told == [f"_cosines_and_sines is compiled by Numba: {fallbacks['_cosines_and_sines']}"]
