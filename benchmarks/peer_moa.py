"""Contestants of MOA with their defaults, run by its command line, if Java and MOA's archive are available.

The archive is given by the environment variable ``MOA_JAR``, or found in the package capymoa, which contains it.
The command line only returns labels and values: there is no AUC, no calibration error, and no size of the model.
"""

import csv
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.peer_contestants import Answers, Contestant, Run
from benchmarks.peer_streams import Events

CLASSIFIERS = {
    "moa-arf": ("MOA ARF", "meta.AdaptiveRandomForest"),
    "moa-srp": ("MOA SRP", "meta.StreamingRandomPatches"),
    "moa-levbag": ("MOA LevBag", "meta.LeveragingBag"),
    "moa-samknn": ("MOA SAMkNN", "lazy.SAMkNN"),
    "moa-knn": ("MOA kNN", "lazy.kNN"),
    "moa-hat": ("MOA HAT", "trees.HoeffdingAdaptiveTree"),
    "moa-sgd": ("MOA SGD", "functions.SGD"),
    "moa-bayes": ("MOA Bayes", "bayes.NaiveBayes"),
}
REGRESSORS = {"moa-amrules": ("MOA AMRules", "rules.AMRulesRegressor"), "moa-knn": ("MOA kNN", "lazy.kNN")}
EVERY = 1_000  # rows between MOA's measurements of time
FOREVER = 10.0  # times the limit, since Java also needs time to start, read and collect garbage


def archive() -> Path:
    """Return the path of MOA's archive, or raise an error that says what is missing."""
    if shutil.which("java") is None:
        raise FileNotFoundError("java was not found")
    if "MOA_JAR" in os.environ:
        path = Path(os.environ["MOA_JAR"])
    else:
        package = find_spec("capymoa")
        if package is None or package.origin is None:
            raise FileNotFoundError("MOA_JAR is not set, and the package capymoa, which contains MOA, is not installed")
        path = Path(package.origin).parent / "jar" / "moa.jar"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    return path


def moa() -> list[Contestant]:
    """Return MOA's contestants, or none if it cannot be run."""
    try:
        jar = archive()
    except FileNotFoundError as error:
        print(f"MOA is skipped: {error}")
        return []
    version = f"moa {archive_date(jar)}"
    found = []
    for name, (title, learner) in (CLASSIFIERS | REGRESSORS).items():
        tasks = tuple(task for task, names in (("classification", CLASSIFIERS), ("regression", REGRESSORS)) if name in names)
        found.append(Contestant(name, title, "moa", tasks, version, partial(run, jar, learner)))
    return found


def archive_date(jar: Path) -> str:
    """Return when MOA's classes were built, since the archive has no machine-readable version."""
    with zipfile.ZipFile(jar) as opened:
        return "{:04}-{:02}-{:02}".format(*opened.getinfo("moa/DoTask.class").date_time[:3])


def run(jar: Path, learner: str, events: Events, classes: int, seed: int, limit: float) -> Run:
    """Write the stream as ARFF, run MOA on it, and read its predictions."""
    with tempfile.TemporaryDirectory() as folder:
        stream, said, times = (Path(folder) / name for name in ("stream.arff", "said.csv", "times.csv"))
        write_arff(stream, events, classes)
        task = "EvaluatePrequential" if classes else "EvaluatePrequentialRegression"
        command = f"{task} -l ({learner}) -s (ArffFileStream -f {stream}) -t {limit:.0f} -f {EVERY} -o {said} -d {times}"
        done = subprocess.run(
            ["java", "-XX:+UseSerialGC", "-cp", str(jar), "moa.DoTask", command],
            capture_output=True,
            text=True,
            timeout=60.0 + FOREVER * limit,
        )
        predicted = read_predictions(said, classes) if said.exists() else np.empty(0)
        if not len(predicted):
            raise RuntimeError(failure(done.stdout + done.stderr))
        return Run(Answers(predicted), seconds_per_row(times, limit / len(predicted)) * len(predicted), None)


def write_arff(path: Path, events: Events, classes: int) -> None:
    target = "{" + ",".join(map(str, range(classes))) + "}" if classes else "numeric"
    lines = ["@relation stream", *(f"@attribute x{i} numeric" for i in range(events.X.shape[1])), f"@attribute y {target}"]
    with path.open("w") as file:
        file.write("\n".join([*lines, "@data\n"]))
        for row, y in zip(events.X.tolist(), events.y.tolist(), strict=True):
            file.write(",".join(map(repr, [*row, y])) + "\n")


def read_predictions(path: Path, classes: int) -> np.ndarray:
    """Read the predictions: a label, or "Out 0: value"; "null" before the first one."""
    first = (line.split(",")[0] for line in path.read_text().splitlines())
    if classes:
        return np.array([int(label) for label in first])
    return np.array([float(said.removeprefix("Out 0: ")) if said != "null" else 0.0 for said in first])


def seconds_per_row(path: Path, otherwise: float) -> float:
    """Return the processor time per row that MOA reported last; ``otherwise`` if the limit was reached before."""
    rows = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
    if not rows:
        return otherwise
    return float(rows[-1]["evaluation time (cpu seconds)"]) / float(rows[-1]["learning evaluation instances"])


def failure(output: str) -> str:
    """Return the line of MOA's output that names an error."""
    found = re.search(r"^.*(Exception|Error).*$", output, re.MULTILINE)
    return found.group().strip() if found else "MOA made no predictions"
