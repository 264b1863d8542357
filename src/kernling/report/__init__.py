"""Tables, figures and HTML pages from rows of results."""

from .figures import curve, experts, mark, surface, sweep
from .page import page
from .summary import decisions
from .tables import cells, comparison, markdown, show, terminal, upright

__all__ = [
    "cells",
    "comparison",
    "curve",
    "decisions",
    "experts",
    "mark",
    "markdown",
    "page",
    "show",
    "surface",
    "sweep",
    "terminal",
    "upright",
]
