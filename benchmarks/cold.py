"""The time to the first prediction, in seconds of processor time, with an empty and with a full compile cache.

    python -m benchmarks.cold [names of methods or commands, such as avm spa demo]

Each figure is that of a separate process, including the import; with a full cache, that of the best of five.  See README.md in
this folder.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from kernling import registry

COLD_GOAL, WARM_GOAL = 8.0, 0.8
WARM_RUNS = 5
README = Path(__file__).parents[1] / "README.md"
FIRST = """
import numpy as np
from kernling import registry
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 10))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
model = registry.estimator_for({name!r}, "classification")()
model.fit(X, y).predict(X)
"""


class Cost(NamedTuple):
    """The time of one process and its children, in seconds."""

    processor: float
    clock: float


def cost(arguments: list[str], cache: str, folder: str) -> Cost:
    """Return the cost of running Python with these arguments and this compile cache; modules are compiled to bytecode once."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, begin = os.times(), time.perf_counter()
    result = subprocess.run(
        [sys.executable, *arguments],
        env={**environment, "KERNLING_CACHE": cache},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    after = os.times()
    if result.returncode:
        raise SystemExit(f"{' '.join(arguments)[:80]} failed:\n{result.stderr}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(used, time.perf_counter() - begin)


def command(*words: str) -> list[str]:
    """Return Python's arguments for a command of kernling."""
    return ["-m", "kernling", *words]


def cases(folder: Path) -> dict[str, tuple[list[str], float, float]]:
    """Return the arguments of each case by name, with the goals for an empty and a full cache."""
    table = folder / "small.csv"
    table.write_text("a,b,y\n" + "".join(f"{i % 7},{i % 5},{(i % 7 > 3) ^ (i % 5 > 2):d}\n" for i in range(500)))
    block = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    main_methods = {name: entry.classes() for name, entry in registry.METHODS.items() if entry.is_main}
    methods = [name for name, classes in main_methods.items() if any(cls.task == "classification" for cls in classes)]
    return {
        **{name: (["-c", FIRST.format(name=name)], COLD_GOAL, WARM_GOAL) for name in methods},
        "help": (command("--help"), 0.4, 0.4),
        "run": (command("run", str(table), "--target", "y"), COLD_GOAL + 1.5, 1.5),
        "readme": (["-c", block[1] if block else ""], 12.0, 1.5),
        "demo": (command("demo"), 45.0, 15.0),
    }


def main() -> None:
    """Print a table of the cases on the command line, or of all cases."""
    with tempfile.TemporaryDirectory() as folder:
        known = cases(Path(folder))
        unknown = [name for name in sys.argv[1:] if name not in known]
        if unknown:
            raise SystemExit(f"there is no case {unknown[0]!r}; the cases are {', '.join(known)}")
        print("| | empty cache | by the clock | goal | full cache | by the clock | goal |\n|---|---|---|---|---|---|---|")
        for name in sys.argv[1:] or known:
            arguments, cold_goal, warm_goal = known[name]
            with tempfile.TemporaryDirectory() as cache:
                cold = cost(arguments, cache, folder)
                warm = min(cost(arguments, cache, folder) for _ in range(WARM_RUNS))
            print(
                f"| {name} | {cold.processor:.1f} | {cold.clock:.1f} | {cold_goal:g} "
                f"| {warm.processor:.2f} | {warm.clock:.2f} | {warm_goal:g} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
