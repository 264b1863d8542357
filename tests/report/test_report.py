"""Tables, figures and pages show what is in the rows."""

import html.parser
import json
import re

import numpy as np
import pytest

import kernling
from kernling.report import cells, curve, experts, markdown, page, show, surface, sweep, upright
from kernling.report.figures import COLOURS


def moments(method="A", permutation=None, worse=1.0):
    return [
        {
            "method": method,
            "permutation": permutation,
            "params": json.dumps({"delta": 0.5}),
            "events": 100 * i,
            "seconds": 0.1 * i,
            "mistakes": worse * 0.3 / i,
            "mistakes_window": worse * 0.2 / i,
            "mistakes_constant": 0.25,
            "accuracy_constant": 0.75,
            "n_stored": 10 * i,
            "nbytes": 1000 * i,
        }
        for i in (1, 2, 3)
    ]


def inside(figure):
    """Whether all that is drawn lies within the figure."""
    drawn = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    return drawn.x0 >= 0 and drawn.y0 >= 0 and drawn.x1 <= width and drawn.y1 <= height


def test_cells_have_units_and_standard_deviations():
    shown = cells(
        [{"method": "A|B", "mistakes": 0.0561, "mistakes_std": 0.0017, "events": 12345, "rmse": None}],
        ["method", "mistakes", "events", "rmse"],
    )
    assert shown.body == [["A|B", "5.61 % ± 0.17", "12,345", ""]]
    lines = markdown(shown).splitlines()
    assert lines[1] == "|---|---:|---:|---|"
    assert lines[2].startswith("| A\\|B |")
    assert upright(moments()[-1]).body[0] == ["events", "300"]


WIDE = [{"method": "AVM with a long name", "mistakes": 0.0561, "mistakes_std": 0.0017, "n_stored": 1_234_567, "seconds": 12.3}]


@pytest.mark.parametrize("width", [30, 44, 200])
def test_a_narrow_terminal_loses_columns_but_no_digits(width, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setenv("COLUMNS", str(width))
    show(cells(WIDE, ["method", "mistakes", "n_stored", "seconds"]))
    output = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)
    seen = [text in output for text in ("5.61 % ± 0.17", "1,234,567", "12.30")]
    assert seen == {30: [True, False, False], 44: [True, True, False], 200: [True] * 3}[width]
    missing = {30: "points stored, seconds", 44: "seconds", 200: None}[width]
    told = " ".join(output[output.rindex("┘") :].split())
    assert told == ("┘" if missing is None else f"┘ not shown because the terminal is too narrow: {missing}")


def test_a_pipe_gets_the_whole_table(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "30")
    show(cells(WIDE, ["method", "mistakes", "n_stored", "seconds"]))
    row = next(line for line in capsys.readouterr().out.splitlines() if "AVM" in line)
    assert [one.strip() for one in row.strip("│").split("│")] == ["AVM with a long name", "5.61 % ± 0.17", "1,234,567", "12.30"]


def test_curves_are_the_rows():
    figure = curve([*moments("A"), *moments("B", worse=2.0)], "events", "mistakes")
    first, second, constant = figure.axes[0].lines
    assert first.get_xdata().tolist() == [100, 200, 300]
    assert np.allclose(first.get_ydata(), [30, 15, 10])
    assert np.allclose(second.get_ydata(), [60, 30, 20])
    assert np.allclose(constant.get_ydata(), 25)
    assert figure.axes[0].get_xlabel() == "events"
    assert figure.axes[0].get_ylabel() == "mistakes (%)"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A", "B", "constant answer"]
    assert inside(figure)


@pytest.mark.parametrize(("y", "good"), [("mistakes", 0.08), ("accuracy", 0.92)])
def test_a_reference_far_away_is_named_and_not_drawn(y, good):
    rows = [{**row, y: good} for row in moments("A")]  # the constant answer makes 25 % mistakes
    for worse, drawn in ((0.0, 0), (0.01, 3)):
        figure = curve([{**row, y: row[y] + (worse if y == "mistakes" else -worse)} for row in rows], "events", y)
        _, constant = figure.axes[0].lines
        assert len(constant.get_xdata()) == drawn
        assert ("not drawn" in constant.get_label()) == (not drawn)
        assert inside(figure)


@pytest.mark.parametrize("length", [5, 20, 40, 60])
def test_long_names_are_not_cut_off(length):
    rows = [{"method": f"{i} " + ("name " * 12)[:length], "events": t, "mistakes": 0.1 * i} for i in range(6) for t in (1, 2)]
    assert inside(curve(rows))


def test_permutations_are_lines_of_one_colour():
    figure = curve([*moments("A", 0), *moments("A", 1, worse=1.1), *moments("B", 0)], "seconds", "n_stored", log=True)
    assert [line.get_color() for line in figure.axes[0].lines] == [COLOURS[0], COLOURS[0], COLOURS[1]]
    assert inside(figure)


def test_the_weights_of_experts_are_lines_and_the_largest_have_names(tmp_path):
    weights = [{f"e{k}": (k + 1) * (-1.0 if k == 9 else 1.0) / (t + 1) for k in range(10)} for t in range(3)]
    rows = [row | {"experts": json.dumps(weights[t])} for t, row in enumerate(moments())]
    figure = experts([*rows, *moments("B")])  # a method that has none
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert {f"e{k}" for k in range(3, 10)} <= set(lines)
    assert len(figure.axes[0].lines) == 10
    np.testing.assert_allclose(lines["e9"].get_ydata(), [-10.0, -5.0, -10.0 / 3.0])
    np.testing.assert_allclose(lines["e9"].get_xdata(), [100, 200, 300])
    assert inside(figure)
    page(rows, tmp_path / "p.html", "a mixture")
    assert (tmp_path / "p.html").read_text().count("<svg") == 5


def test_sweep_shows_metric_and_size_in_order():
    rows = [
        {**moments()[-1], "params": json.dumps({"delta": d}), "mistakes": d / 10, "n_stored": 1 / d} for d in (4.0, 1.0, 2.0)
    ]
    figure = sweep(rows, "delta")
    upper, lower = figure.axes
    assert lower.lines[0].get_xdata().tolist() == [1.0, 2.0, 4.0]
    assert np.allclose(lower.lines[0].get_ydata(), [1.0, 0.5, 0.25])
    assert np.allclose(upper.lines[0].get_ydata(), [10, 20, 40])
    assert inside(figure)
    with pytest.raises(ValueError, match="budget"):
        sweep(rows, "budget")


def test_surface_shows_classes_and_points():
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = kernling.AVMClassifier(gamma=1.0, delta=1.0).fit(X, X[:, 0] > 0)
    figure = surface(model, X, X[:, 0] > 0, names=("left or right", "up or down"))
    axes = figure.axes[0]
    drawn = axes.images[0].get_array()
    assert drawn[:, 0].max() == 0  # the left is of the first class
    assert drawn[:, -1].min() == 1
    assert len(axes.collections[2].get_offsets()) == model.n_support_
    assert inside(figure)
    with pytest.raises(ValueError, match="two features, not of 3"):
        surface(kernling.AVMClassifier(gamma=1.0, delta=1.0).fit(np.eye(3), [0, 1, 0]))


def contrast(colour):
    """With white, after W3C's formula."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 1.05 / (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05)


def test_colours_are_visible_and_differ_in_brightness_or_hue():
    assert all(contrast(colour) > 2.0 for colour in COLOURS)
    assert len(set(COLOURS)) == len(COLOURS)


class Checked(html.parser.HTMLParser):
    """Notes what a page would load from elsewhere."""

    def __init__(self):
        super().__init__()
        self.loaded = []
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "href") or (name == "xlink:href" and value[0] != "#")]


def test_page_is_whole_and_alone(tmp_path):
    rows = moments("A")
    page(rows, tmp_path / "p.html", "A <b> on data & more")
    text = (tmp_path / "p.html").read_text()
    checked = Checked()
    checked.feed(text)
    assert checked.loaded == []
    assert checked.tags.count("svg") == 4
    assert "A &lt;b&gt; on data &amp; more" in text
    assert "10.00 %" in text
    assert re.search(r"A\(delta=0.5\)", text)
    with pytest.raises(ValueError, match="no rows"):
        page([], tmp_path / "p.html", "nothing")


def test_what_a_page_shows_is_said_once_and_in_words(tmp_path):
    one = [row | {"window": 1000, "accuracy": 1.0 - row["mistakes"]} for row in moments("A")]
    page(one, tmp_path / "p.html", "one")
    text = (tmp_path / "p.html").read_text()
    captions = re.findall("<figcaption>(.*?)</figcaption>", text)
    assert captions[:2] == ["Mistakes over all events so far", "Mistakes over the last 1,000 events"]
    assert "<td>mistakes, constant answer</td><td class=n>25.00 %</td>" in text
    assert "accuracy" not in text
    page([*one, *moments("B")], tmp_path / "p.html", "two")
    tables = re.findall("<table>(.*?)</table>", (tmp_path / "p.html").read_text())
    assert ["constant answer" in table for table in tables] == [True, False]  # a row of the comparison


def test_the_topmost_marker_is_whole():
    rows = [row | {"n_stored": stored} for row, stored in zip(moments(), (430, 512, 512), strict=True)]
    assert curve(rows, "events", "n_stored").axes[0].get_ylim()[1] > 1.02 * 512


def test_names_stand_beside_the_lines_not_on_them():
    rows = [{"method": f"m{i}", "events": t, "mistakes": 0.1 * i} for i in range(6) for t in (1, 2)]
    figure = curve(rows)
    assert figure.axes[0].get_legend() is None
    assert [text.get_text() for text in figure.legends[0].get_texts()][:6] == [f"m{i}" for i in range(6)]
    figure.draw_without_rendering()
    assert figure.legends[0].get_window_extent().y0 >= figure.axes[0].get_window_extent().y1
