"""How our results compare with the printed ones, cell by cell."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ..evaluate.metrics import metric_class
from ..evaluate.rows import Row
from ..report.tables import Cells
from .tables import ABSENT, PENDING, Table, results

WITHIN, BETTER, WORSE = "reproduced", "better", "worse"
OURS_ONLY, PENDING_RUN, NO_DATA, NOT_RUN = "ours only", "not run yet", "no data", "not run"
KINDS = (WITHIN, BETTER, WORSE, OURS_ONLY, PENDING_RUN, NO_DATA, NOT_RUN)
FAR = 2.0  # printed deviations


class Verdict(NamedTuple):
    """A cell's verdict, the difference in printed deviations if one is printed, and the cause if it is far worse."""

    kind: str
    deviations: float | None
    cause: str | None

    @property
    def far_worse(self) -> bool:
        """Whether it is worse by more than two printed deviations."""
        return self.kind == WORSE and self.deviations is not None and self.deviations > FAR


def verdict(chosen: Table, row: Row) -> Verdict:
    """Return the verdict of a row of results.

    A cell is reproduced if ours differs from the printed number by at most the printed deviation, or the last digit if that is
    larger; where no deviation is printed, by at most ours over the orders.
    """
    if "ours" not in row:
        why = row["why"]
        kind = PENDING_RUN if why in PENDING else NO_DATA if why.endswith(ABSENT) else NOT_RUN
        return Verdict(kind, None, why)
    if row["printed"] is None:
        return Verdict(OURS_ONLY, None, None)
    sign = 1.0 if metric_class(chosen.facts["metric"]).low_is_good else -1.0
    loss = sign * (row["ours"] - row["printed"])
    digit = 0.01 if chosen.scale == 100.0 else 0.0001
    spread = row["printed_std"]
    allowed = max(digit, row.get("ours_std") or 0.0 if spread is None else spread)
    kind = WITHIN if abs(loss) <= allowed else BETTER if loss < 0.0 else WORSE
    return Verdict(kind, None if spread is None else loss / max(spread, digit), _cause(chosen, row))


def _cause(chosen: Table, row: Row) -> str | None:
    """Return what the table's file says about differences of this cell."""
    for cause in chosen.facts.get("causes", []):
        if row["data"] in cause.get("data", [row["data"]]) and row["method"] in cause.get("methods", [row["method"]]):
            return cause["why"]
    return None


def counts(chosen: list[Table]) -> Cells:
    """Return how many cells of each table have which verdict, and of all."""
    body, total = [], Counter[str]()
    for one in chosen:
        found = [verdict(one, row) for row in results(one)]
        number = Counter(said.kind for said in found) + Counter({"far": sum(said.far_worse for said in found)})
        total += number
        body.append(_line(one.name, number))
    body.append(_line("all", total))
    heads = ["name", "cells", *KINDS[:3], f"by more than {FAR:g} deviations", *KINDS[3:]]
    return Cells(heads, body, [False] + [True] * (len(heads) - 1))


def _line(name: str, number: Counter[str]) -> list[str]:
    cells = sum(number[kind] for kind in KINDS)
    return [name, f"{cells:,}", *(f"{number[kind]:,}" for kind in (*KINDS[:3], "far", *KINDS[3:]))]


def far_worse(chosen: list[Table]) -> list[str]:
    """Return a line for each cause of cells that are worse by more than two printed deviations, with the cells."""
    groups: dict[str, list[str]] = {}
    for one in chosen:
        for row in results(one):
            said = verdict(one, row)
            if said.far_worse:
                cell = f"{one.name}, {row['data']}, {row['method']} ({row['ours']:.4g}, printed {row['printed']:g})"
                groups.setdefault(said.cause or "the cause is not known", []).append(cell)
    return [f"{'; '.join(cells)}: {cause}" for cause, cells in groups.items()]
