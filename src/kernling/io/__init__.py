"""Streams of (X, y) chunks from arrays, tables, files and generators, and writing rows to files."""

from .base import Stream
from .sources import stream
from .synthetic import synthetic
from .writing import write

__all__ = ["Stream", "stream", "synthetic", "write"]
