"""Optional packages, installed as extras such as ``kernling[data]``."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(purpose: str, extra: str, *modules: str) -> Any:
    """Import modules of an optional package and return the first; an ImportError says what needs it and how to install it."""
    try:
        package, *_ = [import_module(name) for name in modules]
    except ImportError as error:
        raise ImportError(f"{purpose}: pip install 'kernling[{extra}]'") from error
    return package


def need_pyarrow() -> Any:
    """Import pyarrow, or raise an error that says how to install it."""
    return need("this source needs pyarrow", "data", "pyarrow", "pyarrow.csv", "pyarrow.ipc", "pyarrow.parquet")
