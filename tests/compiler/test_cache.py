"""The disk cache: a second process compiles nothing, and an edited source never meets old machine code."""

import os
import platform
import re
import shutil
import stat

import numpy as np
import pytest

COUNT = """
import sys
import numpy as np, scipy.sparse as sparse
import kernling
from kernling.compiler import compiling

X = np.random.default_rng(0).normal(size=(200, 3))
y = (X[:, 0] > 0).astype(int)
model = kernling.AVMClassifier(approximate="bernoulli", beta=1.0, output="average", random_state=0).fit(X, y)
model.predict(X), model.predict_then_learn(sparse.csr_array(X), y)
model.learn_one(X[0], 2), model.learn_one(X[0], 0), model.predict_one(X[0]), model.score_one(X[0])
kernling.AVMRegressor(loss="l2", lam=0.5).fit(X, y).predict(sparse.csr_array(X))
kernling.kernel("cauchy")(X, X)
kernling.AutoClassifier().fit(X, y).predict(X)
print(compiling.functions, "numba" in sys.modules, model.n_stored_)
"""

COUNT_ONE = """
import sys
import numpy as np
from kernling.compiler import compiling
from kernling.core.limits import row_within

row_within(np.eye(3), -1.0, 1.0)
print(compiling.functions, "numba" in sys.modules)
"""


def test_a_second_process_compiles_nothing_and_imports_no_numba(run_python, tmp_path):
    """The first one may find much in the cache that all tests share; one with an empty cache shows that the count counts."""
    *_, points = run_python(COUNT).split()
    assert run_python(COUNT).split() == ["0", "False", points]
    assert run_python(COUNT_ONE, KERNLING_CACHE=str(tmp_path)).split() == ["1", "True"]
    assert run_python(COUNT_ONE, KERNLING_CACHE=str(tmp_path)).split() == ["0", "False"]


FIT = """
import numpy as np
from numba import njit
from numba.core import event

for count in range({others}):
    njit(lambda x: x + 1)(count)  # Numba counts them
with event.install_recorder("numba:compile") as compiled:
    import kernling

    X = np.random.default_rng(0).normal(size=(50, 3))
    kernling.SPAClassifier(random_state=0).fit(X, X[:, 0] > 0)
print(len(compiled.buffer))
"""


@pytest.mark.long
def test_entries_of_processes_that_compiled_at_the_same_time_fit_together(run_python, tmp_path):
    """A caller and its callee may be entries of different processes, in which Numba has counted different functions."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for folder, others in ((mine, 0), (theirs, 7)):
        assert int(run_python(FIT.format(others=others), KERNLING_CACHE=str(folder))) > 0
    for path in sorted(theirs.rglob("*.bin"))[::2]:
        shutil.copy2(path, mine / path.relative_to(theirs))
    assert int(run_python(FIT.format(others=0), KERNLING_CACHE=str(mine))) == 0


HITS = """
import sys
import numpy as np
from kernling.compiler import compiling
from kernling.core.limits import row_within

right = row_within(np.eye(3), -1.0, 1.0) and not row_within(np.eye(3), -1.0, 0.5)
print(right, compiling.functions == 0, "numba" not in sys.modules)
"""


@pytest.fixture(scope="module")
def one_entry(run_python, tmp_path_factory):
    """A compile cache with one entry."""
    cache = tmp_path_factory.mktemp("entry") / "cache"
    assert run_python(HITS, KERNLING_CACHE=str(cache)).split() == ["True", "False", "False"]
    return cache


@pytest.fixture
def entry(one_entry, run_python, tmp_path):
    """A copy of that cache: a function that says whether its entry was found, and the path of the entry."""
    cache = tmp_path / "cache"
    shutil.copytree(one_entry, cache)

    def is_found(**more):
        right, found, without_numba = run_python(HITS, **{"KERNLING_CACHE": str(cache)} | more).split()
        assert right == "True", "the result is right whatever the cache holds"
        assert found == without_numba, "Numba is imported only to compile"
        return found == "True"

    assert is_found()
    (path,) = tmp_path.rglob("*row_within*.bin")
    return is_found, path


COUNT_FOUR = """
import numpy as np
from kernling.compiler import compiling
from kernling.core.limits import row_within

tables = [kind(np.eye(3)) for kind in (np.asarray, np.float32, np.asfortranarray, np.int64)]
right = [row_within(table, -1.0, 1.0) and not row_within(table, -1.0, 0.5) for table in tables]
print(compiling.functions, all(right))
"""


def flipped(whole: bytes) -> bytes:
    half = len(whole) // 2
    return whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :]


def test_damaged_entries_are_replaced(run_python, tmp_path):
    def compiled():
        count, right = run_python(COUNT_FOUR, KERNLING_CACHE=str(tmp_path)).split()
        assert right == "True", "the result is right whatever the cache holds"
        return int(count)

    assert compiled() == 4
    damage = [lambda whole: b"", lambda whole: whole[: len(whole) // 2], lambda whole: b"nonsense" * 100, flipped]
    for path, damaged in zip(tmp_path.rglob("*row_within*.bin"), damage, strict=True):
        path.write_bytes(damaged(path.read_bytes()))
    assert compiled() == 4
    assert compiled() == 0, "they have been written again"


VALUES = """
import sys
import numpy as np
from kernling.core.limits import row_within
from kernling.core.kernels import CAUCHY, Kernel, transform_values

if sys.argv[1] == "late":
    row_within(np.eye(3), -1.0, 1.0)  # so that the next functions have other symbols
values = np.ones(2)
transform_values(Kernel(CAUCHY, 1.0, 1, 0.0), values)
print(*values)
"""


def test_a_callee_that_another_process_has_replaced_is_not_called(run_python, tmp_path):
    cache = {"KERNLING_CACHE": str(tmp_path)}
    assert run_python(VALUES, "early", **cache).split() == ["0.5", "0.5"]
    (caller,), (callee,) = tmp_path.rglob("*transform_values-*.bin"), tmp_path.rglob("*.transform-*.bin")
    old = caller.read_bytes()
    callee.unlink()
    run_python(VALUES, "late", **cache)
    caller.write_bytes(old)
    assert run_python(VALUES, "early", **cache).split() == ["0.5", "0.5"]


def test_code_is_compiled_anew_with_other_settings_of_numba(entry):
    """Such as checks of bounds, which are part of it."""
    is_found, _ = entry
    assert not is_found(NUMBA_BOUNDSCHECK="1")
    assert is_found(NUMBA_BOUNDSCHECK="1")
    assert is_found()


def test_entries_that_others_could_have_written_are_not_run(entry, tmp_path):
    is_found, path = entry
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in list(path.parents)[:2]] == [0o700, 0o700]
    path.chmod(0o666)
    assert not is_found()
    path.unlink(missing_ok=True)
    assert not is_found()
    assert is_found()
    real = tmp_path / "elsewhere.bin"
    path.rename(real)
    path.symlink_to(real)
    assert not is_found(), "links are not followed"


@pytest.mark.parametrize("above", [0, 1])  # the folder of the entry, and the one above it
def test_folders_that_others_can_write_to_are_not_used(entry, above):
    is_found, path = entry
    path.parents[above].chmod(0o777)
    assert not is_found(PYTHONWARNINGS="ignore")
    path.parents[above].chmod(0o700)
    assert is_found()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_entries_of_other_users_need_to_be_trusted(entry, tmp_path):
    is_found, path = entry
    for one in (path, *list(path.parents)[:2]):
        os.chown(one, 12345, 12345)
        assert not is_found(PYTHONWARNINGS="ignore")
        os.chown(one, os.geteuid(), -1)
    for one in (path, *list(path.parents)[:2]):
        os.chown(one, 12345, 12345)
    assert is_found(KERNLING_CACHE=str(tmp_path / "new"), KERNLING_SHARED_CACHE=str(tmp_path / "cache"))


def test_compiled_parts_refuse_calls_from_python():
    from kernling.core.block import fill

    with pytest.raises(TypeError, match="fill can be called only by compiled code"):
        fill(np.zeros(3), 1.0)


def test_nowhere_to_write_costs_only_time(run_python, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    program = "import numpy as np; from kernling.core.limits import row_within; print(row_within(np.eye(3), -1.0, 1.0))"
    assert run_python(program, KERNLING_CACHE=str(blocked)).strip() == "True"


OTHER_PROCESSOR = """
import numpy as np
from numba import typeof
from kernling.compiler import backends
backends._check = lambda compilers: None  # that would be run, and this processor may not understand it
from kernling.core.kernels import RBF, Kernel, rbf
from kernling.core.fourier import _cosines_and_sines

for dtype in (np.float64, np.float32):
    array, table = np.empty(3, dtype), np.empty((3, 3), dtype)
    exponentials = typeof(Kernel(RBF, 1.0, 3, 0.0)), typeof(array)
    waves = typeof(table), typeof(np.empty(3)), typeof(array), typeof(table)
    for function, types in ((rbf, exponentials), (_cosines_and_sines, waves)):  # compiled, but never run
        print(function.overload(types).library.get_asm_str().count("%REGISTERS"))
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other processors have other registers")
@pytest.mark.parametrize(("processor", "registers"), [("haswell", "ymm"), ("skylake-avx512", "zmm"), ("sapphirerapids", "zmm")])
def test_the_longest_vectors_of_a_processor_are_used(processor, registers, run_python, tmp_path):
    program = OTHER_PROCESSOR.replace("REGISTERS", registers)
    counts = run_python(program, NUMBA_CPU_NAME=processor, NUMBA_CPU_FEATURES="", KERNLING_CACHE=str(tmp_path)).split()
    assert len(counts) == 4
    assert min(map(int, counts)) > 40


WITHOUT_STRUCTS = """
import numba.extending
del numba.extending.lower_cast  # as if Numba had moved it
import numpy as np
from kernling.core.limits import row_within
try:
    row_within(np.eye(3), 1.0)
except ImportError as error:
    print(error)
"""


def test_a_version_of_numba_that_cannot_be_extended_is_named(run_python, tmp_path):
    told = run_python(WITHOUT_STRUCTS, KERNLING_CACHE=str(tmp_path))
    assert told.startswith("Numba lacks a part that kernling needs (cannot import name 'lower_cast'")
    assert re.search(r"pip install 'numba>=[\d.]+,<[\d.]+'\n$", told)
