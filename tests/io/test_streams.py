"""One way in: whatever the source, the rows are the same."""

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
import tracemalloc
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy import sparse

from kernling.io import Stream, csv_text, progress, stream
from kernling.io import lines as lines_module
from kernling.tables import Encode, Table, part_from_state

ROWS = 1000
FRAME = pd.DataFrame(
    {
        "km": np.random.default_rng(0).standard_normal(ROWS),
        "port": np.random.default_rng(1).choice(["EWR", "JFK", "LGA"], ROWS),
        "stops": np.random.default_rng(2).integers(0, 4, ROWS),
        "late": np.random.default_rng(3).integers(0, 2, ROWS),
    }
)
X = np.column_stack([FRAME["km"], *(FRAME["port"] == name for name in ("EWR", "JFK", "LGA")), np.zeros(ROWS), FRAME["stops"]])
NAMES = ["km", "port=EWR", "port=JFK", "port=LGA", "port=?", "stops"]
OPTIONS = {"target": "late", "categorical": ["port"]}


def compressors():
    return {
        "": lambda data: data,
        ".gz": gzip.compress,
        ".xz": partial(lzma.compress, preset=0),
        ".bz2": bz2.compress,
        ".zst": _zst,
        ".zip": _zip,
    }


def _zst(data):
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as file:
        file.write(data)
    return out.getvalue().to_pybytes()


def _zip(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("rows", data)
    return out.getvalue()


def _bytes(format):
    out = io.BytesIO()
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    if format == "csv":
        pyarrow.csv.write_csv(table, out)
    elif format == "parquet":
        pyarrow.parquet.write_table(table, out)
    elif format == "arrow":
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table, 300)
    elif format == "stream":
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table, 300)
    elif format == "feather":
        pyarrow.feather.write_feather(table, out)
    else:
        out.write("".join(json.dumps(row) + "\n" for row in FRAME.to_dict("records")).encode())
    return out.getvalue()


def check(rows: Stream, chunk=300):
    encode = Encode(["port"])
    parts = [(encode.learn_transform(part), y) for part, y in rows]
    assert [len(y) for _, y in parts] == [chunk] * (ROWS // chunk) + ([ROWS % chunk] if ROWS % chunk else [])
    assert np.array_equal(np.concatenate([part for part, _ in parts]), X)
    assert np.array_equal(np.concatenate([y for _, y in parts]), FRAME["late"])
    assert rows.names == ("km", "port", "stops")
    assert rows.target == "late"
    assert encode.get_feature_names_out().tolist() == NAMES


@pytest.mark.parametrize(
    "source",
    [
        FRAME,
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME, preserve_index=False),
        pa.RecordBatch.from_pandas(FRAME, preserve_index=False),
        FRAME.astype({"port": "category"}),
        pl.from_pandas(FRAME).with_columns(pl.col("port").cast(pl.Categorical)),
    ],
    ids=["pandas", "polars", "table", "batch", "pandas-category", "polars-category"],
)
def test_frames(source):
    rows = stream(source, chunk=300, **OPTIONS)
    check(rows)
    check(rows)  # again


def test_record_batches_are_read_once():
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    for source in (table.to_reader(max_chunksize=70), iter(table.to_batches(max_chunksize=70))):
        rows = stream(source, chunk=300, **OPTIONS)
        check(rows)
        with pytest.raises(ValueError, match="only once"):
            iter(rows)


def test_reading_a_compressed_file_tells_how_far_it_is(tmp_path):
    path = tmp_path / "rows.csv.gz"
    rng = np.random.default_rng(0)
    path.write_bytes(gzip.compress(b"a,b\n" + b"".join(b"%f,%f\n" % tuple(row) for row in rng.random((200_000, 2)))))
    told = []
    with progress.heard_by(told.append):
        stream(path, target="b").load()
    shares = [int(words.removeprefix(f"reading {path}: ").removesuffix("%")) for words in told]
    assert shares == sorted(shares)
    assert shares[0] < 80 < shares[-1] == 100
    stream(path, target="b").load()
    assert len(told) == len(shares)


@pytest.mark.parametrize("compression", compressors())
@pytest.mark.parametrize("format", ["csv", "parquet", "arrow", "stream", "feather", "jsonl"])
def test_files(format, compression, tmp_path):
    suffix = "arrow" if format in ("stream", "feather") else format
    path = tmp_path / f"rows.{suffix}{compression}"
    data = compressors()[compression](_bytes(format))
    path.write_bytes(data)
    rows = stream(path, chunk=300, **OPTIONS)
    check(rows)
    check(rows)
    check(stream(io.BytesIO(data), format=suffix, chunk=300, **OPTIONS))


@pytest.mark.parametrize(
    "format", ["csv", *(pytest.param(name, marks=pytest.mark.long) for name in ("arrow", "jsonl", "libsvm")), "parquet"]
)
def test_standard_input(format):
    data = b"1 1:0.5\n-1 2:1\n" * 500 if format == "libsvm" else _bytes(format)
    options = {"format": format} | ({} if format == "libsvm" else OPTIONS)
    program = (
        f"from kernling.io import stream\nfrom kernling.tables import Encode\nrows = stream('-', **{options!r})\n"
        f"rows = rows if {format == 'libsvm'} else rows.through(Encode(['port']))\n"
        "X, y = rows.load(); print(X.shape[0], repr(float(X.sum())), float(y.sum()))"
    )
    out = subprocess.run([sys.executable, "-c", program], input=gzip.compress(data), capture_output=True, check=True)
    count, total, targets = out.stdout.split()
    assert int(count) == 1000
    assert float(total) == pytest.approx(750.0 if format == "libsvm" else X.sum())
    assert float(targets) == (0.0 if format == "libsvm" else FRAME["late"].sum())


@pytest.mark.parametrize("format", ["svm", "csv"])
@pytest.mark.parametrize(
    ("compression", "damage"),  # only bz2 sees at once where it is damaged; the others may give wrong bytes for a while
    [(".gz", "cut off"), (".xz", "cut off"), (".bz2", "cut off"), (".zst", "cut off"), (".bz2", "overwritten")],
)
def test_a_damaged_compressed_file_gives_the_rows_before(compression, damage, format, tmp_path):
    values = np.random.default_rng(0).standard_normal(100_000).tolist()
    lines = [f"1 1:{x!r}\n" for x in values] if format == "svm" else ["y,x\n", *(f"1,{x!r}\n" for x in values)]
    path = tmp_path / f"rows.{format}{compression}"
    data = compressors()[compression]("".join(lines).encode())
    place = len(data) * 2 // 3
    path.write_bytes(data[:place] + (b"" if damage == "cut off" else bytes(1000) + data[place + 1000 :]))
    found = []
    rows = stream(path, dense=True, **({} if format == "svm" else {"target": "y"}))
    with pytest.raises(ValueError, match=rf"{path.name} (is truncated|is damaged)"):
        found.extend(x for X, _ in rows for x in (X if format == "svm" else np.asarray(X))[:, 0].tolist())
    assert 15_000 < len(found) < 100_000
    assert found == values[: len(found)]


def test_formats_are_told_by_content(tmp_path):
    for format in ("parquet", "arrow", "stream", "jsonl", "csv"):
        path = tmp_path / f"{format}.data"
        path.write_bytes(gzip.compress(_bytes(format)))
        check(stream(path, chunk=300, **OPTIONS))
    (tmp_path / "a9a.t").write_bytes(b"-1 3:1 11:0.5 \n+1 1:1 \n")
    assert stream(tmp_path / "a9a.t").load()[0].shape == (2, 11)
    for mark in (";", "\t"):
        (tmp_path / "table.data").write_bytes(_bytes("csv").replace(b",", mark.encode()))
        check(stream(tmp_path / "table.data", chunk=300, **OPTIONS))
    for unclear in (b"some words\n", b"\x00\x01,\x02\n"):
        (tmp_path / "table.data").write_bytes(unclear)
        with pytest.raises(ValueError, match="format="):
            stream(tmp_path / "table.data", **OPTIONS).load()


def test_a_similar_name_is_suggested(tmp_path):
    (tmp_path / "rows.csv").write_text("Temperature,late\n1,0\n")
    for name, similar in (("Late", "late"), ("temperatur", "Temperature")):
        with pytest.raises(ValueError, match=f"there is no column '{name}'; did you mean '{similar}'"):
            stream(tmp_path / "rows.csv", target=name).load()
    with pytest.raises(ValueError, match="there is no column 'y'; the columns are 'Temperature', 'late'"):
        stream(tmp_path / "rows.csv", target="y").load()


def as_csv(targets):
    return "".join(["a,c,y\n", *(f"{i},red,{'' if y is None else y}\n" for i, y in enumerate(targets))]).encode()


def as_jsonl(targets):
    return "".join(json.dumps({"a": i, "c": "red", "y": y}) + "\n" for i, y in enumerate(targets)).encode()


@pytest.mark.parametrize(("format", "written"), [("csv", as_csv), ("jsonl", as_jsonl)])
@pytest.mark.parametrize(
    ("targets", "place", "message"),
    [
        ([i / 7 for i in range(3000)], 1500, "row 1501: '1.2x3' in column 'y' is not a number"),
        ([i % 2 for i in range(3000)], 1500, "row 1501: '1.2x3' in column 'y' is not a number"),
        ([i % 2 for i in range(200_000)], 150_000, "row 150001: '1.2x3' in column 'y' is not a number"),  # in a later block
        ([i / 7 for i in range(300)], 0, "row 1: '1.2x3' in column 'y' is not a number"),
        ([i / 7 for i in range(300)], 20, "row 21 has an infinite value in column 'y'"),
        ([i / 7 for i in range(300)], 20, "row 21 has no value in column 'y'"),
        (["yes", "no"] * 300, 33, "row 34 has no value in column 'y'"),
        (["yes", "no"] * 300, 0, "row 1 has no value in column 'y'"),
    ],
)
def test_a_damaged_or_missing_target_is_named_after_the_rows_before(targets, place, message, format, written):
    bad = "1.2x3" if "1.2x3" in message else float("inf") if "infinite" in message else None
    data = written([*targets[:place], bad, *targets[place + 1 :]])
    options = {"format": format, "target": "y", "categorical": ["c"]}
    found = []
    rows = stream(io.BytesIO(data), **options)
    with pytest.raises(ValueError, match=message):
        found.extend(y for _, chunk in rows for y in chunk.tolist())
    assert found == targets[:place]
    if bad != "1.2x3":
        kept = stream(io.BytesIO(data), missing="drop", **options).load()[1]
        assert kept.tolist() == targets[:place] + targets[place + 1 :]


def test_a_target_of_names_that_look_like_numbers():
    labels = [str(i % 2) for i in range(300)] + ["unknown"]
    rows = stream(io.BytesIO(as_csv(labels)), format="csv", target="y", features=["a"], categorical=["y"])
    X, y = rows.load()
    assert y.tolist() == labels
    assert X.shape == (301, 1)
    for target in ("y", None):  # further rows to learn, or to predict
        options = {"target": target, "features": ["a"], "categorical": ["y"]}
        X, y = stream(io.BytesIO(as_csv(["0", "1"])), format="csv", **options).load()
        assert np.asarray(X).tolist() == [[0.0], [1.0]]
        assert target is None or y.tolist() == ["0", "1"]
    mixed = ["1", "2", "x"] * 10
    assert stream(io.BytesIO(as_csv(mixed)), format="csv", target=-1, categorical=["c"]).load()[1].tolist() == mixed


GAPS = {"a": [1.0, 2.0, 3.0, 4.0], "c": ["red", None, "blue", "red"], "b": [True, False, None, True], "y": ["u", "v", "u", "v"]}


@pytest.mark.parametrize(
    "source",
    [
        pd.DataFrame(GAPS),
        pd.DataFrame(GAPS).astype({"c": "string[pyarrow]", "b": "boolean", "y": "string"}),
        pd.DataFrame(GAPS).astype({"c": "category"}),
        pl.DataFrame(GAPS),
        pa.table(GAPS),
        b"a,c,b,y\n1,red,true,u\n2,,false,v\n3,blue,,u\n4,red,true,v\n",
        "".join(json.dumps(dict(zip(GAPS, row, strict=True))) + "\n" for row in zip(*GAPS.values(), strict=True)).encode(),
    ],
    ids=["pandas", "pandas-nullable", "pandas-category", "polars", "arrow", "csv", "jsonl"],
)
def test_missing_values_of_any_kind(source):
    options = {"target": "y", "categorical": ["c"]}
    if isinstance(source, bytes):
        options["format"] = "csv" if source.startswith(b"a") else "jsonl"

    def where():
        return io.BytesIO(source) if isinstance(source, bytes) else source

    encode = Encode(["c"])
    X, y = stream(where(), missing="drop", **options).through(encode).load()
    assert encode.get_feature_names_out().tolist() == ["a", "c=red", "c=?", "b"]
    assert X.tolist() == [[1, 1, 0, 1], [4, 1, 0, 1]]
    assert y.tolist() == ["u", "v"]
    found = iter(stream(where(), **options))
    assert next(found)[1].tolist() == ["u"]
    with pytest.raises(ValueError, match="row 2 has no value in column 'c'"):
        next(found)


@pytest.mark.parametrize("source", [io.BytesIO(b"a,a,y\n1,2,0\n"), pd.DataFrame([[1, 2, 0]], columns=["a", "a", "y"])])
def test_two_columns_of_one_name(source):
    with pytest.raises(ValueError, match="two columns are called 'a'"):
        stream(source, format="csv", target="y").load()


@pytest.mark.parametrize("size", [1, 7, 50, 1 << 20])
def test_line_breaks_in_quoted_values(size, monkeypatch):
    notes = ['"one\ntwo, three"', '"a ""word""\n"', 'an inch (")', '""', '"\n\n"', "plain", '",""\n"']
    lines = [f"{i},{notes[i % len(notes)]},{i % 2}\n" for i in range(60)]
    monkeypatch.setattr(csv_text, "line_blocks", lambda file, delimiter: lines_module.line_blocks(file, size, delimiter))
    options = {"format": "csv", "target": "y", "features": ["a"]}
    X, y = stream(io.BytesIO("".join(["a,note,y\n", *lines]).encode()), **options).load()
    assert X.columns["a"].tolist() == list(range(60))
    assert y.tolist() == [i % 2 for i in range(60)]
    for bad, message in (("40,1\n", "row 41 has 2 columns, not 3"), ('x,"\n",1\n', "row 41: 'x'")):
        found = iter(stream(io.BytesIO("".join(["a,note,y\n", *lines[:40], bad, *lines[41:]]).encode()), **options))
        assert len(next(found)[1]) == 40
        with pytest.raises(ValueError, match=message):
            next(found)


def test_json_lines_whose_names_come_and_go():
    text = b'{"b": 1, "y": 1}\n{"a": 2, "b": 3, "y": 0}\n{"a": 4, "b": 5, "c": "more", "y": 1}\n{"a": 6, "b": 7}\n'
    options = {"format": "jsonl", "target": "y", "features": ["a", "b"]}
    X, y = stream(io.BytesIO(text), missing="drop", **options).load()
    assert np.asarray(X).tolist() == [[2, 3], [4, 5]]
    assert y.tolist() == [0, 1]
    with pytest.raises(ValueError, match="row 1 has no value in column 'a'"):
        stream(io.BytesIO(text), **options).load()
    with pytest.raises(ValueError, match="line 2: the name 'a' is not in the first line"):
        stream(io.BytesIO(text), format="jsonl", target="y", missing="drop").load()
    with pytest.raises(ValueError, match="no line has the name 'z'; the names are 'b', 'y'"):
        stream(io.BytesIO(text), format="jsonl", target="y", features=["b", "z"], missing="drop").load()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": 1, "b": ', "line 3: "),
        ("[1, 2]", "line 3: expected an object"),
        ('{"a": [1], "b": 2}', "line 3: expected an object"),
        ('{"a": 1, "c": 2}', "line 3: the name 'c' is not in the first line"),
        ("[" * 100_000, "line 3: "),
    ],
)
def test_damaged_json_lines_give_the_rows_before(line, message):
    rows = iter(stream(io.BytesIO(f'{{"a": 1, "b": 2}}\n\n{line}\n'.encode()), format="jsonl", target="a"))
    assert np.asarray(next(rows)[0]).tolist() == [[2.0]]
    with pytest.raises(ValueError, match=message):
        next(rows)


def test_arrays():
    y = np.arange(ROWS)
    rows = stream(X, y, chunk=64)
    assert np.array_equal(rows.load()[0], X)
    taken, targets = rows.take(100).load()
    assert np.array_equal(taken, X[:100])
    assert np.array_equal(targets, y[:100])
    kept = stream(sparse.csc_matrix(X), y, chunk=64)
    assert all(sparse.issparse(part) and part.format == "csr" for part, _ in kept)
    assert np.array_equal(kept.load()[0].toarray(), X)
    assert np.array_equal(stream(sparse.coo_matrix(X), dense=True).load()[0], X)
    with pytest.raises(ValueError, match="y has shape"):
        stream(X, y[1:])
    with pytest.raises(ValueError, match="2-D"):
        stream(y, y)
    with pytest.raises(ValueError, match="chunk"):
        stream(X, y, chunk=0)
    with pytest.raises(TypeError, match="cannot stream a int"):
        stream(3).load()


def test_columns_by_name_in_another_order():
    rows = stream(FRAME, target="late", features=["stops", "km"])
    assert np.array_equal(rows.load()[0], FRAME[["stops", "km"]])
    with pytest.raises(ValueError, match="no column 'miles'"):
        stream(FRAME, target="late", features=["miles"]).load()
    with pytest.raises(ValueError, match="add the column to categorical"):
        np.asarray(stream(FRAME, target="late").load()[0])
    with pytest.raises(ValueError, match="categorical: there is no column 'harbour'"):
        stream(FRAME, target="late", categorical=["harbour"]).load()


def test_categories_are_a_state_that_survives_json():
    encode = Encode(["port"])
    stream(FRAME[:200], **OPTIONS).through(encode).load()
    again = part_from_state(json.loads(json.dumps(encode.to_state())))
    later = FRAME[200:210].copy()
    later.loc[later.index[0], "port"] = "BOS"  # never seen: the column for all others
    got = again.transform(later)
    assert got[0].tolist() == [later["km"].iloc[0], 0, 0, 0, 1, later["stops"].iloc[0]]
    assert np.array_equal(got[1:], X[201:210])
    assert again.get_feature_names_out().tolist() == NAMES
    given = Encode({"port": ["LGA", "EWR"]})
    rows = given.fit_transform(FRAME[["km", "port", "stops"]])
    assert given.get_feature_names_out().tolist() == ["km", "port=LGA", "port=EWR", "port=?", "stops"]
    assert rows[:, 1].sum() == (FRAME["port"] == "LGA").sum()


def test_hashed_categories():
    def hashed(frame, chunk=8192):
        return stream(frame, chunk=chunk, **OPTIONS).through(Encode(["port"], hash=64)).load()[0]

    got = hashed(FRAME)
    assert got.shape == (ROWS, 66)
    ports = got[:, 2:].toarray()
    assert (ports.sum(axis=1) == 1).all()
    codes = {name: set(ports[FRAME["port"] == name].argmax(axis=1)) for name in ("EWR", "JFK", "LGA")}
    assert all(len(code) == 1 for code in codes.values())
    assert (hashed(FRAME[::-1], chunk=7)[::-1] != got).nnz == 0  # nothing depends on what came first
    assert hashed(FRAME[["port", "late"]]).shape == (ROWS, 64)


def test_categories_are_the_same_however_a_reader_typed_them():
    expected = Encode({"c": ["1", "2"]}).fit_transform({"c": np.array(["1", "2", "2", "3"])})
    for values in ([1, 2, 2, 3], [1.0, 2.0, 2.0, 3.0], np.array([1, "2", 2.0, 3], dtype=object)):
        assert np.array_equal(Encode({"c": ["1", "2"]}).fit_transform({"c": np.array(values)}), expected)


def test_tables_are_rows():
    table = Table({"a": np.arange(4), "c": np.array(["x", "y", "x", None], dtype=object)})
    assert table[1:3].categories("c") == (["x", "y"], pytest.approx([1, 0]))
    table.categories("c")
    assert table[[0, 2]].categories("c")[1].tolist() == [1, 1]  # "None" comes first; codes are taken over, not found anew
    assert table.missing("c").tolist() == [False, False, False, True]
    with pytest.raises(ValueError, match="row 1: 'x' in column 'c' is not a number"):
        np.asarray(table)
    with pytest.raises(ValueError, match="equally long"):
        Table({"a": np.arange(2), "b": np.arange(3)})
    X, y = stream(table, target="a", categorical=["c"], missing="drop").load()
    assert stream(X, y).load()[0].columns["c"].tolist() == ["x", "y", "x"]


def test_a_stream_larger_than_the_memory_it_takes(tmp_path):
    path = tmp_path / "long.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,b,y\n")
        for _ in range(500):
            file.write(b"0.123456789,0.987654321,1\n" * 10_000)  # 130 MB in all
    tracemalloc.start()
    count = sum(len(y) for _, y in stream(path, target="y"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 5_000_000
    assert peak < 65e6


def test_an_object_that_would_run_code_is_only_text(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"a": "__import__(\'os\').abort()", "y": 1}\n')
    X, _ = stream(tmp_path / "rows.jsonl", target="y", categorical=["a"]).load()
    assert Encode(["a"]).fit_transform(X).sum() == 1


def test_several_files_follow_one_another(tmp_path):
    """With the columns of the widest LIBSVM file, and an error that names its file."""
    (tmp_path / "a.svm").write_text("1 1:0.5\n-1 2:1\n")
    (tmp_path / "b.svm").write_text("1 3:2\n")
    X, y = stream([tmp_path / "a.svm", tmp_path / "b.svm"], dense=True).load()
    np.testing.assert_array_equal(X, [[0.5, 0, 0], [0, 1, 0], [0, 0, 2]])
    np.testing.assert_array_equal(y, [1, -1, 1])
    (tmp_path / "c.csv").write_text("a,b\n1,2\n")
    (tmp_path / "d.csv").write_text("b,a\n3,4\n5,x\n")
    rows = stream([str(tmp_path / "c.csv"), str(tmp_path / "d.csv")], target="b")
    chunks = iter(rows)
    X, y = next(chunks)
    np.testing.assert_array_equal(np.c_[np.asarray(X), y], [[1, 2], [4, 3]])
    with pytest.raises(ValueError, match=r"d\.csv: row 2"):
        next(chunks)
