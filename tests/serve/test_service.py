"""The service without HTTP: models, ids and late labels."""

import time
from concurrent.futures import wait

import numpy as np
import pytest

from kernling.estimators.task_choice import task_of
from kernling.serve import waiting
from kernling.serve.demo import Demo
from kernling.serve.history import History
from kernling.serve.refusal import Refused
from kernling.serve.settings import Settings
from serving import abandon, contents_of, events, send


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
    [
        ([1, 2], "classification"),
        ([True, False], "classification"),
        ([1.5, 2], "regression"),
        (["a"], "classification"),
        (list(range(20)), "classification"),
        (list(range(30)), "regression"),
    ],
)
def test_the_first_targets_tell_the_task(start, targets, task):
    service = start()
    service.learn("m", [{"x": 1.0, "target": target} for target in targets]).result()
    assert service.models["m"].traits.targets.task == task == task_of(targets)  # as in Python and on the command line


def test_first_targets_that_are_neither_labels_nor_values_are_refused(start):
    service = start()
    with pytest.raises(Refused, match="must be a label"):
        service.learn("m", [{"x": 1.0, "target": [1, 2]}, {"x": 1.0, "target": [3]}]).result()


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
    expected = contents_of(once, "flights")
    once.stop()
    answers = []
    twice = start()  # the same folder: all of it was learned
    for first in range(0, 200, 40):
        answers.append(twice.learn("flights", rows[first : first + 40]).result())
    assert sum(answer["learned"] for answer in answers) == 0
    assert [one for answer in answers for one in answer["repeated"]] == [row["id"] for row in rows]
    assert contents_of(twice, "flights") == expected


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
    service.keep(model, ["both"], [row])
    both = service.learn("flights", [{"id": "both", "target": "late"}, {"id": "both", "target": "on time"}]).result()
    assert both == {"learned": 1, "repeated": ["both"], "unknown": []}
    assert model.published.progress.counts["late"] == 2 + sum(event["target"] == "late" for event in events(30))


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


def test_many_rows_wait_in_pieces_and_their_log_is_merged(start, tmp_path, monkeypatch):
    service = start()
    send(service, events(30), 30)
    model = service.model("flights")
    rows = {f"late {place}": {"km": float(place), "city": "Oslo", "rush": True} for place in range(450)}
    service.keep(model, list(rows), list(rows.values()))
    log = tmp_path / "service/waiting.sqlite-wal"
    service.waiting.merge_log()
    assert log.stat().st_size > 0  # short
    monkeypatch.setattr(waiting, "PAGES", 1)
    service.waiting.merge_log()
    assert log.stat().st_size == 0
    assert service.waiting.find(1, list(rows)) == rows
    answer = service.learn("flights", [{"id": one, "target": "late"} for one in rows]).result()
    assert (answer["learned"], service.waiting.counts[1], service.waiting.find(1, list(rows))) == (450, 0, {})


def test_a_client_that_goes_away_takes_nobody_with_it(start):
    service = start()
    send(service, events(40), 40)
    futures = [service.learn("flights", events(1, ids=False)) for _ in range(100)]
    gone = [future.cancel() for future in futures[::2]]
    wait(futures)
    assert all(future.result()["learned"] == 1 for future in futures if not future.cancelled())
    assert service.models["flights"].published.events == 140 - sum(gone)


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


def test_events_that_are_replayed_are_not_counted_as_learned_now(start, tmp_path):
    service = start()
    send(service, events(200), 50)
    abandon(service)
    again = start()
    history = again.histories[1]
    history.add(again.facts(again.model("flights")), 0)
    assert history.moments[-1]["events"] == 200
    assert history.moments[-1]["rate"] == 0.0


def test_the_rate_of_events_is_that_of_the_last_seconds(monkeypatch):
    history, clock = History(), [time.time()]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    for arrived in (60, 0, 60, 0, 60, 0, 60, 0, 60, 0):  # whole blocks, 30 a second
        clock[0] += 1.0
        history.add({"events": arrived + (history.moments[-1]["events"] if history.moments else 0)}, waiting=0)
    assert all(24.0 <= moment["rate"] <= 36.0 for moment in history.moments[5:])


def test_a_folder_serves_one_service(start):
    start()
    with pytest.raises(ValueError, match="another service uses"):
        start()
