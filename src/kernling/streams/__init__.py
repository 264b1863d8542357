"""Any data in, in chunks of (X, y): arrays, tables, files, synthetic streams and named data sets."""

from .base import Stream
from .columns import Columns
from .datasets import Dataset, dataset, dataset_names
from .encode import Encode, part_from_state
from .entry import stream
from .parts import MinMax, Standardise
from .synthetic import synthetic
from .writing import write

__all__ = [
    "Columns",
    "Dataset",
    "Encode",
    "MinMax",
    "Standardise",
    "Stream",
    "dataset",
    "dataset_names",
    "part_from_state",
    "stream",
    "synthetic",
    "write",
]
