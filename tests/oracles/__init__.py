"""Slow references of all methods, one module each, found by looking into this folder."""

from importlib import import_module
from pkgutil import iter_modules

from .common import Case as Case
from .common import encoded as encoded
from .common import outputs as outputs
from .common import stream as stream

CASES: dict[str, list[Case]] = {}
for _module in iter_modules(__path__):
    CASES |= getattr(import_module(f"{__name__}.{_module.name}"), "CASES", {})
