"""Stubs for type checkers: public names follow from the registry when they are asked for, which a checker cannot see.

python tests/stubs.py writes them.
"""

from pathlib import Path

import kernling
from kernling import registry

PACKAGE = Path(kernling.__file__).parent
HEADER = "# Written by python tests/stubs.py.\n\n"


def imports(names: dict[str, str], package: str = "") -> str:
    """Import each name from its module in a package, and export it."""
    pairs = sorted((module.removeprefix(package), name) for name, module in names.items())
    return "".join(f"from .{module} import {name} as {name}\n" for module, name in pairs)


def stubs() -> dict[Path, str]:
    """The text of each stub."""
    return {
        PACKAGE / "__init__.pyi": f"{HEADER}{imports(kernling._names())}\n__version__: str\n",
        PACKAGE / "baselines" / "__init__.pyi": HEADER + imports(registry.public_names(main=False), "baselines."),
    }


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
