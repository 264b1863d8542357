"""Numbers, gaps and dates as people write them, identifiers, and keys that come and go."""

import numpy as np
import pandas as pd
import pytest

import kernling as kl
from kernling.io import stream
from kernling.tables import Encode, Standardise, part_from_state
from kernling.tables.dates import moment
from kernling.tables.late import SPARE
from kernling.tables.written import COMMA, PLAIN, POINT, are_thousands, form_of, number

RNG = np.random.default_rng(0)


def german(value):
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def treatments(encode):
    return {column.name: (column.treatment, column.form) for column in encode.schema_}


@pytest.mark.parametrize(
    ("text", "form", "value"),
    [
        ("1.234,56", COMMA, 1234.56),
        ("46,91 €", COMMA, 46.91),
        ("-1 234 567,5", COMMA, -1234567.5),
        ("1'234.5", POINT, 1234.5),
        ("$1,200", POINT, 1200.0),
        ("($1,200.50)", POINT, -1200.5),
        ("EUR 12", POINT, 12.0),
        ('"12.50"', POINT, 12.5),
        ("12 %", POINT, 12.0),
        ("5-", POINT, -5.0),
        ("1.5e3", POINT, 1500.0),
        ("12,34", POINT, None),  # no thousands
        ("1.5", COMMA, None),
        ("--5", POINT, None),
        ("ABC 12", POINT, None),
        ("1 2", POINT, None),
    ],
)
def test_numbers_as_people_write_them(text, form, value):
    assert number(text, form) == pytest.approx(np.nan if value is None else value, nan_ok=True)


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["1.5", "2"], PLAIN),
        (["1,234", "12"], POINT),  # thousands, unless another value says otherwise
        (["1,234", "12,5"], COMMA),
        (["1.234", "1.234,5"], COMMA),
        (["-", "n/a", "3 €"], POINT),
        (["-", "?"], None),
        (["a", "1"], None),
    ],
)
def test_the_values_decide_how_numbers_are_written(texts, form):
    assert form_of(dict.fromkeys(texts, 1)) == form
    assert form_of({"1,234": 1}, decimal=",") == COMMA


@pytest.mark.parametrize(
    ("texts", "form", "first"),
    [
        (["01.02.2025 13:00", "02.02.2025 14:30"], "day first", "2025-02-01T13:00"),
        (["1/13/2025", "1/2/2025"], "month first", "2025-01-13T00:00"),
        (["3/4/2025", "4/4/2025", "5/4/2025"], "day first", "2025-04-03T00:00"),  # days that follow each other
        (["4/3/25 1:05 PM", "4/4/25 12:00 AM"], "month first", "2025-04-03T13:05"),
        (["2025-01-02T03:04:05.1+01:00", "2025-01-02 03:04 UTC"], "", "2025-01-02T03:04:05"),
        (["12 Jan 2025", "Feb 1, 2025"], "", "2025-01-12T00:00"),
    ],
)
def test_the_values_decide_how_dates_are_written(texts, form, first):
    encode = Encode().begin({"at": np.array(texts)})
    assert treatments(encode)["at"] == ("date", form)
    assert moment(texts[0], form) == np.datetime64(first, "s")
    other = Encode(day_first=form != "day first").begin({"at": np.array(texts)})
    assert form == "" or other.schema_[0].form != form or other.schema_[0].treatment != "date"


def test_an_export_from_germany_is_understood(tmp_path):
    """Decimal commas, thousands, currencies, gaps, dates and an encoding that nobody names."""
    n = 600
    at = np.datetime64("2025-01-01T00:00", "s") + 3600 * np.arange(n)
    sales, price = np.exp(RNG.normal(7.0, 1.0, n)), RNG.uniform(5.0, 90.0, n)
    target = 2.0 * np.log(sales) + 0.1 * price
    lost = RNG.random(n) < 0.1
    day = [f"{t[8:10]}.{t[5:7]}.{t[:4]} {t[11:16]}" for t in at.astype(str)]
    lines = [
        f"{d};{'-' if gone else german(s)};{german(p)} €;Straße;{german(y)}"
        for d, s, p, y, gone in zip(day, sales, price, target, lost, strict=True)
    ]
    path = tmp_path / "export.csv"
    path.write_bytes("\n".join(["Datum;Umsatz;Preis;Weg;Ziel", *lines]).encode("cp1252"))
    with pytest.warns(UserWarning, match="is not UTF-8: the file is read as cp1252"):
        X, y = stream(path, target="Ziel", missing="keep").load()
    np.testing.assert_allclose(y, np.round(target, 2), atol=1e-9)
    encode = Encode(missing="impute").begin(X)
    assert treatments(encode) == {
        "Datum": ("date", "day first"),
        "Umsatz": ("number", COMMA),
        "Preis": ("number", COMMA),
        "Weg": ("category", ""),
    }
    rows = pd.DataFrame(encode.learn_transform(X), columns=encode.get_feature_names_out())
    np.testing.assert_allclose(rows["Umsatz"][~lost], np.round(sales, 2)[~lost])
    np.testing.assert_array_equal(rows["Umsatz missing"], lost)
    np.testing.assert_allclose(rows["Preis"], np.round(price, 2))
    np.testing.assert_allclose(rows["Datum days"], np.arange(n) / 24.0)
    assert encode.unread_ == {}
    assert X.columns["Weg"][0] == "Straße"
    again = stream(path, target="Ziel", missing="keep", encoding="cp1252").load()[0]
    assert again.columns["Weg"].tolist() == X.columns["Weg"].tolist()
    with pytest.raises(ValueError, match="Python knows no 'cp0'"):
        stream(path, target="Ziel", encoding="cp0").load()


def test_text_that_is_neither_is_refused_with_its_line(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("a;y\nä;1\n".encode() + b"\xe4;2\n")  # UTF-8 so far
    with pytest.raises(ValueError, match=r"line 3 is not UTF-8 text .* or name its encoding"):
        stream(path, target="y").load()
    path.write_bytes(b"a;y\n\xe4\x00;2\n")
    with pytest.raises(ValueError, match="line 2 is not UTF-8 text"):
        stream(path, target="y").load()


def test_identifiers_are_left_out_with_a_word():
    n = 200
    frame = pd.DataFrame(
        {
            "order": np.arange(1000, 1000 + n),
            "customer_id": RNG.permutation(n),
            "at": 1_700_000_000 + 60 * np.arange(n),  # seconds since 1970
            "visits": RNG.permutation(n),
            "uuid": [f"{value:x}" for value in RNG.integers(2**60, size=n)],
            "trend": np.arange(n) / 7.0,
        }
    )
    with pytest.warns(UserWarning, match=r"^ignored: 'order' \(an identifier.*; 'customer_id' .*; 'uuid' \(text that is"):
        encode = Encode().begin(frame)
    assert encode.schema_.ignored().count("(") == 3
    assert {name for name, (kind, _) in treatments(encode).items() if kind == "number"} == {"at", "visits", "trend"}
    kept = Encode(numeric=["order"], categorical=["customer_id"], ignore=["uuid"]).begin(frame)
    assert kept.schema_.ignored() == "'uuid' (as asked)"


def events(n, first_has_key=False):
    rows, labels = [], []
    for place in range(n):
        a, k, town = RNG.normal(), RNG.normal(), str(RNG.choice(["Oslo", "Rome"]))
        row = {"a": a, "town": town}
        if place or first_has_key:
            row["k"] = k
        rows.append(row)
        labels.append("up" if k > 0.0 else "down")
    return rows, labels


@pytest.mark.parametrize("start", [0, 1, 100])
def test_a_key_that_comes_later_is_learned(start):
    """One event at a time, or in lists; after a few events it is used."""
    rows, labels = events(1500)
    for row in rows[:start]:
        row.pop("k", None)
    model = kl.StreamPipeline.auto(kl.KRLSClassifier(), task="classification")
    with pytest.warns(UserWarning, match="column 'k' is new: it is learned from now on"):
        model.partial_fit(rows[: max(start, 1)], labels[: max(start, 1)]).partial_fit(
            rows[max(start, 1) : 1000], labels[max(start, 1) : 1000]
        )
    assert np.mean(model.predict(rows[1000:]) == labels[1000:]) > 0.95
    for row, label in zip(rows[1000:1050], labels[1000:1050], strict=True):
        model.learn_one(row, label)
    assert np.mean([model.predict_one(row) == label for row, label in zip(rows[1050:], labels[1050:], strict=True)]) > 0.95
    model.learn_one(rows[0] | {"later": 1.0}, "up")
    assert model.predict_one({"later": 1.0}) in ("up", "down")  # all that it has is known, though not from the first rows
    assert model.n_features_in_ == 4
    assert "k" in model.feature_names_in_
    encode = model.steps_[0][1]
    assert (treatments(encode)["k"], encode.free) == (("number", ""), SPARE - 2)
    assert "came later" in str(encode.schema_)


def test_late_columns_are_saved_exported_and_bounded(tmp_path):
    rows, labels = events(400)
    model = kl.StreamPipeline.auto(kl.AVMClassifier(delta=1.0), task="classification").partial_fit(rows[:1], labels[:1])
    late = [row | {f"n{i}": float(place % 7) for i in range(30)} for place, row in enumerate(rows[1:])]
    with pytest.warns(UserWarning, match=r"the columns 'n15', .* were not present in the first rows and are ignored"):
        model.partial_fit(late, labels[1:])
    encode = model.steps_[0][1]
    assert encode.free == 0
    kl.save(model, tmp_path / "m.kern")
    again = kl.load(tmp_path / "m.kern")
    np.testing.assert_array_equal(again.decision_function(late), model.decision_function(late))
    held = encode.to_state()
    held["late"][0]["first"] = 3
    with pytest.raises(ValueError, match="do not fit into those kept free"):
        part_from_state(held)


def test_late_columns_are_encoded_as_they_come_whatever_the_chunks():
    rows, _ = events(300)
    for place, row in enumerate(rows[100:]):
        row |= {"n": f"{place},5 €", "c": "ab"[place % 2], "d": f"2026-01-{1 + place % 28:02}", "b": place % 3 == 0}
        del row["n" if place % 5 == 4 else "a"]
    whole, single = (Encode(scale=Standardise(clip=5.0), missing="impute") for _ in range(2))
    first = whole.learn_transform(rows[:100])
    single.learn_transform(rows[:100])
    with pytest.warns(UserWarning, match="is new"):
        found = np.vstack([first, whole.learn_transform(rows[100:])])
    with pytest.warns(UserWarning, match="is new"):
        pieces = [single.learn_transform(rows[100:102]), *(single.learn_transform_one(row)[np.newaxis] for row in rows[102:])]
    np.testing.assert_allclose(found[100:], np.vstack(pieces), atol=1e-9)
    assert whole.to_state() == single.to_state()
    assert [one.width for one in whole.schema_ if one.late] == [1, 4, 1, 1]
    names = whole.get_feature_names_out().tolist()
    there = np.array(["n" in row for row in rows])
    assert not found[~there][:, names.index("n")].any()  # a missing one is at the mean
    values = np.array([place + 0.5 for place in range(200) if place % 5 != 4])
    assert whole.measured()["n"][0] == pytest.approx(values.mean())
    assert found[-2, names.index("n")] == pytest.approx((198.5 - values.mean()) / values.std())


def test_an_absent_key_is_a_missing_value():
    rows, labels = events(300, first_has_key=True)
    model = kl.StreamPipeline.auto(kl.AVMClassifier(delta=1.0)).partial_fit(rows, labels)
    gone = {"a": 1.0, "town": "Oslo"}
    null = gone | {"k": None}
    assert model.predict_one(gone) == model.predict_one(null) == model.predict([gone])[0]
    assert model.score_one(gone) == model.score_one(null) == pytest.approx(model.decision_function([gone, rows[0]])[0])
    before = model.steps_[0][1].imputed_
    model.learn_one(gone, "up").partial_fit([gone, rows[0]], ["up", "down"])
    assert model.steps_[0][1].imputed_ == before + 2
    with pytest.raises(ValueError, match="there are no columns 'a', 'town', 'k'"):
        model.predict_one({"A": 1.0})
    with pytest.raises(ValueError, match="there is no column 'k'"):
        model.predict(pd.DataFrame([gone]))  # a column of a frame is lost by mistake


def test_numbers_in_quotes_are_numbers_and_nonsense_is_counted():
    rows, labels = events(300, first_has_key=True)
    model = kl.StreamPipeline.auto(kl.AVMClassifier(delta=1.0)).partial_fit(rows, labels)
    assert model.score_one(rows[0] | {"k": "0.5"}) == pytest.approx(model.score_one(rows[0] | {"k": 0.5}))
    with pytest.warns(UserWarning, match="'yesterday' in column 'k' cannot be used as a number and counts as missing"):
        model.learn_one(rows[0] | {"k": "yesterday"}, "up").partial_fit(
            [rows[0] | {"k": "x"}, rows[1] | {"k": "-"}], ["up", "up"]
        )
    assert model.steps_[0][1].unread_ == {"k": 2}


def test_lines_of_json_whose_keys_come_and_go(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = ['{"a": 1, "y": 0}', '{"b": "x", "y": 1}', '{"a": "2,5", "c": null}']
    path.write_text("\n".join(lines))
    X, y = stream(path, target="y", missing="keep").load()
    assert {name: values.tolist() for name, values in X.columns.items()} == {
        "a": [1, None, "2,5"],
        "b": [None, "x", None],
        "c": [None, None, None],
    }
    assert X.keyed
    np.testing.assert_array_equal(y, [0.0, 1.0, np.nan])
    X, _ = stream(path, target="y", missing="keep", chunk=1, features=["a"]).load()
    assert X.names == ("a",)
    with pytest.raises(ValueError, match="line 2: the name 'b' is not in the first line"):
        stream(path, target="y").load()


def test_arrow_streams_come_in_by_one_way():
    """Anything with Arrow's interface, such as a relation of duckdb; lazy frames are told to be collected."""
    pyarrow = pytest.importorskip("pyarrow")

    class Relation:
        def __init__(self, table):
            self.columns, self._table = table.column_names, table

        def __arrow_c_stream__(self, requested_schema=None):
            return self._table.__arrow_c_stream__(requested_schema)

    rows, labels = events(300, first_has_key=True)
    table = pyarrow.Table.from_pylist([row | {"label": label} for row, label in zip(rows, labels, strict=True)])
    table = pyarrow.concat_tables([table.slice(0, 100), table.slice(100)])  # two batches
    X, y = stream(Relation(table), target="label").load()
    np.testing.assert_array_equal(y, labels)
    assert X.columns["a"].tolist() == [row["a"] for row in rows]
    ours, theirs = (kl.StreamPipeline.auto(kl.AVMClassifier(delta=1.0)) for _ in range(2))
    ours.learn_many(Relation(table.drop_columns("label")), labels)
    theirs.partial_fit(table.drop_columns("label"), labels)
    np.testing.assert_array_equal(ours.decision_function(Relation(table)), theirs.decision_function(table))
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"LazyFrame, which has no rows before it is collected: pass X.collect\(\)"):
        ours.predict(polars.from_arrow(table).lazy())


def test_unfitted_and_fitted_models_are_listed_and_displayed():
    rows, labels = events(50, first_has_key=True)
    for model in (
        kl.AutoClassifier(),
        kl.AutoRegressor(),
        kl.StreamPipeline.auto(),
        kl.StreamPipeline.auto().partial_fit(rows, labels),
    ):
        assert {"learn_one", "learn_many", "predict"} <= set(dir(model))
        assert "<" in model._repr_html_()


@pytest.mark.parametrize(
    ("texts", "commas", "expected"),
    [
        ([f"{n}.{n:03d}" for n in range(1, 30)] + ["7", "950"], False, True),
        ([f"{n}.{n:03d}" for n in range(1, 30)], False, False),  # could be either: decimals
        ([f"{n}.{n:03d}" for n in range(1, 30)], True, True),
        ([f"{n}.{n:03d}" for n in range(30)] + ["7"], True, False),  # 0.000 is a decimal
        ([f"{n}.{n:03d}" for n in range(1, 30)] + ["1.5"], True, False),
        ([f"{n}.{n:03d}" for n in range(1, 30)] + ["1234"], True, False),
        ([str(n) for n in range(500)], True, False),
        (["1.234", "7"], True, False),  # too few to tell
    ],
)
def test_points_between_thousands(texts, commas, expected):
    assert are_thousands(texts, commas) is expected


def test_a_file_with_points_between_thousands(tmp_path):
    path = tmp_path / "sales.csv"
    lines = [f"{n % 9 + 1}.{n % 7}00;{n}.250,{n % 10}5;{n % 3},5;0.{n % 1000:03d};{n % 2}" for n in range(1, 300)]
    path.write_text("\n".join(["units;price;km;share;late", *lines]))
    X, _ = stream(path, target="late", missing="keep").load()
    encode = Encode(missing="impute").fit(X)
    forms = {column.name: column.form for column in encode.schema_}
    assert forms == {"units": COMMA, "price": COMMA, "km": "", "share": ""}
    units = next(fill for name, (fill, _) in encode.measured().items() if name == "units")
    assert 4000 < units < 7000
    assert "written as 1.234,5" in str(encode.schema_)
