"""The papers' data sets, tables and figures: what a researcher needs to run them again."""

from .again import run_again
from .datasets import Dataset, dataset, dataset_names

__all__ = ["Dataset", "dataset", "dataset_names", "run_again"]
