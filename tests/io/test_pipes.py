"""Pipes: rows are given as they come."""

import os
import threading

import numpy as np
import pytest

from kernling.io import Stream, stream
from kernling.io.base import FIRST_PAUSE, WAIT

LIVE = {
    "csv": (b"x,y\n1,0\n", b"2,1\n"),
    "jsonl": (b'{"x": 1, "y": 0}\n', b'{"x": 2, "y": 1}\n'),
    "libsvm": (b"0 1:1\n", b"1 1:2\n"),
}


@pytest.mark.parametrize("format", LIVE)
def test_rows_of_a_pipe_are_given_as_they_come(format):
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        options = {"n_features": 1} if format == "libsvm" else {"target": "y"}
        rows = iter(stream(source, format=format, chunk=1, **options))
        for text, number in zip(LIVE[format], (1, 2), strict=True):
            sink.write(text)
            X, y = next(rows)  # would wait for ever if it wanted more
            total = X.sum() if format == "libsvm" else X.columns["x"].sum()
            assert (total, float(y[0])) == (number, number - 1)


@pytest.mark.parametrize("format", LIVE)
def test_rows_of_a_pipe_do_not_wait_for_a_chunk(format, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    options = {"n_features": 1} if format == "libsvm" else {"target": "y"}
    rows = iter(stream(path, format=format, **options))
    with open(os.open(path, os.O_RDWR), "wb", buffering=0) as sink:
        for text in LIVE[format]:
            sink.write(text)
            assert len(next(rows)[1]) == 1  # would wait for ever if it wanted more


def test_rows_that_come_quickly_fill_chunks():
    """And those left over wait for others only a moment."""
    pieces = [(np.zeros((6, 1)), np.zeros(6)) for _ in range(5)]
    rows = Stream(lambda _: iter(pieces), chunk=8)
    waits = []
    rows.more_within = lambda seconds: waits.append(seconds) or len(waits) < 6
    assert [len(y) for _, y in rows] == [8, 8, 8, 6]
    assert max(waits) <= FIRST_PAUSE
    assert max(waits[2:]) <= WAIT


def test_a_column_that_begins_empty_gets_its_kind_from_its_first_value():
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        rows = iter(stream(source, format="csv", target="y", chunk=1, missing="drop"))
        sink.write(b"x,y\n1,\n")
        threading.Timer(0.2, sink.write, [b"2,red\n"]).start()  # a block of its own
        assert next(rows)[1].tolist() == ["red"]
