"""Shapley values by their definition: all coalitions, and all rows that absent players may come from."""

from __future__ import annotations

from itertools import combinations, product
from math import factorial

import numpy as np


def worth(score, x, background, players, there) -> np.ndarray:
    """The mean score with the values of x where players are there, each of the others drawn on its own."""
    count = max(players) + 1
    absent = [player for player in range(count) if player not in there]
    rows = []
    for drawn in product(range(len(background)), repeat=len(absent)):
        source = dict(zip(absent, drawn, strict=True))
        rows.append([x[c] if own in there else background[source[own]][c] for c, own in enumerate(players)])
    return score(np.array(rows)).mean(axis=0)


def shapley(score, x, background, players) -> tuple[np.ndarray, np.ndarray]:
    """The value of each player, (players, outputs), and the base, (outputs,); ``score`` gives (rows, outputs)."""
    count = max(players) + 1
    worths = {
        there: worth(score, x, background, players, there)
        for size in range(count + 1)
        for there in combinations(range(count), size)
    }
    values = np.zeros((count, len(worths[()])))
    for there, without in worths.items():
        share = factorial(len(there)) * factorial(count - len(there) - 1) / factorial(count) if len(there) < count else 0.0
        for player in set(range(count)) - set(there):
            values[player] += share * (worths[tuple(sorted((*there, player)))] - without)
    return values, worths[()]
