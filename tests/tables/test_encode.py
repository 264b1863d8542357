"""Columns find their treatment by the first rows, and later rows change nothing but scales and means."""

import datetime
import json
import warnings

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from kernling.io import stream
from kernling.tables import Encode, Standardise, part_from_state
from kernling.tables.fill import Fill

N = 400
RNG = np.random.default_rng(0)
MOMENTS = np.datetime64("2026-01-01T00:30:00", "s") + 3600 * np.arange(N)
TABLE = pandas.DataFrame(
    {
        "km": RNG.normal(1000.0, 200.0, N),
        "town": RNG.choice(["Bergen", "Oslo", "Rome"], N),
        "rain": RNG.random(N) < 0.3,
        "at": MOMENTS.astype(str),
        "ticket": [f"T{i}" for i in range(N)],
        "same": 7.0,
    }
)
GAPS = TABLE.assign(km=TABLE["km"].where(RNG.random(N) > 0.2), town=TABLE["town"].where(RNG.random(N) > 0.2))


def auto(**options):
    return Encode(scale=Standardise(clip=5.0), missing="impute", **options)


def treatments(encode):
    return {column.name: (column.treatment, column.width) for column in encode.schema_}


@pytest.mark.parametrize(
    "make",
    [
        lambda frame: frame,
        polars.from_pandas,
        pyarrow.Table.from_pandas,
        lambda frame: frame.to_dict("records"),
        lambda frame: frame.assign(at=pandas.to_datetime(frame["at"])),
        lambda frame: polars.from_pandas(frame.assign(at=pandas.to_datetime(frame["at"]))),
    ],
)
def test_columns_find_their_treatment(make):
    encode = auto().begin(make(TABLE))
    assert treatments(encode) == {
        "km": ("number", 1),
        "town": ("category", 4),
        "rain": ("boolean", 1),
        "at": ("date", 7),
        "ticket": ("ignore", 0),
        "same": ("number", 1),
    }
    expected = auto().learn_transform(TABLE)
    found = encode.learn_transform(make(TABLE))
    np.testing.assert_allclose(found[:, : expected.shape[1]], expected, atol=1e-12)
    assert not found[:, expected.shape[1] :].any()  # kept free for further keys of dictionaries
    assert not expected[:, -1].any()  # a constant column costs nothing


def test_only_numbers_are_scaled():
    rows = auto().fit_transform(TABLE)
    assert set(np.unique(rows[:, 1:6])) == {0.0, 1.0}  # a rare category stays 1
    assert rows[:, 0].mean() == pytest.approx(0.0, abs=1e-9)
    assert rows[:, 0].std() == pytest.approx(1.0, abs=0.01)
    assert (rows[:, 1:5].sum(axis=1) == 1.0).all()


def test_dates_are_angles_and_elapsed_time():
    encode = Encode()
    rows = encode.fit_transform(pandas.DataFrame({"at": ["2026-01-01T06:00:00", "2026-04-06 12:00", "2026-01-01T06:00:00Z"]}))
    named = dict(zip(encode.get_feature_names_out(), rows.T, strict=True))
    assert named["at days"].tolist() == [0.0, 95.25, 0.0]
    np.testing.assert_allclose(named["at hour sine"], [1.0, 0.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(named["at month sine"], [0.0, 1.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(
        named["at weekday cosine"], [np.cos(6 / 7 * np.pi), 1.0, np.cos(6 / 7 * np.pi)]
    )  # Thursday, Monday
    days = Encode().begin([{"at": datetime.date(2026, 1, 1)}, {"at": None}])
    assert treatments(days) == {"at": ("date", 5)}  # no time of day
    with pytest.raises(ValueError, match=r"row 2: '31\.1\.2026' in column 'at' is not an ISO 8601 date"):
        encode.transform({"at": np.array(["2026-01-31", "31.1.2026"])})


def test_seconds_are_dates_when_told():
    encode = Encode(date=["at"])
    seconds = encode.fit_transform({"at": MOMENTS.astype(np.int64)})
    np.testing.assert_array_equal(seconds, Encode().fit_transform({"at": MOMENTS}))


def test_gaps_take_the_mean_so_far_and_are_marked():
    encode = auto()
    rows = encode.learn_transform(GAPS)
    absent = GAPS["km"].isna().to_numpy()
    assert treatments(encode)["km"] == ("number", 2)
    assert treatments(encode)["town"] == ("category", 5)
    np.testing.assert_array_equal(rows[:, 1], absent)
    np.testing.assert_allclose(rows[absent, 0][20:], 0.0, atol=0.2)  # nearly the mean, on its scale
    np.testing.assert_array_equal(rows[:, 6], GAPS["town"].isna())
    assert encode.imputed_ == absent.sum()
    whole = Encode(missing="impute").learn_transform(GAPS)
    before = GAPS["km"].expanding().mean().bfill().to_numpy()  # the first rows' first value, until there was one
    np.testing.assert_allclose(whole[absent, 0], before[absent])


@pytest.mark.parametrize("chunk", [1, 7, 150])
def test_nothing_depends_on_the_chunks(chunk):
    whole, cut = auto(), auto().begin(GAPS)
    rows = [cut.learn_transform(GAPS[first : first + chunk]) for first in range(0, N, chunk)]
    np.testing.assert_array_equal(np.vstack(rows), whole.learn_transform(GAPS))
    assert cut.to_state() == whole.to_state()


def test_an_outlier_does_not_flatten_the_rest():
    values = np.append(RNG.normal(size=500), [1e9, *RNG.normal(size=500)])
    clipped, plain = Standardise(clip=5.0), Standardise()
    robust, flat = (part.learn_transform(values[:, None])[:, 0] for part in (clipped, plain))
    assert robust[501:].std() == pytest.approx(1.0, abs=0.1)
    assert flat[501:].std() < 0.01
    assert np.abs(robust).max() <= 5.0
    assert clipped.clipped_ == 1
    assert clipped.transform([[1e9]]) == 5.0
    again = part_from_state(json.loads(json.dumps(clipped.to_state())))
    assert again.learn_transform(np.array([[1e9]])) <= 5.0
    assert again.clipped_ == 2
    with pytest.raises(ValueError, match="clip must be a number above 0"):
        Standardise(clip=0.0).fit([[1.0]])


@pytest.mark.parametrize(("rows", "value", "clipped"), [(29, 99.0, 0), (30, 1.999, 0), (30, 2.001, 1), (30, -2.001, 1)])
def test_values_beyond_the_clip_of_enough_rows_are_outliers(rows, value, clipped):
    """Of 30 rows with mean 0 and deviation 1, a value beyond 2 deviations is clipped, and none before; of 29 rows, none is."""
    part = Standardise(clip=2.0)
    part.learn_transform(np.where(np.arange(30) < 15, 1.0, -1.0)[:rows, None])
    part.learn_transform([[value]])
    assert part.clipped_ == clipped


@pytest.mark.parametrize(("rows", "mean"), [(30, 10.0 / 31.0), (29, 1e6 / 30.0)])
def test_outliers_count_less_for_what_is_imputed_once_there_are_enough_rows(rows, mean):
    """Beyond 10 mean deviations, here of 1."""
    values = np.append(np.where(np.arange(rows) % 2, 1.0, -1.0), 1e6)
    assert Fill(1).learn(values[:, None]).mean[0] == pytest.approx(mean, abs=0.05)


def test_text_is_ignored_if_more_than_half_of_it_is_distinct():
    twice = [f"T{i // 2}" for i in range(400)]
    assert treatments(Encode().begin({"ticket": np.array(twice)}))["ticket"][0] == "category"
    assert treatments(Encode().begin({"ticket": np.array([*twice[:-1], "other"])}))["ticket"] == ("ignore", 0)


def test_what_a_call_fills_is_kept_with_the_call_only():
    fill = Fill(1).learn(np.array([[1.0], [3.0], [2.0]]))
    before = fill.to_state()
    later = fill.learn(np.array([[9.0], [np.nan]]))
    assert fill.to_state() == before
    assert all(later.to_state()[name] != before[name] for name in before)


@pytest.mark.parametrize("missing", ["impute", "error"])
def test_an_empty_text_is_missing_in_a_row_as_in_a_table(missing):
    encode = Encode(missing=missing).begin(TABLE[["town", "km"]])
    one, table = {"town": "", "km": 900.0}, pandas.DataFrame({"town": [""], "km": [900.0]})
    if missing == "error":
        for call in (encode.transform_one, encode.learn_transform_one):
            with pytest.raises(ValueError, match="no value in column 'town'"):
                call(one)
        return
    np.testing.assert_array_equal(encode.transform_one(one), encode.transform(table)[0])
    np.testing.assert_array_equal(encode.learn_transform_one(one), encode.learn_transform(table)[0])


def test_an_outlier_does_not_spoil_what_is_imputed():
    values = np.append(RNG.normal(size=500), [1e9, np.nan])
    assert abs(Encode(missing="impute").learn_transform({"a": values})[-1, 0]) < 0.2


@pytest.mark.parametrize("value", [1e71, -1e151, 1e300, np.inf])
def test_numbers_too_large_for_a_scale_count_as_missing(value):
    encode = Encode(scale=Standardise(), missing="impute").fit({"a": [1.0, 3.0]})
    with pytest.warns(UserWarning, match="cannot be used as a number"):
        one, rows = encode.learn_transform_one({"a": value}), encode.learn_transform({"a": [value, 2.0]})
    assert np.isfinite(one).all()
    assert np.isfinite(rows).all()
    assert part_from_state(json.loads(json.dumps(encode.to_state()))).scale_.mean_ == 2.0
    with pytest.raises(ValueError, match="infinity or numbers above 1e\\+70; fill or drop"):
        Encode(scale=Standardise()).fit({"a": [1.0, 3.0]}).learn_transform({"a": [value]})


def test_many_categories_are_hashed_beyond_the_most_frequent():
    towns = [f"town{i}" for i in range(30) for _ in range(30 - i)]
    encode = Encode(limit=10)
    rows = encode.fit_transform({"town": np.array(towns)})
    assert treatments(encode) == {"town": ("category", 26)}
    assert encode.schema_[0].categories == tuple(sorted(f"town{i}" for i in range(10)))
    assert (rows.sum(axis=1) == 1.0).all()
    unseen = encode.transform({"town": np.array(["Atlantis", "Utopia", "Atlantis"])})
    assert (unseen[:, :10] == 0.0).all()
    assert unseen[0].tolist() == unseen[2].tolist()


@pytest.mark.parametrize(("limit", "columns"), [(10, 11), (9, 25), (11, 11)])
def test_as_many_categories_as_the_limit_are_not_hashed(limit, columns):
    encode = Encode(limit=limit).begin({"town": np.array([f"town{i}" for i in range(10)] * 20)})
    assert treatments(encode) == {"town": ("category", columns)}


def test_categories_that_are_to_come_have_room_where_the_first_rows_are_few():
    """The first row of a slow stream must not lump all other towns together."""
    encode = Encode().begin([{"town": "Oslo"}])
    others = {encode.transform([{"town": town}])[0].argmax() for town in ("Rome", "Lima", "Bern", "Cork")}
    assert len(others) > 1
    settled = Encode().begin([{"town": town} for town in 100 * ["Oslo", "Rome"]])
    assert treatments(settled) == {"town": ("category", 3)}


def test_treatments_can_be_given():
    encode = auto(categorical=["same"], numeric=["rain"], ignore=["km"], date=["at"]).begin(TABLE)
    found = treatments(encode)
    assert (found["same"], found["rain"], found["km"]) == (("category", 2), ("number", 1), ("ignore", 0))
    with pytest.raises(ValueError, match="numeric: there is no column 'miles'; the columns are"):
        Encode(numeric=["miles"]).begin(TABLE)
    with pytest.raises(ValueError, match="column 'km' cannot be both number and ignore"):
        Encode(numeric=["km"], ignore=["km"]).begin(TABLE)
    with pytest.raises(TypeError, match="numeric must be a list of names, not 'km'"):
        Encode(numeric="km").begin(TABLE)
    with pytest.raises(ValueError, match="missing must be 'error' or 'impute', not 'drop'"):
        Encode(missing="drop").begin(TABLE)


def test_later_tables_of_another_shape():
    encode = auto()
    encode.learn_transform(TABLE)
    expected = encode.transform(TABLE[:5])
    np.testing.assert_array_equal(encode.transform(TABLE[:5][["same", "at", "rain", "town", "km"]]), expected)  # no ticket
    with pytest.raises(ValueError, match="there are no columns 'km', 'rain'; the columns are 'town', 'at', 'same'"):
        encode.transform(TABLE[["town", "at", "same"]])
    with pytest.warns(UserWarning, match="the columns 'snow' were not present in the first rows and are ignored"):
        np.testing.assert_array_equal(encode.transform(TABLE[:5].assign(snow=1.0)), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode.transform(TABLE[:5].assign(snow=1.0))  # once is enough


def test_a_column_that_changes_its_kind():
    encode = auto()
    encode.learn_transform(TABLE)
    numbers = encode.transform(TABLE[:5].assign(town=3))
    assert (numbers[:, 1:5] == [0, 0, 0, 1]).all()
    with pytest.warns(UserWarning, match="'far' in column 'km' cannot be used as a number and counts as missing"):
        words = encode.learn_transform(TABLE[:5].assign(km="far"))
    np.testing.assert_allclose(words[:, 0], 0.0, atol=1e-9)
    assert encode.imputed_ == 5
    with pytest.raises(ValueError, match="row 1: 'far' in column 'km' is not a number"):
        Encode().fit(TABLE).transform(TABLE[:5].assign(km="far"))


@pytest.mark.parametrize("value", [[1], {"a": 1}, np.zeros(2)], ids=["list", "dict", "array"])
def test_later_rows_with_values_inside_of_values(value):
    rows = [{"city": "Oslo", "km": 1.0}, {"city": "Rome", "km": 2.0}] * 20
    encode = Encode().fit(rows)
    for call in (encode.transform_one, encode.learn_transform_one):
        with pytest.raises(ValueError, match=r"column 'city' holds .*: give each of their values a column of its own"):
            call({"city": value, "km": 3.0})


def test_the_schema_is_shown_and_saved():
    encode = auto()
    encode.learn_transform(GAPS)
    shown = str(encode.schema_).splitlines()
    assert shown[0].endswith("  2 columns")
    assert "number, gaps marked" in shown[0]
    assert "category (3 values), gaps marked" in shown[1]
    assert "date with time of day" in shown[3]
    assert "ignored" in shown[4]
    again = part_from_state(json.loads(json.dumps(encode.to_state())))
    assert again.schema_ == encode.schema_
    np.testing.assert_array_equal(again.learn_transform(GAPS), encode.learn_transform(GAPS))
    for change in ({"treatment": "magic"}, {"others": 10**9}, {"gaps": 1}, {"name": 3}):
        state = encode.to_state()
        state["schema"][0] |= change
        with pytest.raises(ValueError, match=r"not a column of a schema|cannot have"):
            part_from_state(state)


def test_rows_with_gaps_are_kept_when_asked(tmp_path):
    GAPS.to_csv(tmp_path / "rows.csv", index=False)
    X, _ = stream(tmp_path / "rows.csv", missing="keep").load()
    assert len(X) == N
    np.testing.assert_allclose(auto().learn_transform(X), auto().learn_transform(GAPS), atol=1e-9)
    dropping = stream(tmp_path / "rows.csv", missing="drop")
    assert len(dropping.load()[0]) + dropping.dropped == N
    assert dropping.dropped > 0
