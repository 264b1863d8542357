"""The papers' tables: what is run, kept, run again and shown, and that those of the project are what the code understands."""

import json
import os
import signal

import numpy as np
import pytest

from commands import call
from kernling.evaluate.metrics import metric_class
from kernling.io.synthetic import STREAMS
from kernling.papers import dataset_names
from kernling.papers import tables as papers
from kernling.papers.cells import parameters_of
from kernling.papers.verdicts import verdict

TABLE = """
title = "A table"
paper = "Somebody, 2020"
protocol = "online"
metric = "mistakes"
orders = 2

[data.diabetes]
dataset = "diabetes"
search_rows = 200
params = { gamma = 1.0, delta = 1.0, budget = 20 }

[data.poker]
dataset = "poker"
params = { gamma = 1.0 }

[[methods]]
name = "AVM-Hinge"
learner = "avm"
grid = { lam = [1e-4, 1e-2] }
[methods.printed]
diabetes = { value = 30.0, std = 0.5, seconds = 7.0, size = 12 }
poker = { value = 50.0, std = 0.1 }

[[methods]]
name = "RBP"
learner = "rbp"
data = ["diabetes"]
[methods.on]
diabetes = { params = { budget = 10 }, search_rows = 100 }
[methods.printed]
poker = { value = 60.0 }

[[methods]]
name = "Other"
[methods.printed]
diabetes = { value = 40.0 }
"""
FIGURE = """
title = "A figure"
paper = "Somebody, 2020"
protocol = "held"
metric = "mistakes"
orders = 1
moments = [0.1, 1.0, 5]
draw = [["events", "mistakes"], ["events", "risk"]]

[data.board]
synthetic = "checkerboard"
rows = 400
test = 200

[[methods]]
name = "AVM"
learner = "avm"
risk = true
params = { gamma = 4.0, delta = 0.5 }

[[methods]]
name = "LIBSVM"
learner = "batch.libsvm"
params = { gamma = 4.0 }
"""
SWEEP = """
title = "A sweep"
paper = "Somebody, 2020"
protocol = "folds"
search = "folds"
spread = "error"
metric = "auc"
orders = 3
draw = [["delta", "auc"], ["delta", "seconds"]]
vary = { delta = [0.3, 1.0] }

[data.board]
synthetic = "checkerboard"
rows = 400

[[methods]]
name = "AVM"
learner = "avm"
grid = { gamma = [0.5, 4.0] }
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "papers"
    (home / "one").mkdir(parents=True)
    for name, text in (("table1", TABLE), ("figure1", FIGURE), ("figure2", SWEEP)):
        (home / "one" / f"{name}.toml").write_text(text)
    (tmp_path / "data").mkdir()
    rows = np.random.default_rng(0).uniform(-1, 1, (768, 8))
    lines = [f"{1 if row[0] > 0 else -1} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(row)) for row in rows]
    (tmp_path / "data" / "diabetes_scale").write_text("\n".join(lines) + "\n")
    for module in ("kernling.papers.tables", "kernling.papers.page"):
        monkeypatch.setattr(f"{module}.folder", lambda: home)
    monkeypatch.setenv("KERNLING_DATA", "")
    monkeypatch.setattr("kernling.papers.datasets.TIMEOUT", 0.001)
    return home


def kept(path):
    return {(row["data"], row["method"]): row for row in map(json.loads, path.read_text().splitlines())}


def test_reproduce_puts_ours_beside_theirs_and_says_why_not(table):
    output = call("reproduce", "one/table1", "--data", "data", "--record").output
    rows = kept(table / "one/table1.jsonl")
    ran = rows["diabetes", "AVM-Hinge"]
    assert 0 < ran["ours"] < ran["constant"]
    assert ran["ours"] == pytest.approx(100 * np.mean(ran["values"]))
    assert ran["ours_std"] == pytest.approx(100 * np.std(ran["values"], ddof=1))
    assert ran["found"]["lam"] in (1e-4, 1e-2)
    assert rows["diabetes", "RBP"]["size"] <= 10, "parameters for both together come last"
    assert [rows["diabetes", name]["asked"]["search_rows"] for name in ("AVM-Hinge", "RBP")] == [200, 100]
    assert f"{ran['ours']:.2f} ± {ran['ours_std']:.2f}" in output
    assert "30.00 ± 0.50" in output
    assert "poker (AVM-Hinge): poker needs poker, which is not available" in output
    assert "60.00" in output
    assert "printed only" in output
    page = (table / "RESULTS.md").read_text()
    assert f"{ran['ours']:.2f}" in page
    assert "one/figure1" in page


def test_kept_cells_are_not_run_again_unless_asked_or_changed(table):
    call("reproduce", "one/table1", "--data", "data", "--record")
    first = kept(table / "one/table1.jsonl")
    again = call("reproduce", "one/table1", "--data", "data", "--record")
    assert "on diabetes" not in again.stderr
    assert kept(table / "one/table1.jsonl")["diabetes", "RBP"] == first["diabetes", "RBP"]
    assert "RBP on diabetes" in call("reproduce", "one/table1", "--data", "data", "--record", "--again").stderr
    path = table / "one/table1.toml"
    path.write_text(path.read_text().replace("budget = 10 }", "budget = 5 }"))
    changed = call("reproduce", "one/table1", "--data", "data", "--record").stderr
    assert "RBP on diabetes" in changed
    assert "AVM-Hinge on diabetes" not in changed
    assert kept(table / "one/table1.jsonl")["diabetes", "RBP"]["size"] <= 5
    fewer = call("reproduce", "one/table1", "--data", "data", "--permutations", 1, "--methods", "AVM-Hinge", "--record")
    assert "AVM-Hinge on diabetes" in fewer.stderr
    assert kept(table / "one/table1.jsonl")["diabetes", "AVM-Hinge"]["permutations"] == 1


def test_figures_are_measured_at_moments_or_over_values_and_drawn(table):
    pytest.importorskip("matplotlib")
    call("reproduce", "one", "--only", "board", "--data", "data", code=1)  # a paper's tables have data sets of their own
    call("reproduce", "one/figure1", "--record", "--methods", "LIBSVM")  # a single point, without a risk
    assert [path.name for path in (table / "figures").iterdir()] == ["one-figure1-board-mistakes-events.png"]
    call("reproduce", "one/figure1", "--record")
    call("reproduce", "one/figure2", "--record")
    curve = kept(table / "one/figure1.jsonl")["board", "AVM"]["curve"]
    assert curve["events"] == [40, 130, 220, 310, 400]
    assert len(curve["risk"]) == 5
    assert min(curve["risk"]) > 0
    rows = [json.loads(line) for line in (table / "one/figure2.jsonl").read_text().splitlines()]
    assert [row["at"] for row in rows] == [{"delta": 0.3}, {"delta": 1.0}]
    assert rows[0]["size"] > rows[1]["size"]
    assert len(rows[0]["found"]) == 3, "each fold has its own search"
    assert rows[0]["ours_std"] == pytest.approx(100 * np.std(rows[0]["values"], ddof=1) / np.sqrt(3))
    assert rows[0]["ours"] > 55 > rows[0]["constant"]
    pictures = {path.name for path in (table / "figures").iterdir()}
    drawn = "figure1-board-mistakes-events figure1-board-risk-events figure2-board-auc-delta figure2-board-seconds-delta"
    assert pictures == {f"one-{name}.png" for name in drawn.split()}


def test_ctrl_c_shows_what_is_done(table, monkeypatch):
    run = papers.cells.run

    def stopped_at_rbp(one, *arguments):
        if one.method == "RBP":
            os.kill(os.getpid(), signal.SIGINT)
        return run(one, *arguments)

    monkeypatch.setattr(papers.cells, "run", stopped_at_rbp)
    done = call("reproduce", "one/table1", "--data", "data", code=130).stdout
    assert "AVM-Hinge" in done
    assert "RBP" not in done


def test_progress_is_told_cell_by_cell_and_order_by_order(table, monkeypatch):
    monkeypatch.setenv("KERNLING_DATA", "data")
    told = []
    rows = papers.reproduce(papers.named("one/table1")[0], methods=["AVM-Hinge"], only=["diabetes"], on_progress=told.append)
    assert next(rows)["ours"] > 0
    assert told == ["reading", "searching parameters", "order 1 of 2, 768 events", "order 2 of 2, 768 events"]


def test_unknown_tables_data_sets_and_methods_are_refused(table):
    assert "one/table1" in call("reproduce", "two/table1", code=1).stderr
    assert "'iris'" in call("reproduce", "one/table1", "--only", "iris", code=1).stderr
    assert "'SVM'" in call("reproduce", "one/table1", "--methods", "SVM", code=1).stderr


def test_list_counts_what_is_reproduced_better_worse_and_not_run(table):
    path = table / "one/table1.toml"
    path.write_text(path.read_text() + '\n[[causes]]\ndata = ["diabetes"]\nmethods = ["AVM-Hinge"]\nwhy = "rows by chance"\n')
    call("reproduce", "one/table1", "--data", "data", "--record")
    one = papers.named("one/table1")[0]
    rows = {(row["data"], row["method"]): row for row in papers.results(one)}
    ours = rows["diabetes", "AVM-Hinge"]
    kinds = {}
    for printed, std in (
        (ours["ours"] + 0.4, 0.5),
        (ours["ours"] + 0.6, 0.5),
        (ours["ours"] - 0.6, 0.5),
        (ours["ours"] - 2.0, 0.5),
    ):
        said = verdict(one, ours | {"printed": printed, "printed_std": std})
        kinds[round(printed - ours["ours"], 1)] = said.kind, said.far_worse
    assert kinds == {0.4: ("reproduced", False), 0.6: ("better", False), -0.6: ("worse", False), -2.0: ("worse", True)}
    assert verdict(one, rows["poker", "AVM-Hinge"]).kind == "no data"
    assert verdict(one, rows["diabetes", "Other"]).kind == "not run"
    path.write_text(path.read_text().replace("value = 30.0", "value = 1.0"))
    output = call("reproduce", "--list").output
    assert "rows by chance" in output
    assert "one/figure1" in output
    assert "name a table" in call("reproduce", code=2).stderr


def test_a_data_set_like_another_has_its_settings_and_printed_results_on_other_rows(table):
    path = table / "one/table1.toml"
    path.write_text(
        path.read_text().replace("[data.poker]", '[data.more]\nlike = "diabetes"\ndataset = "cod-rna"\n\n[data.poker]')
    )
    cells = {(one.data, one.method): one for one in papers.named("one/table1")[0].cells()}
    assert cells["more", "RBP"].asked == cells["diabetes", "RBP"].asked | {"data": {"dataset": "cod-rna"}}
    assert cells["more", "AVM-Hinge"].printed == cells["diabetes", "AVM-Hinge"].printed
    assert ("more", "Other") not in cells, "what is only printed is shown once"


FOUND = papers.tables()


def test_all_five_papers_are_there_and_listed():
    names = {one.name for one in FOUND}
    printed = "avm/table3 avm/table4 avm/table5 polk/table2 polk/table3 spa/table2 spa/table3 aogd/table2 dualsvrg/table1"
    assert {*printed.split(), "dualsvrg/table2"} <= names
    output = call("papers").output
    assert all(one.name in output for one in FOUND)


@pytest.mark.parametrize("one", FOUND, ids=lambda one: one.name)
def test_what_the_tables_name_exists(one):
    list(one.cells())  # learners exist, and have an estimator for the metric
    used = set()
    for method in one.facts.get("methods", []):
        places = {*method.get("printed", {}), *method.get("on", {}), *method.get("data", [])}
        assert places <= set(one.facts["data"])
        if "learner" in method:
            known = parameters_of(method["learner"], metric_class(one.facts["metric"]).task)
            used |= set(known)
            own = [method, *method.get("on", {}).values()]
            given = {name for part in own for name in part.get("params", {})}
            for part in own:
                for name, values in part.get("grid", {}).items():
                    given |= set(values[0]) if isinstance(values[0], dict) else {name}
            assert given <= set(known), method["name"]
    for cause in one.facts.get("causes", []):
        assert set(cause.get("data", [])) <= set(one.facts["data"])
        assert set(cause.get("methods", [])) <= {method["name"] for method in one.facts["methods"]}
    for about in one.facts.get("data", {}).values():
        assert {*about.get("params", {}), *about.get("grid", {})} <= used, "a parameter that no method has"
        assert about.get("like", next(iter(one.facts["data"]))) in one.facts["data"]
        assert about.get("synthetic") in STREAMS or about["dataset"] in dataset_names() or "why" in about


@pytest.mark.parametrize("one", FOUND, ids=lambda one: one.name)
def test_what_is_far_worse_has_a_cause(one):
    for row in papers.results(one):
        said = verdict(one, row)
        assert said.cause or not said.far_worse, f"{row['data']}, {row['method']}: {row.get('ours')}, printed {row['printed']}"
