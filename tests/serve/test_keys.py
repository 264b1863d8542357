"""Events whose keys come and go, types that change, and predictions before any label."""

import random

import pytest

from kernling.serve.refusal import Refused
from kernling.serve.settings import Settings
from serving import events, send, served

ROW = {"km": 1.0, "city": "Oslo", "rush": True}


def optional(n, seed=0):
    rng = random.Random(seed)
    rows = []
    for place in range(n):
        row = {"a": rng.random(), "k": rng.gauss(0.0, 1.0)}
        row["target"] = "up" if row["k"] > 0.0 else "down"
        if place == 0:
            del row["k"]
        rows.append(row)
    return rows


def mistakes(service, rows):
    model = service.model("optional")
    said = model.published.predict(rows, model.traits.layout)
    return sum(one["label"] != row["target"] for one, row in zip(said, rows, strict=True)) / len(rows)


def test_a_key_that_the_first_event_lacks_is_learned(start):
    service = start(Settings(first_rows=100))
    rows = optional(800)
    send(service, [row | {"id": f"{place}"} for place, row in enumerate(rows[:600])], 7, name="optional")
    assert mistakes(service, rows[600:]) < 0.1
    service.stop()
    assert mistakes(start(Settings(first_rows=100)), rows[600:]) < 0.1


def test_a_key_that_comes_after_the_start_is_learned_and_survives(start):
    service = start(Settings(first_rows=20))
    rows = optional(900)
    early = [{"a": row["a"], "target": row["target"]} for row in rows[:50]]
    send(service, early, 10, name="optional")
    answer = service.learn("optional", [row | {f"n{i}": 1.0 for i in range(40)} for row in rows[50:52]]).result()
    assert len(answer["ignored"]) == 41 - 16  # said, and bounded
    send(service, rows[52:700], 50, name="optional")
    assert mistakes(service, rows[700:]) < 0.15
    before = service.facts(service.model("optional"))
    assert {"column": "k", "treatment": "number, came later", "becomes": "1 column"} in before["schema"]
    service.stop()
    again = start(Settings(first_rows=20))
    assert again.facts(again.model("optional"))["schema"] == before["schema"]
    assert mistakes(again, rows[700:]) < 0.15


def test_absent_is_missing_and_numbers_may_be_in_quotes(start):
    service = start(Settings(first_rows=100))
    rows = [row | {"note": f"unique {place}"} for place, row in enumerate(events(150))]
    send(service, rows, 50)
    model = service.model("flights")
    for predict in (model.published.predict, model.published.predict_few):
        absent, null, quoted, plain = predict(
            [{"city": "Oslo", "rush": True}, ROW | {"km": None}, ROW | {"km": "2.5"}, ROW | {"km": 2.5}], model.traits.layout
        )
        assert absent == null
        assert quoted == plain
    assert (
        service.learn("flights", [ROW | {"km": "far", "target": "late"}, {"city": 3, "target": "late"}]).result()["learned"]
        == 2
    )
    facts = service.facts(model)
    assert facts["unread"] == {"km": 1}
    assert list(facts["ignored"]) == ["note"]
    assert "different in most rows" in facts["ignored"]["note"]


def test_a_waiting_row_is_cleared_by_any_label(start):
    service = start()
    send(service, events(40), 40)
    model = service.model("flights")
    service.keep(model, ["a", "b"], [ROW, ROW])
    service.learn("flights", [ROW | {"id": "a", "target": "late"}]).result()
    assert service.facts(model)["waiting"] == 1


def test_predictions_before_any_label_say_so_and_wait(tmp_path):
    with served(tmp_path) as (_, client):
        answer = client.post("/models/new/predict", json=ROW | {"id": "7"})
        assert answer.status_code == 200
        assert answer.json() == [{"id": "7", "label": None, "note": "nothing learned yet"}]
        assert client.get("/models/new").json()["waiting"] == 1
        assert client.post("/models/new/learn", json={"id": "7", "target": "late"}).json()["learned"] == 1
        assert client.post("/models/new/predict", json=ROW).json()[0]["label"] == "late"


def test_after_a_restart_the_example_is_a_typical_row(start):
    service = start(Settings(first_rows=20))
    send(service, events(60), 20)
    service.stop()
    example = start(Settings(first_rows=20)).model("flights").example
    assert example.keys() == ROW.keys()
    assert None not in example.values()


def test_treatments_are_given_when_a_model_is_created(start):
    service = start()
    service.create("flights", {"columns": {"categorical": ["km"], "ignore": ["rush"]}}).result()
    send(service, [row | {"km": place % 3} for place, row in enumerate(events(40))], 40)
    kinds = {row["column"]: row["treatment"] for row in service.facts(service.model("flights"))["schema"]}
    assert kinds["km"].startswith("category")
    assert kinds["rush"] == "ignored: as asked"
    for wrong in ({"columns": {"colour": []}}, {"columns": {"ignore": "km"}}, {"columns": {"ignore": ["a"], "date": ["a"]}}):
        with pytest.raises(Refused, match=r"columns must|lists of names|cannot be both"):
            service.create("other", wrong)


def test_columns_that_tell_the_target_are_facts_that_survive(start):
    service = start(Settings(first_rows=100))
    send(service, [row | {"refund": "yes" if row["target"] == "late" else None} for row in events(120)], 60)
    assert service.facts(service.model("flights"))["telling"] == ["refund"]
    service.stop()
    again = start(Settings(first_rows=100))
    assert again.facts(again.model("flights"))["telling"] == ["refund"]
