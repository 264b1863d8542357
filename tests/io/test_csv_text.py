"""CSV as people have it: delimiters and decimal commas are detected."""

import gzip
import io
from functools import partial

import numpy as np
import pytest

from kernling.io import csv_text, stream
from kernling.io import lines as lines_module


@pytest.mark.parametrize("mark", [",", ";", "|", "\t"])
def test_delimiters_of_csv_files_are_detected(mark, tmp_path):
    others = ",;|\t".replace(mark, "")
    lines = [("a", f'"b{2 * others}"', "y"), ("1.5", f'"x{mark}y\nz"', "yes"), ("2", "w", "no")]
    (tmp_path / "rows.csv").write_text("".join(mark.join(line) + "\n" for line in lines))
    X, y = stream(tmp_path / "rows.csv", target="y").load()
    assert X.names == ("a", f"b{2 * others}")
    assert [column.tolist() for column in X.columns.values()] == [[1.5, 2.0], [f"x{mark}y\nz", "w"]]
    assert y.tolist() == ["yes", "no"]


def test_decimal_commas_between_semicolons(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    usual = 20 * "1;2,5;x;1\n"
    path.write_text(f"a;b;c;y\n{usual}2;-3,25;1,5 or so;0\n3;;y;1\n1,5;lost;z;0\n2.5;1,5;z;1\n")
    for size in (1 << 20, 8):  # all rows at once, and each alone
        monkeypatch.setattr(csv_text, "line_blocks", partial(lines_module.line_blocks, size=size))
        X, _ = stream(path, target="y", missing="keep").load()
        assert X.columns["a"].tolist() == [*20 * [1.0], 2.0, 3.0, 1.5, 2.5]
        assert [None if value != value else value for value in X.columns["b"]] == [*20 * [2.5], -3.25, None, "lost", 1.5]
        assert X.columns["c"].tolist() == [*20 * ["x"], "1,5 or so", "y", "z", "z"]
    (tmp_path / "rows.tsv").write_text("a\ty\n1,234\t1\n5,678\t0\n")  # thousands, more likely
    assert stream(tmp_path / "rows.tsv", target="y").load()[0].columns["a"].tolist() == [1234.0, 5678.0]


def test_lines_after_a_line_break_in_quotes_come_in_blocks():
    """Only while the quotes are open, lines have to wait."""
    text = b'a,"x\ny",1\n' + 100 * b"a,b,2\n" + b'a,"' + 1000 * b"long\n" + b'",3\n' + 2000 * b"a,b,4\n"
    blocks = list(lines_module.line_blocks(io.BytesIO(text), size=32, delimiter=","))
    assert b"".join(blocks) == text
    assert all(block.endswith(b"\n") and block.count(b'"') % 2 == 0 for block in blocks)
    *_, second, longest = sorted(map(len, blocks))
    assert second < 1500
    assert 5000 <= longest < 7000


def test_csv_whose_later_rows_differ_from_the_first(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n" + "1,,0\n" * 300_000 + "0.5,2.5,1.5\n")
    rows = stream(path, target="y", features=["a"])
    X, y = rows.load()
    assert X.columns["a"][-1] == 0.5
    assert y[-1] == 1.5
    with pytest.raises(ValueError, match="row 1 has no value in column 'b'"):
        stream(path, target="y").load()
    assert np.asarray(stream(path, target="y", missing="drop").load()[0]).tolist() == [[0.5, 2.5]]


def test_csv_without_header_and_with_tabs(tmp_path):
    (tmp_path / "rows.tsv.gz").write_bytes(gzip.compress(b"1\t2\tyes\n3\t4\tno\n"))
    rows = stream(tmp_path / "rows.tsv.gz", header=False, target=-1)
    X, y = rows.load()
    assert np.asarray(X).tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == ["yes", "no"]
    assert rows.names == ("f0", "f1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", r"row 2 has 1 columns, not 2: '3'"),
        ("", "empty"),
    ],
)
def test_damaged_csv(text, message):
    with pytest.raises(ValueError, match=message):
        stream(io.BytesIO(text.encode()), format="csv", target="a").load()


def test_csv_damaged_far_down_gives_the_rows_before():
    text = "a,b\n" + "1,2\n" * 600_000 + "1,x\n" + "1,2\n" * 3
    rows = iter(stream(io.BytesIO(text.encode()), format="csv", target="a", chunk=100_000))
    assert len(next(rows)[1]) == 100_000
    with pytest.raises(ValueError, match=r"row 600001: 'x'"):
        list(rows)
