"""What columns contribute to the answer of experts, given how these are mixed.

Each expert has its own values (shapley.py): exact ones for sums over columns and products over them, which are all but the
nearest neighbours and weighted means; these are sampled (walks.py).  The weights of the mixture are held fixed.  A function of
one score, such as a clip, multiplies values by the ratio of its change to that of the score.  Log probabilities, which depend
on several sums, change along a straight line from the sums at the base to those of the row, and each player is given its part
of the change (R. J. Aumann and L. S. Shapley: Values of Non-Atomic Games, 1974).  So values sum to the answer minus the base,
which is the mixture's answer to the experts' base scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from ..core import state as states
from ..core.kernels import RBF, Kernel
from . import least_squares, shapley, window
from .answering import Kept
from .archive import VIEWS
from .bins import NEVER
from .combination import REACH
from .experts import SQUARES, Answers, Experts, stretched
from .mixture import Mixture
from .scaling import scale, target_scale
from .shapley import Game, Products, Shares
from .walks import along_memory, along_window, cells_of, paths_of, strips_of

NODES = 32  # on the line from the base scores to those of a row
ALIKE = 1e-6  # difference of two scores below which the ratio of changes is the slope


# ---------------------------------------------------------------------- experts


def _scaled(experts: Experts, standardise: bool, X: np.ndarray) -> np.ndarray:
    """Return rows as experts see them, each scaled as if it were the next one."""
    if not standardise:
        return X
    known, out = states.copied(experts.scales), np.empty(X.shape)
    scale(X, np.zeros(len(X)), known.count, known.clipped, known.mean, known.squares, known.kind, out)
    return out


class Asked(NamedTuple):
    """What is to be explained, and how."""

    game: Game
    score: Callable[[np.ndarray], np.ndarray]  # of all experts, (rows, experts, outputs): those without a formula are sampled
    sampling: tuple[int, np.random.Generator]
    kept: Kept


def explain_experts(experts: Experts, kernel: Kernel, standardise: bool, answers: Answers, asked: Asked) -> Shares:
    """Return the shares of the columns of rows, as they came, in the answers of experts."""
    found = _with_formula(experts, kernel, standardise, answers, asked.game, asked.kept)
    if isinstance(experts.mixture, Mixture):
        return _of_classes(experts, found, standardise, asked)
    weights = 1.0 / len(experts.names) + answers.mixture[0]
    total = _of_values(experts, kernel, found, standardise, weights, asked)
    shift, width = target_scale(experts.target)
    return total.times(width, shift)


def _with_formula(
    experts: Experts, kernel: Kernel, standardise: bool, answers: Answers, game: Game, kept: Kept
) -> dict[int, Shares]:
    """Return the shares in the scores of experts that are sums or products over columns, by their places."""
    scaled = game.seen(lambda X: _scaled(experts, standardise, X))
    centred = scaled.seen(lambda X: stretched(experts, X))
    n, fixed, own = experts.model.stored, int(experts.kernel_squares.size[least_squares.FIXED]), {}
    lines = zip(SQUARES[1:3], (answers.linear, answers.linear_recent), strict=True)
    for name, weights in lines:
        own[SQUARES.index(name)] = shapley.linear(scaled, weights[:, 1:]).times(1.0, weights[:, 0])
    used = experts.bins.edges < NEVER
    columns, edges = experts.bins.columns[used], experts.bins.edges[used]
    steps = shapley.additive(game, lambda X: (X[:, columns] > edges).astype(np.float64), columns, answers.bins[:, 1:][:, used])
    own[SQUARES.index("bins")] = steps.times(1.0, answers.bins[:, 0])
    if kernel.kind == RBF:
        weights = np.vstack([answers.kernel, answers.logistic])
        coef = np.vstack([answers.points, answers.logistic_points])
        terms = Products(experts.model.points[:n].T, coef[:, :n], kernel.gamma, False)
        one = terms._replace(coef=terms.coef[np.newaxis])
        means = kept.of("points", lambda: shapley.means_of(centred, one))
        smooth = shapley.of_products(centred, terms, means).times(1.0, weights[:, 0])
        if fixed > 1:
            smooth = smooth.plus(shapley.linear(scaled, math.sqrt(kernel.gamma) * weights[:, 1:fixed]))
        outputs = experts.model.outputs
        own[SQUARES.index("kernel")] = smooth.of_outputs(0, outputs)
        if len(answers.logistic):
            own[experts.names.index("logistic")] = smooth.of_outputs(outputs, 2 * outputs)
    return own | _of_window(experts, kernel, centred, kept)


def _of_window(experts: Experts, kernel: Kernel, centred: Game, kept: Kept) -> dict[int, Shares]:
    """Return the shares in the scores of the window's experts that are kernel expansions."""
    held, powers, own = experts.window, len(experts.window.coef) // window.KINDS, dict[int, Shares]()
    coef = held.coef[:, held.places, : held.stored]
    coef = coef if isinstance(experts.mixture, Mixture) else coef[:, window.LMS : window.LMS + 1]
    for first, is_city in ((0, False), (powers, True)):
        if is_city or kernel.kind == RBF:
            rate = window.city_rate(kernel) if is_city else kernel.gamma
            views = Products(held.columns[:, : held.stored], coef[first : first + powers], rate, is_city)
            means = kept.of(("window", is_city), partial(shapley.means_of, centred, views))
            own |= dict(enumerate(shapley.of_powers(centred, views, means), experts.names.index("window") + first))
    return own


def _have_paths(experts: Experts, found: dict[int, Shares]) -> bool:
    """Return whether there is a quick way from row to row for experts without a formula: if the others have one."""
    return experts.names.index("window") in found


# ---------------------------------------------------------------------- mixtures


def _of_values(
    experts: Experts,
    kernel: Kernel,
    found: dict[int, Shares],
    standardise: bool,
    weights: np.ndarray,
    asked: Asked,
) -> Shares:
    """Return the shares in a combination of predictions.

    What the window's neighbours say is sampled next to its kernel expansions, which see the same events and have known shares:
    half as many orders are enough.  The memory corrects the kernel expert; what it says beyond another one is sampled.
    """
    near, memory = range(len(SQUARES), len(weights) - VIEWS), range(len(weights) - VIEWS, len(weights))
    expansions, means = [place for place in near if place in found], [place for place in near if place not in found]
    game, score, sampling, kept = asked
    like, pairs = min(found), max(2, sampling[0] // 2)
    of_memory, of_window = shapley.orders_of(game, pairs + max(2, pairs // 2), sampling[1]).split(pairs)

    def near_said(scores: np.ndarray) -> np.ndarray:
        return np.column_stack([scores[:, means, 0] @ weights[means], scores[:, expansions, 0]])

    def memory_said(scores: np.ndarray) -> np.ndarray:
        return (scores[:, memory] - scores[:, [like]]).swapaxes(1, 2) @ weights[memory]

    known = Shares(
        np.concatenate([found[place].values for place in expansions], axis=2),
        np.concatenate([found[place].base for place in expansions]),
        np.zeros(0),
    )
    along_near = shapley.stepwise(game, of_window, lambda X: near_said(score(X)))
    along_cells = shapley.stepwise(game, of_memory, lambda X: memory_said(score(X)))
    if _have_paths(experts, found):
        cells, strips = cells_of(experts.archive), strips_of(experts.window)
        near_paths = paths_of(game, of_window, lambda X: stretched(experts, _scaled(experts, standardise, X)))
        paths = paths_of(game, of_memory, lambda X: _scaled(experts, standardise, X) * experts.early.stretch)
        along_near = lambda row: along_window(experts, kernel, strips, near_paths, row, weights[means])  # noqa: E731
        along_cells = lambda row: (  # noqa: E731
            along_memory(experts.archive, cells, paths, row, 0)[..., 0] @ weights[memory][:, np.newaxis]
        )
    at_starts = kept.of(("starts", pairs), lambda: score(of_memory.starts))
    at_rows = score(np.ascontiguousarray(game.rows))
    total = shapley.averaged(game, of_window, near_said(at_starts), near_said(at_rows), along_near, known)
    total = total.plus(shapley.averaged(game, of_memory, memory_said(at_starts), memory_said(at_rows), along_cells))
    for place, own in found.items():
        weight = weights[place] + (weights[memory].sum() if place == like else 0.0)
        total = total.plus(_through(_clip, own).times(weight))
    return _through(_clip, total)


def _of_classes(
    experts: Experts,
    found: dict[int, Shares],
    standardise: bool,
    asked: Asked,
) -> Shares:
    """Return the shares in log probabilities, or log odds."""
    (game, score, sampling, kept), mixture = asked, cast("Mixture", experts.mixture)
    count, outputs = mixture.mean.shape
    rest = [place for place in range(count) if place not in found]
    silent = [place for place in rest if place >= count - VIEWS and not experts.archive.stored]
    for place in silent:  # a memory without events says the same of all rows
        found[place] = shapley.nothing(game, outputs).times(1.0, score(game.background[:1])[0, place])
    rest = [place for place in rest if place not in silent]
    if rest:
        said = lambda X: score(X)[:, rest].reshape(len(X), -1)  # noqa: E731
        orders = shapley.orders_of(game, max(2, sampling[0] // 2), sampling[1])
        along = shapley.stepwise(game, orders, said)
        if _have_paths(experts, found):
            cells = cells_of(experts.archive)
            paths = paths_of(game, orders, lambda X: _scaled(experts, standardise, X) * experts.early.stretch)
            along = lambda row: (  # noqa: E731
                along_memory(experts.archive, cells, paths, row, outputs).reshape(*paths.changed.shape, -1)
            )
        at_starts = kept.of(("starts", len(orders.ranks)), lambda: said(orders.starts))
        both = shapley.averaged(game, orders, at_starts, said(np.ascontiguousarray(game.rows)), along)
        for i, place in enumerate(rest):
            found[place] = both.of_outputs(i * outputs, (i + 1) * outputs)
    return _through_stacks(mixture, [found[place] for place in range(count)])


def _through_stacks(mixture: Mixture, found: list[Shares]) -> Shares:
    """Return the shares in the answer of a mixture, given those in the scores of all experts."""
    outputs, players, n = mixture.mean.shape[1], found[0].values.shape[1], max(len(own.spread) for own in found)
    mean, scale, curb = mixture.units()
    away, changes = np.array([own.base for own in found]) - mean, np.stack([_all_of(own, n) for own in found])
    if outputs == 1:
        away, changes = np.concatenate([-away, away], axis=-1), np.concatenate([-changes, changes], axis=-1)
    else:
        away, changes = (part - part.mean(axis=-1, keepdims=True) for part in (away, changes))
    low, changes = away / scale[:, np.newaxis], changes / scale[:, np.newaxis, np.newaxis, np.newaxis]
    high = low[:, np.newaxis] + changes[:, :, :players].sum(axis=2)
    curb = curb[:, np.newaxis]
    changes *= _ratio(partial(_curbed, curb[:, np.newaxis]), low[:, np.newaxis], high)[:, :, np.newaxis]
    start = mixture.bias + mixture.pull @ _curbed(curb, low)
    values = np.array([_mixed(mixture, start, np.tensordot(mixture.pull, own, 1), players) for own in changes.swapaxes(0, 1)])
    base = _log_mean(mixture, start)
    if outputs == 1:
        values, base = values[..., 1:] - values[..., :1], base[1:] - base[:1]
    spread = values[:, players:].reshape(len(values), n, players, outputs).swapaxes(0, 1)
    return Shares(values[:, :players], base, spread)


def _all_of(own: Shares, samples: int) -> np.ndarray:
    """Return the values and the differences of all samples from them, (rows, players (1 + samples), outputs)."""
    rows, players, outputs = own.values.shape
    spread = own.spread if len(own.spread) else np.zeros((samples, *own.values.shape))
    return np.concatenate([own.values, spread.swapaxes(0, 1).reshape(rows, samples * players, outputs)], axis=1)


def _mixed(mixture: Mixture, start: np.ndarray, changes: np.ndarray, players: int) -> np.ndarray:
    """Return the parts in the answer, (parts, classes), of changes of the stacks' sums, (stacks, parts, classes).

    The first ones are those of the players, which are all of the change.
    """
    whole = changes[:, :players].sum(axis=1)
    times, weights = (part[:, np.newaxis, np.newaxis] for part in shapley.unit_nodes(NODES))
    p = _softmax(start + times * whole)  # (nodes, stacks, classes)
    share = weights * (mixture.trust * (1.0 - mixture.noise))[:, np.newaxis] * p / _mean(mixture, p)[:, np.newaxis]
    found = np.einsum("sk,sjk->jk", share.sum(axis=0), changes)
    found -= np.tensordot(changes, np.einsum("nsk,nsc->sck", share, p), ((0, 2), (0, 1)))
    missing = _log_mean(mixture, start + whole) - _log_mean(mixture, start) - found[:players].sum(axis=0)
    size = np.abs(found[:players])
    found[:players] += missing * size / np.maximum(size.sum(axis=0), np.finfo(np.float64).tiny)  # of the quadrature
    return found


def _mean(mixture: Mixture, p: np.ndarray) -> np.ndarray:
    """Return the mean probability of each class, of those of the stacks, (..., stacks, classes)."""
    noise = mixture.noise[:, np.newaxis]
    return np.einsum("s,...sk->...k", mixture.trust, (1.0 - noise) * p + noise * mixture.frequency)


def _log_mean(mixture: Mixture, sums: np.ndarray) -> np.ndarray:
    return np.log(_mean(mixture, _softmax(sums)))


def _softmax(sums: np.ndarray) -> np.ndarray:
    p = np.exp(sums - sums.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


# ---------------------------------------------------------------------- functions of scores


def _clip(scores: np.ndarray) -> np.ndarray:
    return np.clip(scores, -REACH, REACH)


def _curbed(curb: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return scores / np.sqrt(1.0 + curb * np.abs(scores))


def _ratio(function: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the change of a function over that of its argument; the derivative where there is hardly a change."""
    least = ALIKE * (1.0 + np.abs(low))
    is_far = np.abs(high - low) > least
    a, b = np.where(is_far, low, low - least), np.where(is_far, high, low + least)
    return (function(b) - function(a)) / (b - a)


def _through(function: Callable[[np.ndarray], np.ndarray], own: Shares) -> Shares:
    """Return the shares in a function of a score."""
    ratio = _ratio(function, own.base, own.scores)[:, np.newaxis]
    return Shares(own.values * ratio, function(own.base), own.spread * ratio)
