"""Sources of random numbers, and how to go back to where one stood."""

from __future__ import annotations

import numpy as np

SOURCES = (np.random.Generator, np.random.RandomState)


class RngState:
    """Where a source of random numbers stood."""

    def __init__(self, source: np.random.Generator | np.random.RandomState):
        self.bits = source._bit_generator if isinstance(source, np.random.RandomState) else source.bit_generator
        self.state = self.bits.state

    def restore(self) -> None:
        """Go back there."""
        self.bits.state = self.state


def generator(random_state) -> np.random.Generator:
    """The generator that a random_state asks for."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    return np.random.default_rng(random_state)
