"""The compiler: decorators for functions on arrays and numbers, and records that they take by address.

The rest of kernling imports these names, and nothing else of this package.
"""

from .cache import cache_folder
from .decorators import (
    COMPILED,
    UNIT,
    bind,
    entry_point,
    inline,
    inline_exact,
    inner,
    inner_exact,
    jit,
    jit_exact,
    pluggable,
)
from .intrinsics import add_product, by_type, number_of, shaped
from .progress import compiling
from .records import OWNER, FunctionField, address, by_address, strided

__all__ = [
    "COMPILED",
    "OWNER",
    "UNIT",
    "FunctionField",
    "add_product",
    "address",
    "bind",
    "by_address",
    "by_type",
    "cache_folder",
    "compiling",
    "entry_point",
    "inline",
    "inline_exact",
    "inner",
    "inner_exact",
    "jit",
    "jit_exact",
    "number_of",
    "pluggable",
    "shaped",
    "strided",
]
