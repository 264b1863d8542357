"""Run tests with the oldest and the newest versions of the dependencies, each in a fresh environment.

    python tests/versions.py oldest newest
    python tests/versions.py numba==0.65.* -- tests/compiler

An environment has the versions that are named, or, for ``oldest``, the lower ends in pyproject.toml, or else the newest that go
together.  After ``--`` follow pytest's arguments; by default, all compiled code and all methods are tested.  Packages are
installed by pip, from wherever it is set up to find them.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

TOP = Path(__file__).parents[1]
TESTS = ["tests/compiler", "tests/core", "tests/methods"]
TOOLS = ["pytest>=8.2", "pytest-xdist>=3.6", "mpmath", "hypothesis", "pandas"]


def requirements(which: str) -> list[str]:
    """Return what to install: pyproject.toml's dependencies, for some the oldest or a given version."""
    declared = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    if which == "newest":
        return declared
    if which == "oldest":
        return [re.sub(r">=([\d.]+).*", _oldest, one) for one in declared]
    return [*declared, which]


def _oldest(found: re.Match[str]) -> str:
    """Return the first release with these two numbers: ``>=0.62,<0.69`` becomes ``~=0.62.0``."""
    first, second = found[1].split(".")[:2] if "." in found[1] else (found[1], "0")
    return f"~={first}.{second}.0"


def run(which: str, tests: list[str]) -> bool:
    """Create an environment, run the tests there, and say what was installed; return whether they passed."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = next(path for path in (Path(folder, "bin", "python"), Path(folder, "Scripts", "python.exe")) if path.exists())
        subprocess.run([python, "-m", "pip", "install", "-q", *TOOLS, *requirements(which)], check=True)
        names = ["numba", "llvmlite", "numpy", "scipy", "scikit-learn"]
        program = f"from importlib.metadata import version; print(*(f'{{n}} {{version(n)}}' for n in {names}), sep=', ')"
        print(
            f"{which}: Python {sys.version.split()[0]},",
            subprocess.check_output([python, "-c", program], text=True),
            flush=True,
        )
        paths = {"PYTHONPATH": str(TOP / "src"), "KERNLING_CACHE": str(Path(folder, "cache"))}
        done = subprocess.run([python, "-m", "pytest", *tests], cwd=TOP, env={**os.environ, **paths})
    return done.returncode == 0


def main() -> None:
    """Run the tests in all environments; exit with 1 if some fail."""
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    results = {which: run(which, words[end + 1 :] or TESTS) for which in words[:end] or ["oldest", "newest"]}
    failed = [which for which, passed in results.items() if not passed]
    sys.exit(f"failed: {', '.join(failed)}" if failed else None)


if __name__ == "__main__":
    main()
