"""The service without HTTP: what is learned, repeated, unknown and refused, and what survives."""

import sqlite3
import time
from concurrent.futures import wait

import numpy as np
import pytest

import serving
from kernling import models, registry
from kernling.serve.blocks import Block
from kernling.serve.demo import Demo
from kernling.serve.refusal import Refused
from kernling.serve.service import Service
from kernling.serve.settings import Settings

QUICK = Settings(first_rows=20, snapshot_seconds=3600.0)


def events(n, seed=0, ids=True):
    """Rows with a number, a text and a boolean, whose label follows from them."""
    rng = np.random.default_rng(seed)
    found = []
    for place in range(n):
        km, city = round(float(rng.normal()), 3), str(rng.choice(["Oslo", "Rome"]))
        late = (km > 0.0) == (city == "Oslo")
        row = {"km": km, "city": city, "rush": bool(rng.random() < 0.5), "target": "late" if late else "on time"}
        found.append(row | ({"id": f"{seed}-{place}"} if ids else {}))
    return found


@pytest.fixture
def start(tmp_path):
    """Start services in one folder, one after another; those that run in the end are stopped."""
    started = []

    def begin(settings=QUICK):
        started.append(Service(tmp_path / "service", settings))
        return started[-1]

    yield begin
    for service in started:
        if service.is_running:
            service.stop()


def contents(service, name):
    """The model as plain numbers, and how it did."""
    state = service.models[name].published
    return *serving.contents(state.model), state.progress.to_plain(), state.position


def send(service, rows, size, name="flights"):
    """Learn rows in requests of this size, each after the one before."""
    for first in range(0, len(rows), size):
        service.learn(name, rows[first : first + size]).result()


def test_a_name_makes_a_model_which_answers_the_constant_until_it_begins(start):
    service = start()
    send(service, events(19), 19)
    model = service.model("flights")
    assert model.published.model is None
    said = model.published.predict([{"km": 0.5, "city": "Oslo", "rush": True}], model.traits.layout)
    shares = said[0]["probabilities"]
    assert said[0]["label"] == max(shares, key=shares.get)
    send(service, events(300, seed=1), 50)
    facts = service.facts(model)
    assert facts["events"] == 319
    assert facts["estimator"]
    assert facts["lately"] < facts["constant_lately"]
    assert [row["treatment"] for row in facts["schema"]] == ["number", "category (2 values)", "boolean"]


@pytest.mark.parametrize(
    ("targets", "task"),
    [([1, 2], "classification"), ([True, False], "classification"), ([1.5, 2], "regression"), (["a"], "classification")],
)
def test_the_first_targets_tell_the_task(start, targets, task):
    service = start()
    service.learn("m", [{"x": 1.0, "target": target} for target in targets]).result()
    assert service.models["m"].traits.targets.task == task


def test_values_are_learned(start):
    service = start()
    rng = np.random.default_rng(0)
    for _ in range(5):
        X = rng.normal(size=(100, 2))
        rows = [{"a": a, "b": b, "target": 1000.0 + 100.0 * a * b + 0.5} for a, b in X.tolist()]
        service.learn("values", rows).result()
    facts = service.facts(service.models["values"])
    assert facts["measure"] == "rmse"
    assert facts["lately"] < facts["constant_lately"]
    said = service.models["values"].published.predict_few([{"a": 1.0, "b": 1.0}], service.models["values"].traits.layout)
    assert 900.0 < said[0]["value"] < 1300.0


def test_everything_twice_counts_once(start):
    once, twice = start(), None
    rows = events(200)
    send(once, rows, 40)
    expected = contents(once, "flights")
    once.stop()
    answers = []
    twice = start()  # the same folder: all of it was learned
    for first in range(0, 200, 40):
        answers.append(twice.learn("flights", rows[first : first + 40]).result())
    assert sum(answer["learned"] for answer in answers) == 0
    assert [one for answer in answers for one in answer["repeated"]] == [row["id"] for row in rows]
    assert contents(twice, "flights") == expected


def test_an_id_counts_once_within_a_request_and_within_a_block(start):
    service = start()
    row = events(1)[0]
    answer = service.learn("flights", [row, dict(row)]).result()
    assert answer == {"learned": 1, "repeated": ["0-0"], "unknown": []}
    futures = [service.learn("flights", [row | {"id": "x"}]) for _ in range(50)]
    wait(futures)
    assert sum(future.result()["learned"] for future in futures) == 1


def test_only_the_last_ids_are_known(start):
    settings = Settings(first_rows=20, known_ids=10)
    service = start(settings)
    rows = events(30)
    send(service, rows, 5)
    assert service.learn("flights", [rows[-10]]).result()["learned"] == 0
    assert service.learn("flights", [rows[0]]).result()["learned"] == 1
    service.stop()
    again = start(settings)
    assert len(again.known[1]) == 10
    assert again.learn("flights", [rows[0]]).result()["learned"] == 0
    assert again.learn("flights", [rows[1]]).result()["learned"] == 1


def test_labels_find_their_rows(start):
    service = start()
    send(service, events(30), 30)
    model = service.model("flights")
    row = {"km": 0.5, "city": "Oslo", "rush": True}
    before = service.learn("flights", [{"id": "late", "target": "late"}]).result()
    assert before == {"learned": 0, "repeated": [], "unknown": ["late"]}
    service.keep(model, ["late"], [row])
    service.keep(model, ["late"], [row | {"km": 9.0}])  # the first stays
    assert service.waiting.find(1, ["late"]) == {"late": row}
    assert service.learn("flights", [{"id": "late", "target": "late"}]).result()["learned"] == 1
    assert service.waiting.counts[1] == 0
    other = service.learn("flights", [{"id": "late", "target": "on time"}]).result()
    assert other == {"learned": 0, "repeated": ["late"], "unknown": []}
    service.keep(model, ["late"], [row])  # was learned, so nobody waits for it
    assert service.waiting.counts[1] == 0
    assert model.published.events == 31


def test_rows_that_wait_are_bounded_in_number_and_age(start):
    service = start(Settings(first_rows=20, waiting_rows=3, waiting_days=0.4 / 86_400))
    send(service, events(30), 30)
    model, row = service.model("flights"), {"km": 0.5, "city": "Oslo", "rush": True}
    service.keep(model, list("abcd"), [row] * 4)
    assert service.learn("flights", [{"id": "a", "target": "late"}]).result()["unknown"] == ["a"]
    assert service.facts(model)["evicted"] == 1
    time.sleep(0.5)
    service.waiting.evict_old()
    assert (service.facts(model)["waiting"], service.facts(model)["evicted"]) == (0, 4)
    assert service.learn("flights", [{"id": "d", "target": "late"}]).result()["unknown"] == ["d"]


GOOD = {"km": 1.0, "city": "Oslo", "rush": True, "target": "late"}
BAD = {
    "no column": ({"city": "Oslo", "rush": True, "target": "late"}, "there is no column 'km'"),
    "text": (GOOD | {"km": "far"}, "column 'km' holds numbers, not \"far\""),
    "a number for text": (GOOD | {"city": 3}, "column 'city' holds text, not 3"),
    "a boolean for a number": (GOOD | {"km": True}, "column 'km' holds numbers, not true"),
    "nested": (GOOD | {"km": [1.0]}, "column 'km' holds numbers"),
    "NaN": (GOOD | {"km": float("nan")}, "NaN in column 'km'"),
    "infinity": (GOOD | {"km": float("inf")}, "Infinity in column 'km'"),
    "too large": (GOOD | {"km": 10**400}, "in column 'km' cannot be learned"),
    "no target": ({"km": 1.0, "city": "Oslo", "rush": True}, "there is no 'target'"),
    "a target of another kind": (GOOD | {"target": 1}, "must be a label, here text"),
    "a value": (GOOD | {"target": 1.5}, "create the model with task regression"),
    "an empty label": (GOOD | {"target": ""}, "a label must have 1 to"),
    "a strange id": (GOOD | {"id": [1]}, "its id must be"),
    "nothing but a target": ({"target": "late"}, "must have columns, or the id"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_row_is_refused_with_its_index_and_nothing_changes(start, what):
    service = start()
    send(service, events(40), 40)
    before = contents(service, "flights")
    row, sentence = BAD[what]
    with pytest.raises(Refused, match="row 2") as refused:
        service.learn("flights", [GOOD | {"id": "new"}, GOOD, row, GOOD]).result()
    assert refused.value.row == 2
    assert sentence in str(refused.value)
    assert contents(service, "flights") == before
    assert service.learn("flights", [GOOD | {"id": "new"}]).result()["learned"] == 1


def test_the_index_counts_rows_that_were_repeated(start):
    service = start()
    rows = events(3)
    send(service, rows, 3)
    with pytest.raises(Refused) as refused:
        service.learn("flights", [rows[0], rows[1], GOOD | {"km": "far"}]).result()
    assert refused.value.row == 2


def test_a_gap_is_imputed(start):
    service = start()
    send(service, events(40), 40)
    assert service.learn("flights", [GOOD | {"km": None}]).result()["learned"] == 1
    model = service.model("flights")
    for predict in (model.published.predict, model.published.predict_few):
        assert predict([{"km": None, "city": None, "rush": None}], model.traits.layout)[0]["label"] in ("late", "on time")


def test_one_bad_request_does_not_spoil_the_block_of_others(start):
    service = start()
    send(service, events(40), 40)
    rows = [GOOD, GOOD | {"km": "far"}, GOOD] * 10
    futures = [service.learn("flights", [row]) for row in rows]
    wait(futures)
    assert [future.exception() is None for future in futures] == [True, False, True] * 10
    assert service.models["flights"].published.events == 60


def test_limits(start):
    service = start(Settings(models=2, columns=3, classes=2, characters=10, queue_rows=10))
    service.learn("a", [{"x": 1.0, "target": "p"}, {"x": 1.0, "target": "q"}]).result()
    for name, rows, sentence in (
        ("a", [{"x": 1.0, "target": "r"}], "more than 2 classes"),
        ("b", [{"x": 1.0, "y": 1.0, "z": 1.0, "u": 1.0, "target": "p"}], "1 to 3 columns"),
        ("b", [{"x" * 11: 1.0, "target": "p"}], "at most 10 characters"),
        ("b/..", [{"x": 1.0, "target": "p"}], "name of a model"),
        ("", [{"x": 1.0, "target": "p"}], "name of a model"),
    ):
        with pytest.raises(Refused, match=sentence):
            service.learn(name, rows).result()
    assert list(service.models) == ["a"]
    service.create("b").result()
    with pytest.raises(Refused, match="2 models already"):
        service.create("c").result()
    with pytest.raises(Refused, match="is a model called 'b' already"):
        service.create("b").result()


def test_a_full_queue_asks_to_come_back_and_loses_nothing(start, monkeypatch):
    service = start(Settings(first_rows=20, queue_rows=25))
    send(service, events(20), 20)
    rows, sent, refused = events(400, seed=3), [], []
    for first in range(0, 400, 10):
        try:
            sent.append(service.learn("flights", rows[first : first + 10]))
        except Refused as error:
            refused.append((error.status, error.retry_after))
    wait(sent)
    assert set(refused) == {(429, 1)}
    assert service.models["flights"].published.events == 20 + 10 * len(sent)


# ---------------------------------------------------------------------- what survives


def test_starting_again_gives_the_same_model_with_and_without_snapshots(start):
    service = start()
    send(service, events(70), 7)
    service._snapshot(service.models["flights"])
    send(service, events(95, seed=1), 19)
    expected = contents(service, "flights")
    abandon(service)
    again = start()
    assert contents(again, "flights") == expected
    again.stop()  # with a snapshot
    third = start()
    assert not list(third.journal.blocks(1, after=expected[-1]))
    assert contents(third, "flights") == expected
    send(third, events(30, seed=2), 10)


MAIN = [name for name in registry.public_names(main=True) if name.endswith(("Classifier", "Regressor"))]


@pytest.mark.parametrize(
    "estimator", ["SPAClassifier", *(pytest.param(name, marks=pytest.mark.long) for name in MAIN if name != "SPAClassifier")]
)
def test_coins_are_tossed_again_as_they_fell(start, estimator):
    service = start()
    service.create("m", {"estimator": estimator}).result()
    for seed in range(4):
        rows = [row | {"target": float(row["target"] == "late")} for row in events(50, seed=seed)]
        service.learn("m", rows).result()
        if seed == 1:
            service._snapshot(service.models["m"])
    expected = contents(service, "m")
    abandon(service)
    assert contents(start(), "m") == expected


def test_blocks_are_learned_again_as_they_were(start):
    service = start()
    futures = [service.learn("flights", [row]) for row in events(200)]  # blocks of whatever waited
    wait(futures)
    expected = contents(service, "flights")
    sizes = [len(record.block.pieces) for record in service.journal.blocks(1, after=0)]
    assert sum(sizes) == 200
    abandon(service)
    assert contents(start(), "flights") == expected


def test_a_model_that_has_not_begun_survives(start):
    service = start()
    send(service, events(10), 1)
    service.stop()
    again = start()
    assert again.models["flights"].published.events == 10
    send(again, events(15, seed=1), 15)
    assert again.models["flights"].published.model is not None


def abandon(service):
    """Leave a service as a crash would: nothing is saved."""
    service._snapshot = lambda model: None
    service.stop()


def damage(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


def test_a_damaged_snapshot_is_left_out_for_the_one_before(start, tmp_path):
    service = start()
    for seed in range(4):
        send(service, events(50, seed=seed), 10)
        service._snapshot(service.models["flights"])
    expected = contents(service, "flights")
    abandon(service)
    snapshots = sorted((tmp_path / "service/snapshots/1").glob("*.kern"))
    assert len(snapshots) == 2
    damage(snapshots[-1], -1)
    again = start()
    assert contents(again, "flights") == expected
    assert "a damaged snapshot was skipped" in again.facts(again.models["flights"])["errors"][0]["error"]


def test_without_any_snapshot_the_events_that_were_cut_are_told(start, tmp_path):
    service = start()
    for seed in range(4):
        send(service, events(50, seed=seed), 10)
        service._snapshot(service.models["flights"])
    abandon(service)
    for path in (tmp_path / "service/snapshots/1").glob("*.kern"):
        damage(path, -1)
    again = start()
    assert any("events in between are lost" in one["error"] for one in again.errors["flights"])
    send(again, events(50, seed=9), 50)


def test_a_damaged_record_is_told_and_left_out(start, tmp_path):
    service = start()
    send(service, events(50), 10)
    abandon(service)
    with sqlite3.connect(tmp_path / "service/journal.sqlite") as database:
        database.execute("UPDATE blocks SET content = zeroblob(length(content)) WHERE position = 5")
    database.close()
    again = start()
    assert again.models["flights"].published.events == 40
    assert "its 10 events are lost" in again.errors["flights"][0]["error"]


def test_a_damaged_tail_of_the_log_costs_its_last_commits_only(start, tmp_path):
    service = start()
    send(service, events(50), 10)
    log = (tmp_path / "service/journal.sqlite-wal").read_bytes()
    database = (tmp_path / "service/journal.sqlite").read_bytes()
    abandon(service)
    (tmp_path / "service/journal.sqlite").write_bytes(database)
    (tmp_path / "service/journal.sqlite-wal").write_bytes(log[:-100])  # a torn write
    again = start()
    left = again.models["flights"].published.events
    assert left == 40
    assert again.learn("flights", events(50)).result()["learned"] == 50 - left


def test_events_learned_after_the_journal_was_lost_are_not_taken_for_old_ones(start, tmp_path):
    service = start()
    send(service, events(100), 10)
    service.stop()
    for path in (tmp_path / "service").glob("journal.sqlite*"):
        path.unlink()
    again = start()
    assert not again.models  # the journal has their names
    send(again, events(40, seed=1), 10)
    expected = contents(again, "flights")
    abandon(again)
    third = start()
    assert third.models["flights"].number == 2
    assert contents(third, "flights") == expected


def test_a_damaged_database_is_put_aside_and_read_as_far_as_possible(start, tmp_path):
    service = start()
    send(service, events(2000), 100)
    service.stop()
    path = tmp_path / "service/journal.sqlite"
    content = bytearray(path.read_bytes())
    content[-3 * 4096 :] = b"\xff" * (3 * 4096)
    path.write_bytes(content)
    again = start()
    assert again.models["flights"].published.events == 2000  # the snapshot has them
    assert "the journal was damaged" in again.errors["flights"][0]["error"]
    assert (tmp_path / "service/journal.sqlite.damaged").exists()
    send(again, events(50, seed=1), 50)
    abandon(again)
    assert start().models["flights"].published.events == 2050


def test_a_full_disk_refuses_and_changes_nothing(start):
    service = start()
    send(service, events(60), 20)
    before = contents(service, "flights")
    pages = service.journal.database.execute("PRAGMA page_count").fetchone()[0]
    service.journal.database.execute(f"PRAGMA max_page_count={pages}")
    rows = events(4000, seed=1)
    with pytest.raises(Refused, match="nothing can be written: database or disk is full") as refused:
        service.learn("flights", rows).result()
    assert refused.value.status == 507
    with pytest.raises(Refused, match="disk is full"):
        service.learn("another", rows).result()
    assert service.failures
    assert contents(service, "flights") == before
    assert list(service.models) == ["flights"]
    service.journal.database.execute("PRAGMA max_page_count=1000000")
    assert service.learn("flights", rows).result()["learned"] == 4000  # their ids were not taken
    assert not service.failures


def test_a_snapshot_that_cannot_be_written_is_told_and_tried_again(start, monkeypatch):
    service = start()
    send(service, events(60), 20)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(models, "save", full)
        service._snapshot(service.models["flights"])
    assert "No space left" in service.errors["flights"][-1]["error"]
    service._snapshot(service.models["flights"])
    assert service.snapshots.newest(1).state.events == 60


def test_the_journal_is_cut_behind_the_last_two_snapshots(start):
    service = start()
    for seed in range(5):
        send(service, events(50, seed=seed), 10)
        service._snapshot(service.models["flights"])
    send(service, events(10, seed=9), 10)
    assert min(record.position for record in service.journal.blocks(1, after=0)) == 16 + 5


def test_a_client_that_goes_away_takes_nobody_with_it(start):
    service = start()
    send(service, events(40), 40)
    futures = [service.learn("flights", [GOOD]) for _ in range(100)]
    gone = [future.cancel() for future in futures[::2]]
    wait(futures)
    assert all(future.result()["learned"] == 1 for future in futures if not future.cancelled())
    assert service.models["flights"].published.events == 140 - sum(gone)


def test_a_model_that_could_not_be_entered_leaves_nothing_behind(start, tmp_path, monkeypatch):
    service = start()
    send(service, events(60), 20)
    models.save(service.models["flights"].published.model, tmp_path / "model.kern")
    uploaded = models.load(tmp_path / "model.kern")

    def full():
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as context:
        context.setattr(service.journal, "_cut_some", full)  # the last thing before a commit
        with pytest.raises(Refused, match="disk is full"):
            service.create("other", model=uploaded).result()
    assert list((tmp_path / "service/snapshots/2").glob("*.kern"))  # of the model that is not there
    send(service, events(30, seed=1), 30, name="other")
    abandon(service)
    assert start().models["other"].published.events == 30


def test_the_demonstration_feeds_two_models(start):
    service = start(Settings(first_rows=100))
    demo = Demo(service)
    try:
        end = time.monotonic() + 30.0
        while ("trips" not in service.models or not service.models["trips"].published.events) and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        demo.stop()
    assert service.models["orders"].published.events > service.models["trips"].published.events > 0
    assert service.waiting.counts[service.models["trips"].number] > 0


def test_a_folder_serves_one_service(start):
    start()
    with pytest.raises(ValueError, match="another service uses"):
        start()


def test_a_block_that_cannot_be_learned_is_refused_the_same_way_again(start, monkeypatch):
    service = start()
    send(service, events(40), 40)
    live = service.models["flights"]
    taught = live._teach

    def refuses(block):
        if any(value == 7.0 for value in block.columns["km"].tolist()):
            raise ValueError("the scores have grown beyond all bounds")
        taught(block)

    monkeypatch.setattr(live, "_teach", refuses)
    futures = [service.learn("flights", [GOOD | {"km": km}]) for km in (1.0, 7.0, 2.0)]
    wait(futures)
    assert [future.exception() is None for future in futures] == [True, False, True]
    assert live.published.events == 42


def test_blocks_keep_numbers_bit_by_bit():
    column = np.array([0.1, 1e-300, np.nan, -0.0])
    block = Block({"a": column, "b": np.array(["x", None, "é", ""], dtype=object)}, [0.1, 0.2, 1 / 3, 1e-17], (1, 3))
    again = Block.from_bytes(block.to_bytes())
    assert again.columns["a"].tobytes() == column.tobytes()
    assert again.columns["b"].tolist() == ["x", None, "é", ""]
    assert again.targets == block.targets
    assert [piece.targets for piece in again.split()] == [[0.1], [0.2, 1 / 3, 1e-17]]
