"""Conversion of models to and from River (extra ``river``), and to CapyMOA's learners (``kernling.compat.capymoa``).

Each needs the other library only when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .from_river import from_river
    from .to_river import to_river

__all__ = ["from_river", "to_river"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'kernling.compat' has no attribute {name!r}")
    for own in __all__:  # both, since importing one may import the other, whose module has the name of its function
        globals()[own] = getattr(import_module(f"kernling.compat.{own}"), own)
    return globals()[name]
