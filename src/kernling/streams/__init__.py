"""Streams of (X, y) chunks from arrays, tables, files and generators, and running preprocessing."""

from .base import Stream
from .encode import Encode, part_from_state
from .entry import stream
from .parts import MinMax, Standardise
from .synthetic import synthetic
from .tables import Table
from .writing import write

__all__ = [
    "Encode",
    "MinMax",
    "Standardise",
    "Stream",
    "Table",
    "part_from_state",
    "stream",
    "synthetic",
    "write",
]
