"""Any data in, in chunks of (X, y): arrays, tables, files, synthetic streams and named data sets."""

from .base import Stream
from .datasets import Dataset, dataset, dataset_names
from .encode import Encode, part_from_state
from .entry import stream
from .parts import MinMax, Standardise
from .synthetic import synthetic
from .tables import Table
from .writing import write

__all__ = [
    "Dataset",
    "Encode",
    "MinMax",
    "Standardise",
    "Stream",
    "Table",
    "dataset",
    "dataset_names",
    "part_from_state",
    "stream",
    "synthetic",
    "write",
]
