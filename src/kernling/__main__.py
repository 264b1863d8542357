"""``python -m kernling`` is the command line."""

from .cli import main

main()
