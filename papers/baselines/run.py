"""Methods on a budget, online, on three data sets: mistakes, points and speed at budgets of 100, 400 and 1,000.

    python papers/baselines/run.py [data sets, of: a9a ijcnn1 cod-rna] [permutations=1] [budgets=100,400,1000]

Reads the files that KERNLING_DATA names, writes what was measured into rows.jsonl and, from all of its rows, RESULTS.md.

Each method's own parameters are the best of a small grid, on the first rows of another order and with the smallest budget.
"""

import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from kernling import baselines
from kernling.evaluate import online, summary
from kernling.streams import dataset

FOLDER = Path(__file__).parent
GAMMAS = {"a9a": 2.0**-4, "ijcnn1": 1.0, "cod-rna": 1.0}
BUDGETS = [100, 400, 1000]
TUNING = 1000  # the seed of the order that parameters are chosen on; results are on those from 0 on
FEW = 5000  # rows on which they are chosen
LAMBDAS = [1e-2, 1e-3, 1e-4, 1e-5]
METHODS: dict[str, tuple[str, dict[str, list]]] = {  # label: class and grid
    "RBP": ("RBP", {}),
    "Forgetron": ("Forgetron", {}),
    "Budget Perceptron": ("BudgetPerceptron", {"beta": [0.0, 0.5]}),
    "Projectron": ("Projectron", {"threshold": [0.05, 0.2, 0.5]}),
    "Projectron++": ("ProjectronPlusPlus", {"threshold": [0.05, 0.2, 0.5]}),
    "NORMA": ("NORMA", {"eta": [0.1, 0.3, 1.0], "lam": [1e-3, 1e-2]}),
    "BPA-S": ("BPAS", {"C": [0.05, 0.2, 1.0]}),
    "BPA-NN": ("BPANN", {"C": [0.05, 0.2, 1.0]}),
    "BOGD": ("BOGD", {"eta": [0.1, 0.3, 1.0], "lam": [1e-3, 1e-2]}),
    "BOGD++": ("BOGD", {"eta": [0.1, 0.3, 1.0], "lam": [1e-3, 1e-2], "removal": ["weighted"]}),
    "BSGD, removal": ("BSGD", {"lam": LAMBDAS, "maintenance": ["removal"]}),
    "BSGD, projection": ("BSGD", {"lam": LAMBDAS, "maintenance": ["projection"]}),
    "BSGD, merging": ("BSGD", {"lam": LAMBDAS, "maintenance": ["merging"]}),
    "NPBSGD": ("NPBSGD", {"lam": LAMBDAS, "beta": [100.0, 1000.0]}),
}
MOST = {"BSGD, projection": 100}  # a step costs the square of the budget, and every event with a loss is a step
TOOLBOX = {  # a C++ toolbox for online kernel learning on cod-rna: mistakes in percent
    ("BPA-S", 100): 15.5,
    ("BPA-S", 400): 10.1,
    ("Projectron++", 100): 9.3,
    ("Projectron++", 400): 7.5,
}


def best_of_grid(label: str, gamma: float, data: tuple) -> Any:
    """The model with the fewest mistakes on the rows for tuning."""
    name, grid = METHODS[label]
    cls = getattr(baselines, f"{name}Classifier")
    models = [cls(budget=BUDGETS[0], gamma=gamma, **dict(zip(grid, values, strict=True))) for values in product(*grid.values())]
    return min(models, key=lambda model: online(model, data, seed=TUNING)[-1]["mistakes"])


def measured(label: str, name: str, budget: int, rows: list[dict]) -> dict:
    """One row of the table."""
    (row,) = summary(rows)
    params = json.loads(rows[0]["params"])
    shown = [key for key in METHODS[label][1] if key not in ("removal", "maintenance")]
    out = {
        "data": name,
        "budget": budget,
        "method": label,
        "parameters": ", ".join(f"{key} {params[key]:g}" for key in ["gamma", *shown]),
        "rows": row["events"],
        "permutations": row["permutations"],
        "mistakes": 100.0 * row["mistakes"],
        "deviation": 100.0 * row["mistakes_std"],
        "points": row["n_stored"],
        "per_second": row["events"] / row["seconds"],
        "majority": 100.0 * (1.0 - row["majority"]),
    }
    print(out, flush=True)
    return out


def run(name: str, permutations: int, budgets: list[int]) -> Iterator[dict]:
    X, y = dataset(name).load()
    few = np.random.default_rng(TUNING).permutation(len(y))[:FEW]
    for label in METHODS:
        model = best_of_grid(label, GAMMAS[name], (X[few], y[few]))
        for budget in budgets:
            if budget <= MOST.get(label, budget):
                model = model.set_params(budget=budget)
                yield measured(label, name, budget, online(model, (X, y), permutations=permutations))


def table(rows: list[dict]) -> str:
    lines = [
        "| data | budget | method | parameters | rows | orders | mistakes, % | points | events per second | majority, % "
        "| toolbox's mistakes, % |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        theirs = TOOLBOX.get((row["method"], row["budget"])) if row["data"] == "cod-rna" else None
        deviation = f" ± {row['deviation']:.2f}" if row["permutations"] > 1 else ""
        lines.append(
            f"| {row['data']} | {row['budget']} | {row['method']} | {row['parameters']} | {row['rows']:,} "
            f"| {row['permutations']} | {row['mistakes']:.2f}{deviation} | {row['points']:,.0f} "
            f"| {row['per_second']:,.0f} | {row['majority']:.2f} | {theirs or '-'} |"
        )
    return "\n".join(lines)


NOTES = """# Methods on a budget, online

Written by `python papers/baselines/run.py`, whose text says how parameters were chosen. Test-then-train over random orders of
the training part; "orders" is their number, ± the standard deviation over them. cod-rna is scaled to [-1, 1]. Events per
second are those of one core that others used too. "majority" always says the more common class. The toolbox's numbers are for
orientation: its parameters and its order of the rows are not known.

"""


def place(row: dict) -> tuple:
    """Where a row stands in the table."""
    return [*GAMMAS].index(row["data"]), row["budget"], [*METHODS].index(row["method"])


def main(arguments: list[str]) -> None:
    options = dict(argument.split("=") for argument in arguments if "=" in argument)
    names = [argument for argument in arguments if "=" not in argument] or list(GAMMAS)
    budgets = [int(budget) for budget in options.get("budgets", ",".join(map(str, BUDGETS))).split(",")]
    path = FOLDER / "rows.jsonl"
    held = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for name in names:
        for new in run(name, int(options.get("permutations", 1)), budgets):
            held = [row for row in held if place(row) != place(new)] + [new]
            held.sort(key=place)
            path.write_text("".join(json.dumps(row) + "\n" for row in held))
            (FOLDER / "RESULTS.md").write_text(NOTES + table(held) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
