"""Tables of named columns, and running preprocessing: encoding, imputation and scaling."""

from .encode import Encode, part_from_state
from .scalers import MinMax, Standardise
from .table import Table

__all__ = ["Encode", "MinMax", "Standardise", "Table", "part_from_state"]
