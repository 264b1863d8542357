"""Values and gradients of all losses: against finite differences off the kinks, fixed values on them."""

import math

import numpy as np
import pytest

from kernling.compiler import jit
from kernling.core import losses

MARGIN = ["hinge", "smooth_hinge", "squared_hinge", "logistic"]
REGRESSION = ["l2", "l1", "epsilon_insensitive", "huber", "smooth_epsilon"]
TAU, EPSILON = 0.5, 0.25


@jit
def value_of(loss, scores, y):
    return losses.value(loss, scores, y)


@jit
def write_gradient(loss, scores, y, row):
    return losses.gradient(loss, scores, y, row)


def loss_named(name: str) -> losses.Loss:
    width = EPSILON if name == "epsilon_insensitive" else TAU
    return losses.Loss(losses.KINDS[name], width, EPSILON if name == "smooth_epsilon" else 0.0)


def gradient(loss, scores, y):
    row = np.full(len(scores), np.nan)
    lossy = write_gradient(loss, np.asarray(scores, float), float(y), row)
    assert lossy == row.any()
    return row


def differences(loss, scores, y, h=1e-6):
    steps = h * np.eye(len(scores))
    return [(value_of(loss, scores + e, y) - value_of(loss, scores - e, y)) / (2.0 * h) for e in steps]


def test_every_loss_is_tested():
    assert {*MARGIN, *REGRESSION, "softmax"} == set(losses.KINDS)


@pytest.mark.parametrize("name", losses.KINDS)
def test_one_output_against_finite_differences(name):
    loss = loss_named(name)
    rng = np.random.default_rng(0)
    kinks = np.array([0.0, 1.0, 1.0 - TAU, EPSILON, TAU, TAU + EPSILON])
    checked = 0
    for _ in range(300):
        f, y = rng.normal(scale=2.0, size=1), rng.normal() if name in REGRESSION else rng.choice([-1.0, 1.0])
        where = abs(f[0] - y) if name in REGRESSION else y * f[0]
        if np.abs(kinks - where).min() > 1e-3:
            np.testing.assert_allclose(gradient(loss, f, y), differences(loss, f, y), atol=1e-7)
            checked += 1
    assert checked > 250


@pytest.mark.parametrize("name", [*MARGIN, "softmax"])
@pytest.mark.parametrize("outputs", [3, 6])
def test_several_outputs_against_finite_differences(name, outputs):
    loss = loss_named(name)
    rng = np.random.default_rng(1)
    checked = 0
    for _ in range(200):
        f, y = rng.normal(size=outputs), int(rng.integers(outputs))
        rivals = np.sort(np.delete(f, y))
        m = f[y] - rivals[-1]
        if min(abs(m - 1.0), abs(m - 1.0 + TAU), rivals[-1] - rivals[-2]) > 1e-3:
            row = gradient(loss, f, y)
            np.testing.assert_allclose(row, differences(loss, f, y), atol=1e-7)
            assert abs(row.sum()) < 1e-12
            checked += 1
    assert checked > 150


@pytest.mark.parametrize(
    ("name", "m", "value", "slope"),
    [
        ("hinge", 1.0, 0.0, 0.0),
        ("hinge", 0.0, 1.0, -1.0),
        ("smooth_hinge", 1.0, 0.0, 0.0),
        ("smooth_hinge", 1.0 - TAU, TAU / 2.0, -1.0),
        ("squared_hinge", 1.0, 0.0, 0.0),
        ("squared_hinge", -1.0, 2.0, -2.0),
        ("logistic", 0.0, math.log(2.0), -0.5),
        ("logistic", 800.0, 0.0, 0.0),
        ("logistic", -800.0, 800.0, -1.0),
    ],
)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_margin_losses_on_the_kinks(name, m, value, slope, y):
    loss, f = loss_named(name), np.array([y * m])
    assert value_of(loss, f, y) == pytest.approx(value, abs=1e-15)
    assert gradient(loss, f, y) == pytest.approx([y * slope], abs=1e-15)
    several = np.array([0.0, m, -5.0])  # f_y - f_z = m for label 1
    assert value_of(loss, several, 1.0) == pytest.approx(value, abs=1e-15)
    assert gradient(loss, several, 1) == pytest.approx([-slope, slope, 0.0], abs=1e-15)


@pytest.mark.parametrize(
    ("name", "e", "value", "slope"),
    [
        ("l2", 0.0, 0.0, 0.0),
        ("l2", 3.0, 4.5, 3.0),
        ("l1", 0.0, 0.0, 0.0),
        ("epsilon_insensitive", 0.0, 0.0, 0.0),
        ("epsilon_insensitive", EPSILON, 0.0, 0.0),
        ("epsilon_insensitive", 1.0, 1.0 - EPSILON, 1.0),
        ("huber", TAU, TAU**2 / 2.0, TAU),
        ("huber", 2.0, 2.0 * TAU - TAU**2 / 2.0, TAU),
        ("smooth_epsilon", EPSILON, 0.0, 0.0),
        ("smooth_epsilon", EPSILON + TAU, TAU / 2.0, 1.0),
        ("smooth_epsilon", EPSILON + TAU + 1.0, TAU / 2.0 + 1.0, 1.0),
    ],
)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_regression_losses_on_the_kinks(name, e, value, slope, sign):
    loss, f = loss_named(name), np.array([sign * e])
    assert value_of(loss, f, 0.0) == pytest.approx(value, abs=1e-15)
    assert gradient(loss, f, 0.0) == pytest.approx([sign * slope], abs=1e-15)


def test_the_lowest_index_is_the_rival_on_ties():
    assert gradient(loss_named("hinge"), [2.0, 0.0, 2.0, 2.0], 1).tolist() == [1.0, -1.0, 0.0, 0.0]
    assert gradient(loss_named("hinge"), [0.0, 0.0, 0.0], 0).tolist() == [-1.0, 1.0, 0.0]


def test_softmax_of_large_scores_stays_finite():
    loss, f = loss_named("softmax"), np.array([1000.0, 0.0, -1000.0])
    assert value_of(loss, f, 1.0) == pytest.approx(1000.0)
    assert gradient(loss, f, 1) == pytest.approx([1.0, -1.0, 0.0])


def test_softmax_of_one_output_is_logistic():
    f = np.array([0.3])
    assert value_of(loss_named("softmax"), f, -1.0) == value_of(loss_named("logistic"), f, -1.0)


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("name", losses.KINDS)
def test_lipschitz_constants(name, outputs):
    loss = loss_named(name)
    if outputs > 1 and loss.kind >= losses.L2:
        pytest.skip("values have one output")
    limit = losses.lipschitz(name, loss.width, outputs)
    rng = np.random.default_rng(2)
    norms = []
    for _ in range(500):
        f = rng.normal(scale=5.0, size=outputs)
        y = int(rng.integers(4)) if outputs > 1 else rng.choice([-1.0, 1.0])
        norms.append(np.linalg.norm(gradient(loss, f, y)))
    assert max(norms) > 5.0 if limit == np.inf else 0.95 * limit < max(norms) <= limit + 1e-12
