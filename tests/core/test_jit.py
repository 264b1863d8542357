"""The disk cache: a second process compiles nothing, and an edited source never meets old machine code."""

import shutil
from pathlib import Path

import pytest

import kernling

COUNT = """
import numpy as np, scipy.sparse as sparse
from numba.core import event

with event.install_recorder("numba:compile") as compiled:
    import kernling

    X = np.random.default_rng(0).normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int)
    model = kernling.AVMClassifier(approximate="bernoulli", beta=1.0, output="average", random_state=0).fit(X, y)
    model.predict(X), model.predict_then_learn(sparse.csr_array(X), y)
    model.learn_one(X[0], 2), model.learn_one(X[0], 0), model.predict_one(X[0]), model.score_one(X[0])
    kernling.AVMRegressor(loss="l2", lam=0.5).fit(X, y).predict(sparse.csr_array(X))
    kernling.kernel("cauchy")(X, X)
print(len(compiled.buffer), model.n_stored_)
"""

COUNT_ONE = """
import numpy as np
from numba.core import event

with event.install_recorder("numba:compile") as compiled:
    from kernling.components.coverage import cells_opened

    cells_opened(np.arange(10.0).reshape(-1, 1), 1.5)
print(len(compiled.buffer))
"""

KEYS = """
import kernling, sys
from kernling import registry
from kernling.core import jit

cache = registry.find("avm").learner().loop.rows._cache
print(kernling.__file__, cache.folder.name, cache.stamp)
"""


def test_a_second_process_compiles_nothing(run_python, tmp_path):
    """The first one may find much in the cache that all tests share; one with an empty cache shows that the count counts."""
    _, points = run_python(COUNT).split()
    assert run_python(COUNT).split() == ["0", points]
    assert int(run_python(COUNT_ONE, KERNLING_CACHE=str(tmp_path))) > 0
    assert int(run_python(COUNT_ONE, KERNLING_CACHE=str(tmp_path))) == 0


@pytest.fixture
def edited(run_python, tmp_path):
    """The keys of AVM's machine code, shared and its own, after an edit in a copy of the package."""
    package = tmp_path / "kernling"
    shutil.copytree(Path(kernling.__file__).parent, package)

    def keys(path=None, old="", new=""):
        if path:
            text = (package / path).read_text()
            assert old in text
            (package / path).write_text(text.replace(old, new) if old else text + new)
        where, shared, own = run_python(KEYS, PYTHONPATH=str(tmp_path)).split()
        assert Path(where).parent == package
        return shared, own

    return keys


def test_an_edited_source_changes_the_key(edited):
    shared, own = edited()
    assert edited() == (shared, own)
    same_shared, other_own = edited("methods/avm.py", "stats[LARGEST_Y] = max", "stats[LARGEST_Y] = min")
    assert same_shared == shared
    assert other_own != own
    found = {shared}
    for path, old, new in [
        ("core/losses.py", "", "\nCHANGED = True\n"),
        ("core/expansion.py", "    marks: np.ndarray", "    more: np.ndarray\n    marks: np.ndarray"),
        ("core/loop.py", "drawn += setup.uniforms", "drawn += 1 * setup.uniforms"),
        ("components/coverage.py", "inside = False", "inside = 0 > 1"),
    ]:
        found.add(edited(path, old, new)[0])
    assert len(found) == 5


def test_an_edited_merge_rule_compiles_nothing_again(edited):
    keys = edited()
    for path, old, new in [
        ("merging/rules.py", "", "\nCHANGED = True\n"),
        ("merging/reduction.py", "", "\nCHANGED = True\n"),
        ("methods/avm.py", "+ merging.moved) ** 2", "+ 2.0 * merging.moved) ** 2"),  # how AVM's statistics merge
        ("methods/avm.py", "default=0.01", "default=0.02"),
        ("components/gram.py", "gram.record[LAST] = gram.record[FLOOR]", "gram.record[FLOOR]"),  # how Gram matrices merge
    ]:
        assert edited(path, old, new) == keys


def test_damaged_entries_are_compiled_anew(run_python, tmp_path):
    program = """
import numpy as np
from kernling.components.coverage import cells_opened

print(cells_opened(np.arange(10.0).reshape(-1, 1), 1.5), cells_opened.stats.cache_hits)
"""
    outcome = {"KERNLING_CACHE": str(tmp_path)}
    assert run_python(program, **outcome).split()[0] == "5"
    entries = list(tmp_path.rglob("*cells_opened*.bin"))
    assert len(entries) == 1
    whole = entries[0].read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"nonsense" * 100):
        entries[0].write_bytes(damaged)
        assert run_python(program, **outcome).split()[0] == "5"


def test_nowhere_to_write_costs_only_time(run_python, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    program = "import numpy as np; from kernling.components.coverage import cells_opened; print(cells_opened(np.eye(3), 0.5))"
    assert run_python(program, KERNLING_CACHE=str(blocked)).strip() == "3"
