"""Costs that must not grow faster than what they are for: counts of instructions, copies and bytes."""

import numpy as np
import pytest
from scipy import sparse

import checks
import kernling as kl
from costs import instructions_of, little_memory
from kernling.core import state as states
from kernling.estimators import tasks
from kernling.estimators.resolve import auto_delta, warn_if_uneven
from kernling.estimators.sizes import bytes_in_use, size_within
from kernling.io import stream


def arrays_of(state):
    return [state] if isinstance(state, np.ndarray) else [array for part in state for array in arrays_of(part)]


LATE = {
    kl.AVMClassifier: {"gamma": 1.0, "delta": 0.1},
    kl.SPAClassifier: {"gamma": 1.0, "random_state": 0},
    kl.KRLSClassifier: {"gamma": 1.0, "points": 64},
    kl.AutoClassifier: {"points": 32, "window": 500, "memory": "50kB"},
}


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("cls", LATE, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("at_once", [False, True])
def test_late_classes_move_little_memory(cls, at_once, monkeypatch):
    """Room for half as many more outputs is made at once, so all copies together are a few times what there is in the end.

    Only a few numbers for each output, and the targets of stored events, are copied for every class.
    """
    moved, numbers, widened, copied = [], 50, tasks.widened, states.copied

    def counted(state, change):
        wider, known = widened(state, change), {id(array) for array in arrays_of(state)}
        moved.extend(array.nbytes for array in arrays_of(wider) if id(array) not in known)
        return wider

    def copied_and_counted(state):
        if isinstance(state, np.ndarray):
            moved.append(state.nbytes)
        return copied(state)

    monkeypatch.setattr(tasks, "widened", counted)
    monkeypatch.setattr(states, "copied", copied_and_counted)
    n = 150
    X, labels = np.random.default_rng(0).normal(size=(n, 5)), np.random.default_rng(1).permutation(n)
    model = cls(**LATE[cls]).partial_fit(X[:1], labels[:1])
    if at_once:
        model.partial_fit(X[1:], labels[1:])
    else:
        for x, label in zip(X[1:], labels[1:].tolist(), strict=True):
            model.learn_one(x, label)
    assert model.state_.model.outputs == n
    assert sum(moved) < 4 * states.nbytes(model.state_) + numbers * 8 * n * n / 2
    points = len(model.state_.model.points)
    assert bytes_in_use(model) <= size_within(cls(**LATE[cls]), 5, n, points, 2**40)  # what is claimed before


def read_wide(path):
    X, _ = stream(path, target="y", missing="keep").load()
    kl.StreamPipeline.auto(kl.AVMClassifier(gamma=1.0, delta=1.0)).begin(X)


def test_wide_csv_costs_what_its_columns_cost(tmp_path):
    for columns in (200, 1600):
        rows = np.random.default_rng(0).integers(0, 1000, (8, columns))
        text = [",".join([f"c{i}" for i in range(columns)] + ["y"])] + [
            ",".join(map(str, [*row, i % 2])) for i, row in enumerate(rows)
        ]
        (tmp_path / f"{columns}.csv").write_text("\n".join(text) + "\n")
    read_wide(tmp_path / "200.csv")
    few, many = (instructions_of(read_wide, tmp_path / f"{columns}.csv") for columns in (200, 1600))
    assert many < 8.5 * few  # 8 times the columns


def test_long_lines_come_in_larger_blocks(tmp_path, monkeypatch):
    from kernling.io import lines

    text = b"".join(b"%d," % i * 500 + b"\n" for i in range(1000, 1300))
    (tmp_path / "long").write_bytes(text)
    with open(tmp_path / "long", "rb") as file:
        blocks = list(lines.line_blocks(file, size=4000))
    assert b"".join(blocks) == text
    assert len(blocks) < 20  # 300 of one size


def rows_of(columns, n=200):
    rng = np.random.default_rng(0)
    places = rng.integers(0, columns, (n, 20))
    return sparse.csr_array((np.ones(places.size), places.ravel(), np.arange(0, places.size + 1, 20)), shape=(n, columns))


@pytest.mark.parametrize("cls", [kl.AVMClassifier, kl.SPAClassifier, kl.POLKClassifier, kl.DualSVRGClassifier])
def test_rows_too_wide_to_store_are_refused_before_the_work(cls):
    X, y = rows_of(2**20), np.arange(200) % 2
    with little_memory(2**28), pytest.raises(ValueError, match=r"rows of 1048576 columns are too wide .* 262144 columns: hash"):
        cls().partial_fit(X, y)


def test_the_cure_for_wide_rows_works():
    X, y = rows_of(2**20, 60), np.arange(60) % 2
    assert kl.AOGDClassifier(features="linear").partial_fit(X, y).t_ == 60


def test_auto_delta_makes_no_wide_rows_dense():
    X = rows_of(2**24, 1000)
    with little_memory(2**28):
        delta = auto_delta(X, {"gamma": 1.0})
    used = np.unique(X.indices)
    assert delta == auto_delta(np.asarray(X[:, used].todense()), {"gamma": 1.0})


RESOLVING = {tuple(cls.parameters[name].resolve for name in cls._resolvable()): cls for cls in checks.estimators()}


@pytest.mark.parametrize("cls", RESOLVING.values(), ids=lambda cls: cls.__name__)
def test_what_is_resolved_from_wide_rows_makes_none_dense(cls):
    X = rows_of(100_000, 1000)  # 800 MB as an array
    model = cls()
    with little_memory(2**26):
        model.resolved(X)
        warn_if_uneven(X)
    narrow = rows_of(500, 300)
    assert model.resolved(narrow) == pytest.approx(model.resolved(narrow.toarray()), rel=1e-9)
