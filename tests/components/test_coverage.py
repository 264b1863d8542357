"""Cells: the rule for ties and edges, whatever way distances are computed."""

import numpy as np
import pytest
from scipy import sparse

import kernling
from kernling.components.coverage import Coverage
from kernling.estimators.resolve import smallest_delta, squared_distances

WAYS = [{"block_size": 1}, {"block_size": 7}, {"block_size": 128}, {"dtype": "float32"}]


def learned(X, y, **params):
    model = kernling.AVMClassifier(gamma=0.5, lam=1.0, eta=None, zero_cells=True, output="last", **params)
    return model.partial_fit(X, y, classes=[0, 1])


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("as_rows", [np.array, sparse.csr_array])
@pytest.mark.parametrize("scale", [1.0, 0.1, 1.0 / 3.0])
def test_the_edge_of_a_cell_is_outside(way, as_rows, scale):
    X = scale * np.array([[0.0, 0.0], [3.0, 4.0], [2.999, 4.0]])  # (3, 4) is 5 away: delta / 2 exactly
    model = learned(as_rows(X), [0, 1, 0], delta=10.0 * scale, **way)
    assert model.n_cells_ == 2


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("as_rows", [np.array, sparse.csr_array])
@pytest.mark.parametrize("order", [1.0, -1.0])
def test_equal_distances_go_to_the_earlier_core(way, as_rows, order):
    X = order * np.array([[-0.7, 0.1], [0.7, 0.1], [0.0, 0.1], [0.0, 0.4]])
    labels = [0, 0, 1, 1]
    model = learned(as_rows(X), labels, delta=1.8, **way)
    assert model.n_stored_ == 2
    first, second = model.dual_coef_  # each starts at -1 / t; the two later events go to the first core
    assert first == pytest.approx((-1.0 + 2.0) / 4.0, rel=1e-5)
    assert second == pytest.approx(-1.0 / 4.0, rel=1e-5)


def hamming_cells(X, least):
    """Cores and members by whole-number arithmetic: a row opens a cell if it differs from every core in ``least`` places."""
    cores, member = [], []
    for i, x in enumerate(X):
        distances = [int((x != X[k]).sum()) for k in cores]
        if not cores or min(distances) >= least:
            cores.append(i)
            member.append(len(cores) - 1)
        else:
            member.append(int(np.argmin(distances)))
    return cores, member


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("as_rows", [np.array, sparse.csr_array])
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_binary_rows_full_of_ties(way, as_rows, scale):
    X = np.random.default_rng(0).integers(0, 2, size=(600, 12)).astype(float)
    cores, member = hamming_cells(X, 4)
    settings = {
        "lam": 1.0,
        "delta": 2.0 * scale * 2.0,
        "max_cells": len(cores),
        "when_full": "drop",
        "eta": None,
        "standardise_target": False,
    }
    model = kernling.AVMRegressor(loss="l1", gamma=0.5, **settings, **way)
    model.fit(as_rows(scale * X), np.full(600, 1e6))  # a slope of -1 at every event: coefficients count events
    assert (model.n_cells_, model.n_dropped_) == (len(cores), 0)
    np.testing.assert_allclose(model.support_vectors_, scale * X[cores], atol=1e-6)
    np.testing.assert_allclose(model.dual_coef_, np.bincount(member) / 600.0, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_first_box_wins_and_edges_are_outside(way):
    half = 0.5
    X = np.array([[0.0, 0.0], [0.5, 0.0], [0.25, 0.125], [0.0, 0.4375], [0.75, -0.25]])
    model = learned(X, [0, 0, 1, 1, 0], coverage="box", delta=2.0 * np.sqrt(2.0) * half, **way)
    assert model.n_cells_ == 2
    np.testing.assert_allclose(model.dual_coef_, [(-1.0 + 2.0) / 5.0, (-1.0 - 1.0) / 5.0])


def test_box_and_sphere_have_the_diameter_asked_for():
    assert Coverage.of("sphere", 3.0, 7, np.float64).radius == 1.5
    assert Coverage.of("box", 3.0, 9, np.float64).radius == 0.5  # a cube of side 1 has diagonal 3


@pytest.mark.parametrize("as_rows", [np.array, sparse.csr_array])
@pytest.mark.parametrize("most", [5, 40, 200])
def test_smallest_delta(as_rows, most):
    X, y = as_rows(np.random.default_rng(2).normal(size=(400, 3))), np.arange(400) % 2
    delta = smallest_delta(squared_distances(X), most)
    assert learned(X, y, delta=delta).n_cells_ <= most < learned(X, y, delta=0.99 * delta).n_cells_


def test_smallest_delta_of_equal_rows():
    assert smallest_delta(squared_distances(np.ones((100, 2))), 1) > 0.0
