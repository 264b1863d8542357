"""How a ridge regression begins anew after a change: another learns beside it, and takes its place once it is better.

Both have points and sums of their own, and share the centre, the scale of the kernel and random features.  With ``succession``
and ``successor`` of a state empty, nothing of this happens.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..compiler import inline_exact, inner_exact, jit_exact, shaped
from ..core import state as states
from ..core.expansion import EVENTS
from ..core.rows import Rows
from ..core.setup import Setup
from . import least_squares, succession
from .least_squares import BLOCK, FIXED
from .regression import Seen, learn_block, write_coefficients
from .succession import follow_squares, watch_losses


class Work:
    """What a compiled call needs besides the events: both regressions, and memory for a block of rows."""

    def __init__(self, setup: Setup, params: Any, state: Any, rows: Rows, size: int):
        self.state, self.own, self.heir, self.succession = state, state.regression, state.successor, state.succession
        self.contest = state.succession.contest if state.succession else np.empty(0)
        self.seen = Seen(setup.kernel, params, state.waves, self.own, rows, size)
        self.T, self.scores, self.other = np.empty((3, state.model.outputs * size))
        self.losses, self.units, self.shares, self.found = *np.empty((2, size)), np.full(size, -1.0), np.empty(3)
        self.w = np.empty(int(state.squares.size[FIXED]) + params.most)
        self.fits, self.values, self.times = state.fits, setup.numeric, succession.times()
        self.due = np.zeros(1, np.int64)  # whether there is something to settle


def fits(state: Any) -> bool:
    """Return whether there is memory for events that wait, and for a successor if and only if there is one."""
    heir = state.successor
    is_grown = not state.squares.waits or len(state.squares.pending.weights) == BLOCK
    return is_grown and (not heir or len(heir.model.points) == len(state.model.points) * heir.has_begun)


def fitted(state: Any) -> Any:
    """Return the same with memory for events that wait, and for a successor if and only if there is one."""
    ends = state.successor and not state.successor.has_begun
    return states.grown(state._replace(successor=state.successor.emptied()) if ends else state, len(state.model.points))


# ---------------------------------------------------------------------- between events


@inline_exact
def _events_ahead_alone(own, heir, contest, times):
    return least_squares.until_due(own.squares)


@jit_exact
def _events_ahead_of_both(own, heir, contest, times):
    """Return the number of events until something is to be settled; 0 if there is no memory for a successor."""
    ahead, age, two = least_squares.until_due(own.squares), -1.0, heir.model.clock[EVENTS] > 0.0
    if two != (heir.model.points.shape[0] > 0):
        return 0
    if two:
        age, ahead = heir.squares.record[least_squares.EVENTS], min(ahead, least_squares.until_due(heir.squares))
    return max(min(ahead, succession.until_due(contest, own.model.clock[EVENTS], age, times)), 1)


def until_due(state: Any) -> int:
    """Return the number of events until something is to be settled."""
    ahead, heir = least_squares.until_due(state.squares), state.successor
    if not state.succession:
        return ahead
    if heir.has_begun:
        ahead = min(ahead, least_squares.until_due(heir.squares))
    age = heir.events if heir.has_begun else -1.0
    return max(
        min(ahead, succession.until_due(state.succession.contest, state.model.clock[EVENTS], age, succession.times())), 1
    )


def settle(setup: Setup, params: Any, state: Any) -> None:
    """Fold events into the sums, and let a successor take over, end or begin, where it is time; then the solution is new."""
    least_squares.settle(state.squares)
    if state.succession:
        _settle_succession(state)
    write_coefficients(params, state)


def _settle_succession(state: Any) -> None:
    events, heir = state.model.clock[EVENTS], state.successor
    if heir.has_begun:
        least_squares.settle(heir.squares)
    replaces, drops, begins = state.succession.settled(int(events), heir.events if heir.has_begun else -1.0)
    if replaces:
        heir.model.clock[EVENTS] = events
        states.restore(state.regression, heir)
    if replaces or drops:
        heir.model.clock[EVENTS] = 0.0
    if begins:
        heir.begin(events)


# ---------------------------------------------------------------------- with each block


@inline_exact
def _follow_nothing(work, events, start, T, weights, scores):
    pass


@inner_exact
def _follow_losses(work, events, start, T, weights, scores):
    """Let the successor learn a block as well, compare both by the scores before it, and watch the losses."""
    own, heir, held, b = work.own, work.heir, work.succession, weights.size
    other, count, two = shaped(work.other, scores.shape), own.model.clock[EVENTS], heir.model.clock[EVENTS] > 0.0
    if two and not learn_block(work.seen, heir, events.rows, start, T, weights, other):
        heir.model.clock[EVENTS] = 0.0  # what diverges succeeds nobody
        two = False
    targets, losses, units, shares = events.targets[start : start + b], work.losses, work.units, work.shares
    learned = follow_squares(held, scores, other, two, targets, weights, work.values, losses, units, shares)
    latest = count - (heir if two else own).squares.record[least_squares.EVENTS]
    watch_losses(held, losses[:learned], units, shares, count, latest, work.times, work.found)


def events_ahead(own, heir, contest, times):
    """Placeholder: return the number of events until something is to be settled; 0 if there is no memory for a successor."""


def follow_block(work, events, start, T, weights, scores):
    """Placeholder: with a succession, let the successor learn as well, and compare both by the scores before."""


FUNCTIONS: dict[Hashable, dict[str, Callable]] = {  # of a loop, by whether there is a succession
    False: {"events_ahead": _events_ahead_alone, "follow_block": _follow_nothing},
    True: {"events_ahead": _events_ahead_of_both, "follow_block": _follow_losses},
}


# ---------------------------------------------------------------------- merging


def of_the_same_events(kernel: Any, *merged: Any) -> list[Any]:
    """Return the states to merge without the start that they were continued from, unless it is part of what answers in both."""
    begun = {one.model.clock[EVENTS] - one.regression.events for one in merged}
    return list(merged[:2] if merged[0].succession and len(begun) > 1 else merged)
