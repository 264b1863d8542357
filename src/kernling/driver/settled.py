"""Loops whose compiled calls stop where Python has something to settle: sums to fold, parameters that the events decide."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from ..core.blas import one_thread
from ..core.rows import Rows
from ..core.setup import Setup
from .loops import Loop, Nothing


class SettledLoop(Loop):
    """The compiled forms of a loop over blocks, ``template(call, first, last)``, and what Python settles between its calls.

    Its buffers, ``work(setup, params, state, size)``, tell by ``due[0]`` whether ``settle(setup, params, state)`` has something
    to do, which it does in place.  The template's functions depend on the kind of the state: ``functions[kind(state)]``.
    """

    def __init__(
        self,
        template: Callable,
        work: Callable,
        settle: Callable[[Setup, Any, Any], None],
        functions: Mapping[Hashable, Mapping[str, Callable]],
        kind: Callable[[Any], Hashable] = lambda state: None,
    ):
        def buffers(setup: Setup, params: Any, state: Any, rows: Rows, size: int) -> tuple:
            return work(setup, params, state, size), Nothing()

        self.settle, self._kind = one_thread(settle), kind
        self._loops = {key: Loop(template, buffers, blas=False, exact=True, **bound) for key, bound in functions.items()}

    def of(self, state: Any) -> Loop:
        """Return the loop for a state of this kind."""
        return self._loops[self._kind(state)]
