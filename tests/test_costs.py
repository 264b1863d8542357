"""Costs that must not grow faster than what they are for: counts of instructions, copies and bytes."""

import numpy as np
import pytest
from scipy import sparse

import checks
import kernling as kl
from costs import instructions_of, little_memory
from kernling.core.state import Widening
from kernling.estimators.resolve import auto_delta, warn_if_uneven
from kernling.io import stream


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_late_classes_seldom_copy_the_coefficients(monkeypatch):
    """Room for half as many more outputs is made at once, so the number of copies is logarithmic; points and others stay."""
    copies, usual = [], Widening.columns

    def counted(change, coef, places):
        wider = usual(change, coef, places)
        copies.append(wider[0] is not coef)
        return wider

    monkeypatch.setattr(Widening, "columns", counted)
    X = np.random.default_rng(0).normal(size=(120, 5))
    model = kl.AVMClassifier(gamma=1.0, delta=0.1).partial_fit(X[:1], [0]).partial_fit(X[:60], np.arange(60))
    for x, label in zip(X[60:], np.arange(60, 120), strict=True):
        model.learn_one(x, label)
    assert model.state_.model.outputs == model.n_stored_ == len(copies) + 1 == 120
    assert sum(copies) < 2.0 + np.log(120) / np.log(1.5)


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
