"""Scoring of rows with an expansion, a linear model on features, or both."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from .averages import LAST, write_mix
from .blas import one_thread
from .expansion import SCALE, Expansion
from .fourier import Linear, group_weight
from .kernels import Kernel
from .rows import Rows, row_count
from .run import add_scores
from .setup import Setup
from .struct import by_address


class Function(NamedTuple):
    """The scores of a model: the sum of its parts, each with one group of coefficients, plus an offset for each output."""

    kernel: Kernel
    parts: list[Expansion | Linear]
    offset: np.ndarray  # (outputs,)


def score(setup: Setup, state: Any, rows: Rows, threads: int = 1) -> np.ndarray:
    """Return the output of the model for each row, (rows, outputs); the result does not depend on the number of threads."""
    n = row_count(rows)
    out = np.zeros((n, state.model.coef.shape[1]))
    blocks = -(-n // setup.block_size)
    threads = max(1, min(threads, blocks))
    cuts = [setup.block_size * (blocks * i // threads) for i in range(threads)] + [n]
    for part in frozen_parts(setup, state):
        if threads == 1:
            add_scores(setup, part, rows, out, 0, n)
            continue
        add = one_thread(add_scores)
        with ThreadPoolExecutor(threads) as pool:
            for job in [pool.submit(add, setup, part, rows, out, *cuts[i : i + 2]) for i in range(threads)]:
                job.result()
    return out


def frozen_parts(setup: Setup, state: Any) -> list[Expansion | Linear]:
    """Return the functions whose sum is the output, each with one group of coefficients and no scale."""
    parts: list[Expansion | Linear] = []
    for part in state:
        if isinstance(part, Expansion):
            mix = np.empty(part.coef.shape[0])
            if setup.output == LAST:
                mix[:] = 0.0
                mix[0] = part.clock[SCALE]
            else:
                write_mix(by_address(part), setup.output, setup.fraction, mix)
            parts.append(part._replace(coef=np.tensordot(mix, part.coef, (0, 0))[np.newaxis]))
        elif isinstance(part, Linear):
            weights = [group_weight(part, setup.output, g) for g in range(len(part.coef))]
            parts.append(part._replace(coef=np.tensordot(weights, part.coef, 1)[np.newaxis]))
    return parts
