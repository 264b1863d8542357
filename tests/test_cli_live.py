"""Rows that come slowly through a pipe are answered as they come; one line for every row that goes in."""

import json
import os
import select
import subprocess
import sys
import time

import numpy as np
import pytest

import kernling

RNG = np.random.default_rng(5)
HOURS, TOWNS = RNG.integers(0, 24, 400).tolist(), RNG.choice(["Oslo", "Rome"], 400).tolist()
ROWS = [{"hour": hour, "town": town} for hour, town in zip(HOURS, TOWNS, strict=True)]
LATE = ["late" if (row["hour"] > 12) == (row["town"] == "Oslo") else "on time" for row in ROWS]


def as_json(row, late):
    return json.dumps({**row, "late": late})


def as_csv(row, late):
    return f"{row['hour']},{row['town']},{late}"


def as_libsvm(row, late):
    return f"{int(late == 'late')} 1:{row['hour']} 2:{int(row['town'] == 'Oslo')}"


FORMATS = {
    "jsonl": (as_json, [], ["--target", "late"]),
    "csv": (as_csv, ["hour,town,late"], ["--target", "late"]),
    "libsvm": (as_libsvm, [], ["--n-features", "2"]),
}


class Command:
    """The command line in a process of its own, with pipes at both ends."""

    def __init__(self, *arguments):
        program = [sys.executable, "-m", "kernling", *arguments]
        self._process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._rest = b""

    def say(self, lines):
        self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self._process.stdin.flush()

    def lines(self, count, within=90.0):
        """So many lines of standard output."""
        end = time.monotonic() + within
        output = self._process.stdout.fileno()
        while self._rest.count(b"\n") < count:
            assert select.select([output], [], [], max(0.0, end - time.monotonic()))[0], self._rest
            data = os.read(output, 1 << 16)
            assert data, self._process.stderr.read().decode()
            self._rest += data
        *lines, self._rest = self._rest.split(b"\n", count)
        return [line.decode() for line in lines]

    def end(self):
        output, told = self._process.communicate()
        assert self._process.returncode == 0, told.decode()
        return output.decode(), told.decode()


@pytest.mark.skipif(os.name != "posix", reason="pipes are waited for with select")
@pytest.mark.parametrize(
    ("command", "format"),
    [
        ("run", "jsonl"),
        pytest.param("predict", "csv", marks=pytest.mark.long),
        pytest.param("run", "csv", marks=pytest.mark.long),
        pytest.param("run", "libsvm", marks=pytest.mark.long),
        pytest.param("predict", "jsonl", marks=pytest.mark.long),
        pytest.param("predict", "libsvm", marks=pytest.mark.long),
    ],
)
def test_each_row_is_answered_before_the_next_one_is_sent(command, format, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line, header, options = FORMATS[format]
    if command == "run":
        process = Command("run", "-", *options, "--predictions", "-")
    else:
        if format == "libsvm":
            numbers = [[row["hour"], row["town"] == "Oslo"] for row in ROWS]
            model = kernling.AVMClassifier().fit(np.array(numbers, float), [int(late == "late") for late in LATE])
        else:
            model = kernling.StreamPipeline.auto().fit(ROWS, LATE)
        kernling.save(model, "m.kern")
        process = Command("predict", "m.kern", "-", *options)
    lines = [line(*row) for row in zip(ROWS, LATE, strict=True)]
    process.say(header + lines[:20])
    process.lines(20)  # ready
    for place in range(20, 35):
        process.say(lines[place : place + 1])
        assert len(process.lines(1)) == 1
    process.end()
