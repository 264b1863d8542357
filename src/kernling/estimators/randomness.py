"""Random number generators, and restoring their states."""

from __future__ import annotations

import numpy as np

SOURCES = (np.random.Generator, np.random.RandomState)


class RngState:
    """Snapshot of the state of a random number generator."""

    def __init__(self, source: np.random.Generator | np.random.RandomState):
        self.bits = source._bit_generator if isinstance(source, np.random.RandomState) else source.bit_generator
        self.state = self.bits.state

    def restore(self) -> None:
        """Restore the state."""
        self.bits.state = self.state


def generator(random_state) -> np.random.Generator:
    """Return the generator for a random_state."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    return np.random.default_rng(random_state)
