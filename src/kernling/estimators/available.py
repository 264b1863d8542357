"""Methods that are there only under a condition."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any


class there_if:
    """A decorator of a method that is there unless a check of the object raises an AttributeError, which says why.

    Faster than scikit-learn's ``available_if``, which hides the reason.

    Examples
    --------
    >>> from kernling.estimators.available import there_if
    >>> class Door:
    ...     is_open = False
    ...     def _can_enter(self):
    ...         if not self.is_open:
    ...             raise AttributeError("the door is closed")
    ...     @there_if(_can_enter)
    ...     def enter(self):
    ...         return "welcome"
    >>> hasattr(Door(), "enter")
    False
    """

    def __init__(self, check: Callable[[Any], Any]):
        self.check = check

    def __call__(self, method: Callable) -> Any:
        self.method, self.__doc__ = method, method.__doc__
        return self

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self.method
        self.check(owner)
        return MethodType(self.method, owner)
