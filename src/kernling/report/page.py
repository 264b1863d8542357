"""Self-contained HTML report of a run."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..components.alarms import Alarm, changes
from ..evaluate.metrics import METRICS
from ..evaluate.record import Row, column
from .figures import curve, experts, mark, need_matplotlib
from .tables import as_html, comparison, moments, upright

STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; display: block; overflow-x: auto }
th, td { border-bottom: 1px solid #8886; padding: .3rem .7rem; text-align: left; vertical-align: top }
.n { text-align: right }
figure { margin: 1.5rem 0 }
svg { max-width: 100%; height: auto }
code { overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) {
  body { background: #131416; color: #cfd0d0 }
  svg { filter: invert(.88) hue-rotate(180deg) } /* colours keep their hue */
}
"""
MOST = 20  # rows in the table


def page(
    rows: Iterable[Row],
    path: Any,
    title: str,
    figures: Sequence[tuple[str, Any]] = (),
    alarms: Sequence[Alarm] = (),
) -> None:
    """Write an HTML report: a summary, curves against events and time, and how to reproduce the results.

    Parameters
    ----------
    rows : iterable of dict
        Returned by :func:`kernling.evaluate.test_then_train`.
    path : path
    title : str
    figures : sequence of (str, matplotlib.figure.Figure)
        Additional figures with captions.
    alarms : sequence of Alarm
        The model's ``alarms_``: they are listed, and marked in the figures.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling import evaluate, io, report
    >>> rows = evaluate.test_then_train(kl.AVMClassifier(gamma=4.0, delta=0.5), io.synthetic("moving", 4000), every=500)
    >>> report.page(rows, "run.html", "AVM on moving classes")
    >>> print(open("run.html").read().count("<svg"))
    4
    """
    rows = list(rows)
    if not rows:
        raise ValueError("there are no rows to report")
    last = {(row.get("method"), row.get("permutation")): row for row in rows}
    ends = list(last.values())
    body = [f"<h1>{html.escape(title)}</h1>", as_html(upright(ends[0]) if len(ends) == 1 else comparison(ends))]
    if alarms:
        lines = changes(alarms, METRICS[_main(rows)].task == "regression")
        body.append(f"<h2>Alarms</h2><ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>")
    before = rows[0].get("learned_before") or 0
    marks = [alarm.event - before for alarm in alarms if alarm.event > before]
    for caption, figure in [*_curves(rows, marks), *figures]:
        body.append(f"<figure>{_svg(figure)}<figcaption>{html.escape(caption)}</figcaption></figure>")
    step = max(1, len(rows) // MOST)
    body += ["<h2>Moments</h2>", as_html(moments(rows[step - 1 :: step]))]
    body += ["<h2>How to reproduce it</h2>", _facts(ends)]
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{html.escape(title)}</title>"
    text = f"<!doctype html><html lang=en><head>{head}<style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    Path(path).write_text(text, encoding="utf-8")


def _main(rows: list[Row]) -> str:
    """Return the name of the metric that is drawn."""
    return next(name for name in METRICS if name in rows[0])


def _curves(rows: list[Row], marks: list[int]) -> list[tuple[str, Any]]:
    """Return curves with their captions; those against events have marks."""
    main = _main(rows)
    label = column(main).label
    captions = {
        ("events", main): f"{label} over all events so far",
        ("events", f"{main}_window"): f"{label} over the last {rows[0].get('window', 0):,} events",
        ("seconds", main): f"{label} after so many seconds of processor time",
        ("events", "n_stored"): "points stored by the model",
    }
    there = {pair: words for pair, words in captions.items() if all(rows[0].get(name) is not None for name in pair)}
    found = [(_capital(words), mark(curve(rows, x, y), marks if x == "events" else ())) for (x, y), words in there.items()]
    if any(row.get("experts") for row in rows):
        found.append(("Weights of the experts", experts(rows)))
    return found


def _svg(figure: Any) -> str:
    """Return a figure as inline SVG, without the XML header."""
    out = io.StringIO()
    with need_matplotlib().rc_context({"svg.hashsalt": "kernling"}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    drawn = out.getvalue()
    return re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)


def _facts(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        params = json.loads(row.get("params", "{}"))
        settings = ", ".join(f"{name}={value!r}" for name, value in params.items())
        lines.append(f"<p><code>{html.escape(str(row.get('method')))}({html.escape(settings)})</code></p>")
    for name in ("pipeline", "data_info", "versions"):
        if rows[0].get(name):
            lines.append(f"<p>{html.escape(column(name).label)}: <code>{html.escape(str(rows[0][name]))}</code></p>")
    return "".join(lines)


def _capital(words: str) -> str:
    """Return the words with a capital first letter; abbreviations keep theirs."""
    return words[:1].upper() + words[1:]
