"""The command line, as a user meets it."""

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from typer.testing import CliRunner

import kernling
from kernling import demo, registry
from kernling.cli import settings
from kernling.cli.commands import app
from kernling.evaluate.metrics import METRICS

WIDE = {"COLUMNS": "400"}


def answer(*arguments):
    result = CliRunner(env=WIDE).invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def rows(output):
    """The tables' rows, as lists of cells by their first cell, in order."""
    lines = [line.strip("│").split("│") for line in output.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line] for line in lines]


def test_version_is_the_packages():
    assert answer("--version").strip() == f"kernling {kernling.__version__}"


def test_learners_lists_all_methods_with_their_papers():
    output = answer("learners")
    for name, entry in registry.METHODS.items():
        assert name in [row[0] for row in rows(output)]
        assert entry.learner().title in output
        assert all(cls.__name__ in output for cls in entry.classes())
    assert "Journal of Machine Learning Research 18 (2017)" in output


WRONG = """
import sys
from typer.testing import CliRunner
from kernling.cli.commands import app
for line in sys.argv[1:]:
    result = CliRunner().invoke(app, line.split())
    print(result.exit_code, "numpy" in sys.modules)
"""


def test_wrong_arguments_are_found_without_importing_what_learns(run_python):
    wrong = [
        "run spirals --metrics nothing",
        "run spirals --learner nothing",
        "run spirals --checkpoint-every 5",
        "run spirals --set gamma",
        "tune spirals --range gamma",
        "compare spirals --learners nothing",
    ]
    files = ["run nothing.csv", "compare nothing.csv"]
    expected = ["2 False"] * len(wrong) + ["1 False"] * len(files)
    assert run_python(WRONG, *wrong, *files).splitlines() == expected


def test_metrics_of_the_command_line_are_those_that_there_are():
    assert tuple(METRICS) == settings.METRICS


def test_demo_learns_and_compares():
    table = rows(answer("demo", "--events", "1500"))
    names = ["majority class", *demo.contenders()]
    assert [row[0] for row in table] == 2 * names
    percent = [{row[0]: float(row[1].rstrip("%")) for row in part} for part in (table[: len(names)], table[len(names) :])]
    clusters, digits = percent
    assert clusters["majority class"] > 40
    assert digits["majority class"] > 85
    assert clusters["avm"] < 0.7 * clusters["linear baseline"]
    assert digits["avm"] < 25
    for row in table:
        if row[0] in registry.METHODS:
            assert int(row[2].replace(",", "")) <= 1500
            assert int(row[3].replace(",", "")) > 0
    assert all(0 < int(row[2].replace(",", "")) < 1000 for row in table if row[0] == "avm")


def test_demo_says_why_a_learner_cannot_run(monkeypatch):
    def broken():
        raise ValueError("no such luck")

    monkeypatch.setattr(demo, "contenders", lambda everything: {"broken": broken, "linear baseline": demo.LinearBaseline})
    output = answer("demo", "--events", "100")
    assert output.count("broken cannot run: no such luck") == 2
    assert [row[0] for row in rows(output)].count("linear baseline") == 2


def test_demo_counts_mistakes_before_learning():
    class Remembers(ClassifierMixin, BaseEstimator):
        """Knows every event that it has learned, so that only predicting too late could make no mistakes."""

        task = "classification"

        def fit(self, X, y):
            self.known_, self.n_features_in_ = {}, X.shape[1]
            return self

        def predict_then_learn(self, X, y):
            if not hasattr(self, "known_"):
                self.fit(X, y)
            labels = [self.known_.get(x.tobytes(), -1) for x in X]
            self.known_.update({x.tobytes(): label for x, label in zip(X, y, strict=True)})
            return np.array(labels)

    heard = []
    run = demo.run(Remembers(), demo.clusters(1200), heard.append)
    assert run.value("mistakes") == 1.0
    assert heard == [500, 1000, 1200]
    assert run.events == 1200


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(["demo", "--events", "0"], "--events"), (["nonsense"], "nonsense"), (["demo", "--nonsense"], "--nonsense")],
)
def test_wrong_arguments_are_refused_by_name(arguments, named):
    result = CliRunner(env=WIDE).invoke(app, arguments)
    assert result.exit_code == 2
    assert named in result.output


def test_help_imports_nothing_that_takes_long(run_python):
    program = "import sys; from kernling.cli import main; sys.argv = ['kernling', '--help']\n"
    shown = run_python(program + "try:\n    main()\nexcept SystemExit:\n    print('modules', *sys.modules)")
    modules = shown.partition("modules ")[2].split()
    assert "demo" in shown
    assert "typer" in modules
    assert not {"numpy", "scipy", "sklearn", "numba", "llvmlite"} & set(modules)


def test_summaries_of_commands_are_whole_at_80_columns():
    output = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["--help"]).output
    assert output.count(".\n") > len(app.registered_commands)
    assert "..." not in output.partition("Commands:")[2]


def test_names_of_methods_are_whole_at_80_columns():
    result = CliRunner(env={"COLUMNS": "80", "FORCE_COLOR": "1"}).invoke(app, ["learners"])
    lines = re.sub("\x1b\\[[0-9;]*m", "", result.output).splitlines()
    assert max(map(len, lines)) <= 80
    assert set(registry.METHODS) <= {line.split("│")[1].strip() for line in lines if line.count("│") > 2}


def test_flags_are_plain_in_help():
    output = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["run", "--help"]).output
    assert "  --dry-run  " in output
    assert "<bool>" not in output
