"""Conversion of models to and from River (extra ``river``)."""

from .from_river import from_river
from .to_river import to_river

__all__ = ["from_river", "to_river"]
