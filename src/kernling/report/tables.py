"""Tables of result rows for the terminal, Markdown and HTML."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..evaluate.metrics import METRICS
from ..evaluate.record import REFERENCES, Row, Shown, column

LONGEST = 30  # letters of a word that is not broken


class Cells(NamedTuple):
    """The cells of a table as text."""

    heads: list[str]
    body: list[list[str]]
    numeric: list[bool]  # by column


def text(name: str, value: Any, spread: Any = None) -> str:
    """Format a value of a column, with its standard deviation if there is one."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, (int, float)):
        return str(value)
    how = column(name).shown
    if how is Shown.SHARE:
        shown, spread_text = f"{100 * value:.2f} %", "" if spread is None else f"{100 * spread:.2f}"
    elif how is Shown.COUNT:
        shown, spread_text = f"{value:,.0f}", "" if spread is None else f"{spread:,.0f}"
    elif how is Shown.SECONDS:
        shown, spread_text = f"{value:.2f}", ""
    else:
        shown, spread_text = f"{value:.4g}", "" if spread is None else f"{spread:.2g}"
    return f"{shown} ± {spread_text}" if spread_text and spread else shown


def cells(rows: Iterable[Row], columns: Sequence[str] | None = None) -> Cells:
    """Return the cells of rows: the named columns, or the most informative ones.

    Examples
    --------
    >>> from kernling.report import cells
    >>> cells([{"mistakes": 0.0561, "events": 48842}]).body
    [['48,842', '5.61 %']]
    """
    rows = list(rows)
    names = list(columns) if columns is not None else _most_informative(rows)
    body = [[text(name, row.get(name), row.get(f"{name}_std")) for name in names] for row in rows]
    numeric = [any(isinstance(row.get(name), (int, float)) for row in rows) for name in names]
    return Cells([column(name).label for name in names], body, numeric)


def _metrics(held: Iterable[str]) -> list[str]:
    """Return the metrics among some columns, without the accuracy where mistakes say the same."""
    found = [name for name in METRICS if name in held]
    return [name for name in found if name != "accuracy" or "mistakes" not in found]


def comparison(rows: Sequence[Row]) -> Cells:
    """Return the cells of one row per method, followed by the reference predictions on the same rows.

    Examples
    --------
    >>> from kernling.report import comparison
    >>> comparison([{"method": "AVM", "mistakes": 0.05, "mistakes_constant": 0.24, "n_stored": 40}]).body
    [['AVM', '5.00 %', '40'], ['constant answer', '24.00 %', '']]
    """
    names = ["method", *_metrics(rows[0]), *(name for name in ("n_stored", "nbytes", "seconds") if name in rows[0])]
    return cells([*rows, *_reference_rows(rows)], names)


def _reference_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the reference predictions, from the first method that has them."""
    lines = []
    for reference, words in REFERENCES.items():
        row = next((row for row in rows if any(name.endswith(f"_{reference}") for name in row)), {})
        parts = [(name, part) for name in METRICS for part in ("", "_std") if f"{name}_{reference}{part}" in row]
        if parts:
            lines.append({"method": words} | {f"{name}{part}": row[f"{name}_{reference}{part}"] for name, part in parts})
    return lines


def moments(rows: Sequence[Row]) -> Cells:
    """Return the cells of the rows of runs; references are included only if there is a single run."""
    if len({row.get("method") for row in rows}) == 1:
        return cells(rows)
    measured = [name for metric in _metrics(rows[0]) for name in (metric, f"{metric}_window")]
    return cells(rows, [name for name in ("method", "events", *measured, "n_stored", "seconds") if name in rows[0]])


def _most_informative(rows: list[Row]) -> list[str]:
    held = {name for row in rows for name, value in row.items() if value is not None}
    several = [name for name in ("method", "data") if len({row.get(name) for row in rows}) > 1]
    found = _metrics(held)
    measured = [name for metric in found for name in (metric, f"{metric}_window") if name in held]
    beside = [name for name in (f"{found[0]}_{one}" for one in REFERENCES) if name in held] if found else []
    beside = beside or ["majority"]
    rest = [name for name in (*beside, "n_stored", "nbytes", "seconds", "test_seconds") if name in held]
    return [*several, *(name for name in ("permutations", "events") if name in held), *measured, *rest]


def upright(row: Row, columns: Sequence[str] | None = None) -> Cells:
    """Return the cells of one row, one line per column.

    Examples
    --------
    >>> from kernling.report import upright
    >>> upright({"mistakes": 0.0561, "events": 48842}).body
    [['events', '48,842'], ['mistakes', '5.61 %']]
    """
    shown = cells([row], columns)
    return Cells(["", ""], [[head, value] for head, value in zip(shown.heads, shown.body[0], strict=True)], [False, True])


def terminal(shown: Cells, title: str | None = None, caption: str | None = None) -> Any:
    """Return the table for a rich console.

    Examples
    --------
    >>> from kernling.report import cells, terminal
    >>> terminal(cells([{"mistakes": 0.0561, "events": 48842}])).row_count
    1
    """
    from rich.table import Table

    table = Table(show_header=any(shown.heads), title=title, caption=caption, title_justify="left", caption_justify="left")
    for i, (head, numeric) in enumerate(zip(shown.heads, shown.numeric, strict=True)):
        values = [line[i] for line in shown.body]
        widest = max([1, *map(len, [*values, *head.split()])])
        word = max([1, *(len(word) for value in [head, *values] for word in value.split())])
        table.add_column(
            textwrap.fill(head, widest),
            justify="right" if numeric else "left",
            no_wrap=numeric,
            min_width=widest if numeric else min(word, LONGEST),
            overflow="fold",
        )
    for line in shown.body:
        table.add_row(*line)
    return table


def show(shown: Cells, title: str | None = None, caption: str | None = None) -> None:
    """Print the table; in a terminal, only the leftmost columns that fit are shown.

    Examples
    --------
    >>> from kernling.report import show, upright
    >>> show(upright({"mistakes": 0.0561}))
    ┌──────────┬────────┐
    │ mistakes │ 5.61 % │
    └──────────┴────────┘
    """
    from rich.console import Console

    console = Console()
    table = terminal(shown, title, caption)
    unbounded = console.options.update(max_width=10_000)
    if not console.is_terminal:
        console.width = max(console.width, console.measure(table, options=unbounded).maximum)
    left_out: list[str] = []
    while len(table.columns) > 2 and console.measure(table, options=unbounded).minimum > console.width:
        table.columns.pop()
        left_out.insert(0, shown.heads[len(table.columns)])
    _fit(table, shown, console.width)
    console.print(table)
    if left_out:
        console.print(f"not shown because the terminal is too narrow: {', '.join(left_out)}")


def _fit(table: Any, shown: Cells, width: int) -> None:
    """Give columns from the left the room they would like; rich makes rows too long where columns have a least width."""
    spare = width - 1 - sum(one.min_width + 3 for one in table.columns)  # 3 for a border and the room beside the text
    for i, one in enumerate(table.columns):
        natural = max(len(text) for text in [*one.header.split("\n"), *(line[i] for line in shown.body)])
        extra = min(max(natural - one.min_width, 0), max(spare, 0))
        one.width = one.min_width + extra
        spare -= extra


def markdown(shown: Cells) -> str:
    """Return the table in Markdown.

    Examples
    --------
    >>> from kernling.report import cells, markdown
    >>> print(markdown(cells([{"method": "AVM", "mistakes": 0.0561, "mistakes_std": 0.0017}], ["method", "mistakes"])))
    | method | mistakes |
    |---|---:|
    | AVM | 5.61 % ± 0.17 |
    """
    rule = "|".join("---:" if numeric else "---" for numeric in shown.numeric)
    body = ["| " + " | ".join(one.replace("|", "\\|") for one in line) + " |" for line in shown.body]
    return "\n".join(["| " + " | ".join(shown.heads) + " |", f"|{rule}|", *body])


def as_html(shown: Cells) -> str:
    """Return the table in HTML."""

    def line(tag: str, values: Sequence[str]) -> str:
        marks = (f"<{tag}{' class=n' if numeric else ''}>" for numeric in shown.numeric)
        return "<tr>" + "".join(f"{mark}{html.escape(one)}</{tag}>" for mark, one in zip(marks, values, strict=True)) + "</tr>"

    return "<table>" + line("th", shown.heads) + "".join(line("td", one) for one in shown.body) + "</table>"
