"""Types of columns that are neither numbers nor words: each is given a meaning, or refused in one sentence."""

import datetime
import json

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

import kernling as kl
from kernling.io import stream
from kernling.tables import Encode

N = 60
DAY = datetime.datetime(2024, 1, 1)
HOURS = [datetime.timedelta(hours=i) for i in range(N)]
NESTED = {
    "lists": pyarrow.array([[1.0, 2.0]] * N),
    "pairs": pyarrow.array([[1.0, 2.0]] * N, pyarrow.list_(pyarrow.float64(), 2)),
    "structs": pyarrow.array([{"a": 1}] * N),
    "maps": pyarrow.array([[("a", 1)]] * N, pyarrow.map_(pyarrow.string(), pyarrow.int64())),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(column, **options):
    table = pyarrow.table({"x": column, "z": np.arange(float(N)), "y": np.arange(N) % 2})
    pyarrow.parquet.write_table(table, "t.parquet")
    return stream("t.parquet", target="y", **options).load()


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("missing", ["error", "keep"])
def test_lists_structs_and_maps_are_refused_in_one_sentence_and_can_be_left_out(kind, missing):
    def learn():
        return kl.StreamPipeline.auto().partial_fit(*read(NESTED[kind], missing=missing))

    with pytest.raises(ValueError, match=r"^column 'x' holds (lists|structs or maps): give each .* or ignore it$"):
        learn()
    X, y = read(NESTED[kind], missing="keep")
    assert kl.StreamPipeline.auto(ignore=["x"]).partial_fit(X, y).t_ == N
    assert stream("t.parquet", target="y", features=["z"]).load()[0].names == ("z",)
    with pytest.raises(ValueError, match="column 'x' holds"):
        stream("t.parquet", target="x").load()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("missing", ["error", "keep"])
def test_durations_are_seconds(unit, missing):
    X, _ = read(pyarrow.array(HOURS, pyarrow.duration(unit)), missing=missing)
    np.testing.assert_array_equal(X.columns["x"], 3600.0 * np.arange(N))
    gaps, _ = read(pyarrow.array([None, *HOURS[1:]], pyarrow.duration(unit)), missing="keep")
    assert np.isnan(gaps.columns["x"][0])
    assert gaps.missing("x").sum() == 1
    frame = pandas.DataFrame({"x": pandas.to_timedelta(np.arange(N), unit="h")})
    assert np.array_equal(Encode().fit_transform(frame)[:, 0], 3600.0 * np.arange(N))


@pytest.mark.parametrize(
    "kind", [pyarrow.time32("s"), pyarrow.time32("ms"), pyarrow.time64("us"), pyarrow.time64("ns")], ids=str
)
def test_times_of_day_are_seconds_since_midnight(kind):
    X, _ = read(pyarrow.array([datetime.time(i % 24, 30) for i in range(N)], kind))
    np.testing.assert_array_equal(X.columns["x"], [3600.0 * (i % 24) + 1800.0 for i in range(N)])


@pytest.mark.parametrize(
    "kind", [pyarrow.timestamp("s"), pyarrow.timestamp("ns", "Europe/Rome"), pyarrow.timestamp("us")], ids=str
)
def test_dates_are_never_numbers_of_nanoseconds(kind):
    moments = pyarrow.array([DAY + hours for hours in HOURS], kind)
    X, y = read(moments)
    model = kl.StreamPipeline.auto(scale=None).partial_fit(X, y)
    assert model.steps_[0][1].schema_[0].treatment == "date"
    assert np.abs(model.passed(X)).max() <= N
    with pytest.raises(ValueError, match="target 'x' holds dates, and should hold labels or numbers"):
        stream("t.parquet", target="x").load()
    labels = stream("t.parquet", target="x", categorical=["x"]).load()[1]
    assert len(set(labels)) == N


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-be", "utf-16-le"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl"])
def test_utf_16_is_recognised_by_its_mark(folder, coding, ending):
    frame = pandas.DataFrame({"größe": np.arange(20_000) / 7, "art": ["groß", "klein"] * 10_000, "y": np.arange(20_000) % 2})
    text = frame.to_json(orient="records", lines=True, force_ascii=False) if ending == ".jsonl" else frame.to_csv(index=False)
    data = text.encode(coding) if coding == "utf-16" else ("\ufeff" + text).encode(coding)
    if ending.endswith("gz"):
        import gzip

        data = gzip.compress(data)
    (folder / f"rows{ending}").write_bytes(data)
    X, y = stream(f"rows{ending}", target="y").load()
    np.testing.assert_allclose(X.columns["größe"], frame["größe"], rtol=1e-9)
    assert X.columns["art"].tolist() == frame["art"].tolist()
    assert y.sum() == 10_000
    (folder / "cut.csv").write_bytes("a,y\n1,2\n".encode("utf-16")[:-1])
    with pytest.raises(ValueError, match=r"cut\.csv is not utf-16 text throughout: .*truncated"):
        stream("cut.csv", target="y").load()


def test_numbers_of_many_digits_are_named_or_count_as_missing(folder):
    lines = [json.dumps({"x": float(i), "y": i % 2}) for i in range(N)]
    lines[30] = '{"x": ' + "9" * 401 + ', "y": 1}'
    (folder / "rows.jsonl").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="row 31: a number of 401 digits in column 'x' is too large"):
        stream("rows.jsonl", target="y").load()
    X, y = stream("rows.jsonl", target="y", missing="keep").load()
    model = kl.StreamPipeline.auto()
    with pytest.warns(UserWarning, match="cannot be used as a number and counts as missing"):
        model.partial_fit(X, y)
    assert model.t_ == N
    assert np.isfinite(model.passed(X)).all()
    assert model.learn_one({"x": 10**400}, 1).t_ == N + 1
    assert model.predict_one({"x": -(10**400)}) in (0, 1)
    lines[30] = '{"x": 1, "y": ' + "9" * 401 + "}"
    (folder / "rows.jsonl").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="row 31: a number of 401 digits in column 'y' is too large"):
        stream("rows.jsonl", target="y").load()
