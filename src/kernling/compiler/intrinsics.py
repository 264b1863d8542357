"""Functions that have code of their own in compiled code, and those that are Python functions without it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

variants: dict[Callable, dict[str, Any]] = {}  # compiled functions that stand for a plain one, by the type of its argument
only_numba: set[Callable] = set()  # those of them that the fast backend leaves to Numba


def shaped(values, shape):
    """Return the first numbers of a contiguous array as an array of this shape, without checks."""
    return values.reshape(-1)[: np.prod(shape, dtype=int)].reshape(shape)


def number_of(function, argument):
    """Call a C function by its address, ``double function(void *argument)``; without compiled code, it is not called."""
    raise NotImplementedError("there are no addresses without compiled code")


def add_product(a, b, factor, out):
    """out += factor a'b, for tables of doubles with contiguous rows, none of them empty; compiled code calls BLAS."""
    out += factor * (a.T @ b)


def by_type(function: Callable, *, float32: Any, float64: Any, numba: bool = False) -> None:
    """Let compiled code call one of two compiled functions instead of a plain one; with ``numba``, Numba compiles callers."""
    variants[function] = {"float32": float32, "float64": float64}
    if numba:
        only_numba.add(function)


def product_addresses() -> dict[str, int]:
    """Return the addresses of BLAS's matrix products by the letter of their type.

    They are in the capsules in which SciPy, as documented, offers its BLAS to other compiled code.
    """
    from scipy.linalg import cython_blas

    # prototypes of our own: the attributes of ctypes.pythonapi are everybody's
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    capsules = {letter: cython_blas.__pyx_capi__[f"{letter}gemm"] for letter in "sd"}
    return {letter: pointer(capsule, name(capsule)) for letter, capsule in capsules.items()}
