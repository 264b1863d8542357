"""The time to the first prediction, in seconds of processor time, with an empty and with a full compile cache.

    python -m benchmarks.cold [names of methods or commands, such as avm spa demo]

Each figure is that of a separate process, including the import; with a full cache, that of the best of five.  A first fit
cannot cost less than ``import sklearn.base``, which is measured in turns with it: ``over it`` is the difference.  See README.md
in this folder.
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

COLD_GOALS, WARM_GOAL = {"auto": 7.0}, 0.4  # those of the other methods are 6; a full cache is compared with FLOOR
FLOOR = ["-c", "import sklearn.base"]
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


class Case(NamedTuple):
    """What is run, and the goals, in seconds of processor time."""

    arguments: list[str]
    cold_goal: float  # with an empty cache
    warm_goal: float  # with a full cache
    over_floor: bool = False  # whether the second goal is for what remains without the time of importing scikit-learn


def cases(folder: Path) -> dict[str, Case]:
    """Return the cases by name."""
    table = folder / "small.csv"
    table.write_text("a,b,y\n" + "".join(f"{i % 7},{i % 5},{(i % 7 > 3) ^ (i % 5 > 2):d}\n" for i in range(500)))
    block = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    main_methods = {name: entry.classes() for name, entry in registry.METHODS.items() if entry.is_main}
    methods = [name for name, classes in main_methods.items() if any(cls.task == "classification" for cls in classes)]
    return {
        **{
            name: Case(["-c", FIRST.format(name=name)], COLD_GOALS.get(name, 6.0), WARM_GOAL, over_floor=True)
            for name in methods
        },
        "help": Case(command("--help"), 0.4, 0.4),
        "run": Case(command("run", str(table), "--target", "y"), 9.5, 1.1, over_floor=True),
        "readme": Case(["-c", block[1] if block else ""], 12.0, 1.1, over_floor=True),
        "demo": Case(command("demo"), 45.0, 15.0),
    }


def row(name: str, case: Case, folder: str) -> str:
    """Measure a case; return a row of the table."""
    with tempfile.TemporaryDirectory() as cache:
        cold = cost(case.arguments, cache, folder)
        cost(FLOOR, cache, folder)  # may have to write bytecode
        pairs = [(cost(FLOOR, cache, folder), cost(case.arguments, cache, folder)) for _ in range(WARM_RUNS)]
    floor, warm = (min(costs) for costs in zip(*pairs, strict=True))
    beyond = warm.processor - floor.processor
    goal = f"{case.warm_goal:g}"
    figures = [
        f"{cold.processor:.1f}",
        f"{cold.clock:.1f}",
        f"{case.cold_goal:g}",
        f"{warm.processor:.2f}",
        f"{warm.clock:.2f}",
    ]
    figures += [f"{floor.processor:.2f}", f"{beyond:.2f}", goal] if case.over_floor else ["", "", f"{goal} in all"]
    return f"| {name} | {' | '.join(figures)} |"


def main() -> None:
    """Print a table of the cases on the command line, or of all cases."""
    with tempfile.TemporaryDirectory() as folder:
        known = cases(Path(folder))
        unknown = [name for name in sys.argv[1:] if name not in known]
        if unknown:
            raise SystemExit(f"there is no case {unknown[0]!r}; the cases are {', '.join(known)}")
        print("| | empty cache | by the clock | goal | full cache | by the clock | `import sklearn.base` | over it | goal |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name in sys.argv[1:] or known:
            print(row(name, known[name], folder), flush=True)


if __name__ == "__main__":
    main()
