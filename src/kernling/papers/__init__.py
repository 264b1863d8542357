"""The papers' data sets, tables and figures, for reproducing them."""

from .again import run_again
from .datasets import Dataset, dataset, dataset_names

__all__ = ["Dataset", "dataset", "dataset_names", "run_again"]
