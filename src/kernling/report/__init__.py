"""Tables, figures and HTML pages from rows of results."""

from .figures import curve, experts, surface, sweep
from .page import page
from .tables import cells, markdown, show, terminal, upright

__all__ = ["cells", "curve", "experts", "markdown", "page", "show", "surface", "sweep", "terminal", "upright"]
