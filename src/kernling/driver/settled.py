"""Loops whose compiled calls stop where Python has something to settle: sums to fold, parameters that the events decide."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from ..compiler import inner_exact
from ..core.blas import one_thread
from ..core.rows import Rows
from ..core.setup import Setup
from .loops import Loop, Nothing


@inner_exact
def record(out, before, start):
    """Write the outputs of a block into the rows of ``before``, if it has any."""
    if before.shape[0] > 0:
        for j in range(out.shape[1]):
            for o in range(out.shape[0]):
                before[start + j, o] = out[o, j]


class SettledLoop(Loop):
    """The compiled forms of a loop over blocks, ``template(call, first, last)``, and what Python settles between its calls.

    Its buffers, ``work(setup, params, state, rows, size)``, tell by ``due[0]`` whether ``settle(setup, params, state)`` has
    something to do, which it does in place.  Until then, ``until_due(state)`` events are learned by one call, which changes
    nothing if it diverges.  The template's functions depend on the kind of the state: ``functions[kind(state)]``.  The buffers
    hold numbers that settling changes: ``stamp(state)``.
    """

    def __init__(
        self,
        template: Callable,
        work: Callable,
        settle: Callable[[Setup, Any, Any], None],
        until_due: Callable[[Any], int],
        functions: Mapping[Hashable, Mapping[str, Callable]],
        kind: Callable[[Any], Hashable] = lambda state: None,
        stamp: Callable[[Any], Any] = lambda state: None,
    ):
        def buffers(setup: Setup, params: Any, state: Any, rows: Rows, size: int) -> tuple:
            return work(setup, params, state, rows, size), Nothing()

        self.settle, self.until_due, self._kind, self._stamp = one_thread(settle), until_due, kind, stamp
        self._loops = {key: Loop(template, buffers, blas=False, exact=True, **bound) for key, bound in functions.items()}

    def of(self, state: Any) -> Loop:
        """Return the loop for a state of this kind."""
        return self._loops[self._kind(state)]

    def stamp(self, state: Any) -> Any:
        """Return what the buffers for a state depend on besides its arrays."""
        return self._stamp(state)
