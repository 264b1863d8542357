"""Figures of result rows with matplotlib, in colours that are safe for colour-blind readers, with distinct line styles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ..evaluate.record import REFERENCES, Row, Shown, column
from ..extras import need

# Okabe and Ito's palette without its yellow, which is too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#767676"
ALARM = "#B2182B"
SIZE = (7.0, 4.3)  # inches
LETTER, KEY = 0.085, 0.65  # width of a letter and of a legend marker in inches
FAR = 3.0  # a reference this many times above all lines would compress them, and is not drawn


def need_matplotlib() -> Any:
    """Import matplotlib, or raise an error that says how to install it."""
    return need("figures need matplotlib", "plot", "matplotlib", "matplotlib.figure")


def _figure(panels: int = 1) -> tuple[Any, Any]:
    figure = need_matplotlib().figure.Figure(figsize=(SIZE[0], SIZE[1] * (1.0 if panels == 1 else 1.5)), layout="constrained")
    axes = figure.subplots(panels, sharex=True, squeeze=False)[:, 0]
    for one in axes:
        one.grid(alpha=0.3)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def curve(rows: Iterable[Row], x: str = "events", y: str = "mistakes", by: str = "method", log: bool = False) -> Any:
    """Plot one line per method (or value of ``by``); permutations are drawn as thin lines.

    Parameters
    ----------
    rows : iterable of dict
        Returned by :func:`kernling.evaluate.test_then_train`.
    x, y, by : str
        Names of columns, such as "events" or "seconds"; "mistakes", "rmse" or "n_stored".
    log : bool
        Whether the x axis is logarithmic.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling import evaluate, io, report
    >>> rows = evaluate.test_then_train(kl.AVMClassifier(gamma=4.0, delta=0.5), io.synthetic("moving", 4000), every=500)
    >>> figure = report.curve(rows, "events", "mistakes_window")
    >>> print(len(figure.axes[0].lines[0].get_xdata()))
    8
    """
    figure, (axes,) = _figure()
    groups: dict[Any, dict[Any, list[Row]]] = {}
    for row in rows:
        groups.setdefault(row.get(by), {}).setdefault(row.get("permutation"), []).append(row)
    for place, (name, runs) in enumerate(groups.items()):
        for run, moments in enumerate(runs.values()):
            axes.plot(
                [row[x] for row in moments],
                [_scaled(y, row[y]) for row in moments],
                STYLES[place // len(COLOURS) % len(STYLES)],
                color=COLOURS[place % len(COLOURS)],
                marker=MARKERS[place % len(MARKERS)] if len(moments) <= 30 else None,
                markersize=4,
                linewidth=1.8 if len(runs) == 1 else 0.9,
                label=str(name) if run == 0 else None,
            )
    if x != "seconds":  # references are measured with the rows, but not timed
        _draw_references(axes, groups, x, y)
    _finish(axes, x, y, log)
    return figure


def mark(figure: Any, events: Iterable[float]) -> Any:
    """Draw vertical lines in a figure against events where something happened, such as alarms; return the figure.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling import evaluate, io, report
    >>> rows = evaluate.test_then_train(kl.AVMClassifier(gamma=4.0, delta=0.5), io.synthetic("moving", 4000), every=500)
    >>> print(len(report.mark(report.curve(rows), [1200, 3000]).axes[0].lines))
    4
    """
    axes = figure.axes[0]
    for event in events:
        axes.axvline(event, color=ALARM, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    return figure


def experts(rows: Iterable[Row]) -> Any:
    """Plot the weights of a mixture's experts against events; all but those with the largest weights are thin and grey.

    Parameters
    ----------
    rows : iterable of dict
        Returned by :func:`kernling.evaluate.test_then_train` for a mixture; if there are several runs, the first is drawn.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling import evaluate, io, report
    >>> rows = evaluate.test_then_train(kl.AutoClassifier(), io.synthetic("moving", 2000), every=500)
    >>> print(len(report.experts(rows).axes[0].lines[0].get_xdata()))
    4
    """
    figure, (axes,) = _figure()
    rows = [row for row in rows if row.get("experts")]
    run = [row for row in rows if all(row.get(name) == rows[0].get(name) for name in ("method", "permutation"))]
    weights = [json.loads(row["experts"]) for row in run]
    largest = sorted(weights[0], key=lambda name: -max(abs(moment[name]) for moment in weights))[: len(COLOURS)]
    for name in sorted(weights[0], key=lambda name: name in largest):
        place = largest.index(name) if name in largest else None
        look = {"color": GREY, "linewidth": 0.6} if place is None else {"color": COLOURS[place], "label": name}
        style = STYLES[place % len(STYLES)] if place is not None else "-"
        axes.plot([row["events"] for row in run], [moment[name] for moment in weights], style, **look)
    _finish(axes, "events", "experts", log=False)
    axes.set_ylim(bottom=min(0.0, *(value for moment in weights for value in moment.values())))
    return figure


def sweep(rows: Iterable[Row], parameter: str, y: str = "mistakes", log: bool = True) -> Any:
    """Plot a metric and the size of the model against a parameter, such as delta or budget; one line per method.

    Parameters
    ----------
    rows : iterable of dict
        One per method and value, as returned by :func:`kernling.evaluate.summary`.
    parameter : str
        Parameter on the x axis.
    y : str
        Metric; drawn with its standard deviation if rows have one.
    log : bool
        Whether the x axis is logarithmic.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling import evaluate, io, report
    >>> stream, models = io.synthetic("spirals", 2000), [kl.AVMClassifier(gamma=4.0, delta=d) for d in (0.1, 0.2, 0.4)]
    >>> rows = [evaluate.test_then_train(model, stream)[-1] for model in models]
    >>> print(len(report.sweep(rows, "delta").axes))
    2
    """
    figure, (upper, lower) = _figure(2)
    groups: dict[Any, list[tuple[float, Row]]] = {}
    for row in rows:
        value = json.loads(row["params"]).get(parameter)
        if isinstance(value, (int, float)):
            groups.setdefault(row.get("method"), []).append((value, row))
    if not groups:
        raise ValueError(f"no row has a numeric value of {parameter}")
    for place, (name, points) in enumerate(groups.items()):
        points.sort(key=lambda point: point[0])
        look = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)], "markersize": 5}
        values = [value for value, _ in points]
        spread = [_scaled(y, row.get(f"{y}_std", 0.0)) for _, row in points]
        upper.errorbar(values, [_scaled(y, row[y]) for _, row in points], spread, capsize=3, label=name, **look)
        lower.plot(values, [row["n_stored"] for _, row in points], label=name, **look)
    _finish(upper, parameter, y, log)
    _finish(lower, parameter, "n_stored", log)
    upper.set_xlabel("")
    return figure


def surface(model: Any, X: Any = None, y: Any = None, names: Sequence[str] = ("x1", "x2"), resolution: int = 200) -> Any:
    """Plot the predictions of a classifier of two features over the plane, with the points that it uses.

    Parameters
    ----------
    model : estimator
        A fitted classifier of two features.
    X, y : arrays, optional
        Rows to draw as well; by default the area around the stored points is shown.
    names : sequence of str
        Names of the two features.
    resolution : int
        Number of grid points in each direction.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling import io, report
    >>> X, y = io.synthetic("spirals", 2000).load()
    >>> figure = report.surface(kl.AVMClassifier(gamma=30.0, delta=0.1).fit(X, y), X, y)
    >>> print(figure.axes[0].get_xlabel())
    x1
    """
    import numpy as np
    from matplotlib import rcParams
    from matplotlib.colors import ListedColormap

    if model.n_features_in_ != 2:
        raise ValueError(f"a decision surface needs a model of two features, not of {model.n_features_in_}")
    stored = model.support_vectors_ if model.n_stored_ else np.empty((0, 2))
    around = np.vstack([stored, *([] if X is None else [X])])
    low, high = around.min(axis=0), around.max(axis=0)
    margin = 0.05 * (high - low)
    low, high = low - margin, high + margin
    figure, (axes,) = _figure()
    figure.set_size_inches(SIZE[0], SIZE[0] * 0.85)
    across, up = np.meshgrid(*(np.linspace(a, b, resolution) for a, b in zip(low, high, strict=True)))
    said = model.predict(np.column_stack([across.ravel(), up.ravel()]))
    classes = model.classes_
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(classes))]
    shown = np.searchsorted(classes, said).reshape(across.shape)
    axes.imshow(
        shown,
        origin="lower",
        extent=(low[0], high[0], low[1], high[1]),
        cmap=ListedColormap(colours),
        vmin=-0.5,
        vmax=len(classes) - 0.5,
        alpha=0.3,
        aspect="auto",
        interpolation="nearest",
    )
    for place, one in enumerate(classes if X is not None and y is not None else ()):
        axes.scatter(*X[y == one].T, s=5, color=colours[place], marker=MARKERS[place % len(MARKERS)], linewidths=0)
    axes.scatter(*stored.T, s=34, facecolors="none", edgecolors=rcParams["text.color"], linewidths=0.9)
    for place, one in enumerate(classes):
        axes.scatter([], [], s=40, color=colours[place], marker=MARKERS[place % len(MARKERS)], label=f"class {one}")
    axes.scatter([], [], s=34, facecolors="none", edgecolors=rcParams["text.color"], label=f"{len(stored)} points used")
    axes.set(xlabel=names[0], ylabel=names[1], xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.grid(False)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure


def _draw_references(axes: Any, groups: dict[Any, dict[Any, list[Row]]], x: str, y: str) -> None:
    """Draw what simple answers make of the same rows, by the first run that has them; name those that are far off."""
    ideal = 100.0 if column(y).low_is_good is False else 0.0
    farthest = max((abs(value - ideal) for line in axes.lines for value in line.get_ydata()), default=0.0)
    runs = [moments for group in groups.values() for moments in group.values()]
    for place, (reference, words) in enumerate(REFERENCES.items()):
        name = f"{y}_{reference}"
        moments = next((run for run in runs if run[-1].get(name) is not None), [])
        values = [_scaled(y, row[name]) for row in moments]
        if not values:
            continue
        if min(abs(value - ideal) for value in values) > FAR * farthest:
            unit = " %" if column(y).shown is Shown.SHARE else ""
            moments, words = [], f"{words}: {values[-1]:.4g}{unit}, not drawn"
        drawn = values[: len(moments)]
        axes.plot([row[x] for row in moments], drawn, color=GREY, linestyle=((0, (1, 2)), (0, (5, 2)))[place], label=words)


def _scaled(name: str, value: Any) -> Any:
    """Convert fractions to percentages."""
    if value is None:
        return float("nan")
    return 100.0 * value if column(name).shown is Shown.SHARE else value


def _finish(axes: Any, x: str, y: str, log: bool) -> None:
    from matplotlib.ticker import FuncFormatter

    thousands = FuncFormatter(lambda value, _: f"{value:,.10g}")
    unit = " (%)" if column(y).shown is Shown.SHARE else ""
    axes.set_xlabel(column(x).label)
    axes.set_ylabel(column(y).label + unit)
    if log:
        axes.set_xscale("log")
        plain = FuncFormatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_major_formatter(plain)
        few = FuncFormatter(
            lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else ""
        )  # labels of all ticks would overlap
        axes.xaxis.set_minor_formatter(few)
    elif column(x).shown is Shown.COUNT:
        axes.xaxis.set_major_formatter(thousands)
    if column(y).shown is Shown.COUNT:
        axes.yaxis.set_major_formatter(thousands)
    if column(y).low_is_good is not False:  # good values of the other metrics are far from 0
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.04 * axes.dataLim.ymax))  # room for the topmost marker
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1 and axes is axes.figure.axes[0]:
        where = "outside upper center"  # inside, it would cover lines
        axes.figure.legend(handles, names, loc=where, ncols=_legend_columns(names), frameon=False)


def _legend_columns(names: list[str]) -> int:
    """Return how many columns of legend entries fit in the figure."""
    for count in (3, 2):
        height = -(-len(names) // count)
        widest = [max(map(len, names[first : first + height])) for first in range(0, len(names), height)]
        if LETTER * sum(widest) + KEY * len(widest) <= SIZE[0]:
            return count
    return 1
