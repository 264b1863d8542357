"""The treatments of columns that parameters give, and the checks of these parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .past import wanted_of
from .table import category

MOST = 2**31 - 1  # columns
OPTIONS = {"categorical": "category", "numeric": "number", "date": "date", "text": "text", "ignore": "ignore"}


def given_treatments(encode: Any) -> dict[str, Any]:
    """Validate the parameters of an ``Encode`` and return the treatments that they give to columns."""
    if encode.hash is not None and (not isinstance(encode.hash, int) or not 1 <= encode.hash <= MOST):
        raise ValueError(f"hash must be an integer of columns from 1 to {MOST}, not {encode.hash!r}")
    if not isinstance(encode.limit, int) or not 1 <= encode.limit <= MOST:
        raise ValueError(f"limit must be an integer of at least 1, not {encode.limit!r}")
    if encode.missing not in ("error", "impute"):
        raise ValueError(f"missing must be 'error' or 'impute', not {encode.missing!r}; stream(missing='drop') drops such rows")
    if encode.scale is not None and not hasattr(encode.scale, "learn_transform"):
        raise TypeError(f"scale must be Standardise() or MinMax(), not {encode.scale!r}")
    if encode.decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be a point, a comma or None, not {encode.decimal!r}")
    if encode.day_first not in (None, True, False):
        raise ValueError(f"day_first must be True, False or None, not {encode.day_first!r}")
    if wanted_of(encode.lags, encode.windows) and encode.missing != "impute":
        raise ValueError("lags and windows need missing='impute', since the first rows have none before them")
    words = encode.categorical if isinstance(encode.categorical, Mapping) else {}
    chosen = {treatment: getattr(encode, option) for option, treatment in OPTIONS.items()}
    given: dict[str, Any] = {}
    for treatment, names in (*chosen.items(), *(("category", values) for values in words.values())):
        if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
            option = next(option for option, one in OPTIONS.items() if one == treatment)
            raise TypeError(f"{option} must be a list of names, not {names!r}")
    for treatment, names in chosen.items():
        for name in names:
            if name in given:
                raise ValueError(f"column {name!r} cannot be both {given[name]} and {treatment}")
            given[str(name)] = treatment
    if encode.time is not None and given.setdefault(encode.time, "date") != "date":
        raise ValueError(f"column {encode.time!r} cannot be both {given[encode.time]} and the time")
    for name, values in words.items() if encode.hash is None else ():
        given[str(name)] = [category(value, name) for value in values]
        if len(set(given[str(name)])) < len(given[str(name)]):
            raise ValueError(f"the categories of {name!r} must be distinct")
    return given
