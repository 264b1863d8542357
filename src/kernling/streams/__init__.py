"""Any data in, in chunks of (X, y): arrays, tables, files and synthetic streams."""

from .base import Stream
from .columns import Columns
from .encode import Encode, part_from_state
from .entry import stream
from .parts import MinMax, Standardise
from .synthetic import synthetic
from .writing import write

__all__ = [
    "Columns",
    "Encode",
    "MinMax",
    "Standardise",
    "Stream",
    "part_from_state",
    "stream",
    "synthetic",
    "write",
]
