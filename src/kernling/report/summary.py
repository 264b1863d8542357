"""A summary for decisions, as lines for a terminal."""

from __future__ import annotations

import math
from typing import Any

from ..evaluate.summary import Summary
from ..tables.table import category
from .tables import text

WIDEST = 6  # classes, up to which each pair is shown
LONGEST = 12  # classes in a list
COLUMN = 18  # characters of a label


def decisions(summary: Summary) -> list[str]:
    """Return the course of the error over the stream and, for classifiers, recall, precision and confusion by class.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.evaluate import Batch
    >>> from kernling.evaluate.summary import Summary
    >>> from kernling.report import decisions
    >>> summary = Summary("classification")
    >>> summary.update(Batch(np.array(["a"] * 9 + ["b"]), np.array(["a"] * 10)))
    >>> print("\\n".join(decisions(summary)))
    mistakes over time: ▁▁▁▁▁▁▁▁▁█ from 0.00 % to 100.00 %
    class      rows   recall precision    as a    as b
    a             9 100.00 %   90.00 %       9       0
    b             1   0.00 %                 1       0
    never predicts b
    """
    measured, name = ("mistakes", "mistakes") if summary.task == "classification" else ("RMSE", "rmse")
    first, last = (float(mean) if name == "mistakes" else math.sqrt(mean) for mean in summary.trail.means(10)[[0, -1]])
    lines = [f"{measured} over time: {summary.trail.blocks()} from {text(name, first)} to {text(name, last)}"]
    if not summary.is_counted:
        return lines
    lines += _by_class(summary)
    for what, labels in (("never predicts", summary.never_predicted()), ("is never right about", summary.never_right())):
        if labels:
            lines.append(f"{what} {', '.join(_name(label) for label in labels[:LONGEST])}")
    error = summary.calibration_error()
    if not math.isnan(error):
        lines.append(f"calibration: probabilities are off by {text('accuracy', error)} on average")
    return lines


def _name(label: Any) -> str:
    return category(label, "target")[:COLUMN]


def _by_class(summary: Summary) -> list[str]:
    pairs, classes = summary.pairs, summary.classes
    came, said = pairs.sum(axis=1), pairs.sum(axis=0)
    order = sorted(range(len(classes)), key=lambda place: -came[place])[:LONGEST]
    few = len(classes) <= WIDEST
    order = sorted(order) if few else order
    names = [_name(label) for label in classes]
    wide = max(5, *(len(names[place]) for place in order))
    ranked = summary.is_imbalanced() and any(not math.isnan(summary.auc(label)) for label in classes)
    cells = [max(7, len(name) + 3) for name in names]
    head = f"{'class':{wide}} {'rows':>9} {'recall':>8} {'precision':>9}" + (f" {'AUC':>8}" if ranked else "")
    head += "".join(f" {f'as {name}':>{cell}}" for name, cell in zip(names, cells, strict=True)) if few else ""
    lines = [head]
    for place in order:
        recall = text("accuracy", float(pairs[place, place] / came[place])) if came[place] else ""
        precision = text("accuracy", float(pairs[place, place] / said[place])) if said[place] else ""
        line = f"{names[place]:{wide}} {came[place]:>9,} {recall:>8} {precision:>9}"
        line += f" {text('auc', summary.auc(classes[place])):>8}" if ranked else ""
        line += "".join(f" {count:>{cell},}" for count, cell in zip(pairs[place], cells, strict=True)) if few else ""
        lines.append(line.rstrip())
    rest = len(classes) - len(order)
    return [*lines, f"and {rest:,} more classes"] if rest else lines
