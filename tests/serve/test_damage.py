"""Damaged folders: the service starts with all that is whole, says what is missing, and sending everything again repairs it."""

import random
import shutil
from collections import Counter

import pytest

from kernling.serve.service import Service
from kernling.serve.settings import Settings
from serving import abandon, contents, events, send

SETTINGS = Settings(first_rows=20, snapshot_seconds=3600.0)
AVM = {"estimator": "AVMClassifier"}
SENT = {"flights": events(240), "trips": events(60, seed=1), "few": events(12, seed=2), "none": []}


def fill(folder, is_stopped):
    """Serve a folder: models with two snapshots and a journal after them, with one, without, and without any event."""
    service = Service(folder, SETTINGS)
    for name in SENT:
        service.create(name, AVM).result()
    for name, rows in SENT.items():
        for first in range(0, len(rows), 10):
            send(service, rows[first : first + 10], 10, name)
            if (name, first) in (("flights", 60), ("flights", 120), ("flights", 180), ("trips", 30)):
                service._snapshot(service.models[name])
    held = {name: of(service, name) for name in SENT}
    service.stop() if is_stopped else abandon(service)
    if not is_stopped:
        (folder / "attempt").write_bytes(b"\n")
    return held


def of(service, name):
    """What a model of a service holds, to be compared bit by bit."""
    state = service.models[name].published
    return contents(state.model) if state.model is not None else None, state.events + state.collected


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Folders of services that were stopped and killed, and what their models held."""
    folder = tmp_path_factory.mktemp("filled")
    return {is_stopped: (folder / str(is_stopped), fill(folder / str(is_stopped), is_stopped)) for is_stopped in (True, False)}


def damage(folder, chance):
    """Damage a file or folder; returns what was done."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "waiting" not in path.name and path.stat().st_size)
    journal = [path for path in paths if path.parent.name == "journal"]
    path = chance.choice(journal if journal and chance.random() < 0.5 else paths)
    content = bytearray(path.read_bytes())
    first = chance.randrange(len(content))
    last = min(first + 1 + int(chance.expovariate(1 / 200)), len(content))
    kind = chance.choice(
        ["flip"] * 4 + ["cut", "zeros", "noise", "removed", "repeated", "inserted", "gone", "empty", "folder gone"]
    )
    if kind == "flip":
        content[first] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del content[first:]
    elif kind == "zeros":
        content[first:last] = bytes(last - first)
    elif kind == "noise":
        content[first:last] = chance.randbytes(last - first)
    elif kind == "removed":
        del content[first:last]
    elif kind == "repeated":
        content[first:first] = content[first:last]
    elif kind == "inserted":
        content[first:first] = chance.randbytes(last - first)
    elif kind == "empty":
        content.clear()
    path.write_bytes(content)
    if kind == "gone":
        path.unlink()
    elif kind == "folder gone" and path.parent != folder:
        shutil.rmtree(path.parent)
    return kind, path.relative_to(folder).as_posix()


def total(name):
    return len(SENT[name])


def check_damaged(folder, held, what):
    """Start with a damaged folder: nothing is lost without a word, and sending everything again restores the count."""
    service = Service(folder, SETTINGS)
    try:
        assert set(service.models) == set(SENT), what
        lost = {name: service.facts(model)["lost"] for name, model in service.models.items()}
        for name in SENT:
            facts = service.facts(service.models[name])
            assert facts["events"] + facts["collected"] + lost[name] == total(name), (what, name)
            if not lost[name]:
                assert of(service, name) == held[name], (what, name)
            else:
                assert service.health()["models"][name], what
                assert any("are lost" in one["error"] for one in facts["errors"]), what
        for name, rows in SENT.items():
            if rows:
                assert service.learn(name, rows).result()["learned"] == lost[name], (what, name)
    finally:
        service.stop()
    again = Service(folder, SETTINGS)
    try:
        for name, model in again.models.items():
            facts = again.facts(model)
            assert (facts["events"] + facts["collected"], facts["lost"]) == (total(name), lost[name]), (what, name)
            if SENT[name]:
                assert again.learn(name, SENT[name]).result()["learned"] == 0, (what, name)
    finally:
        again.stop()
    return sum(lost.values())


def check_many(filled, tmp_path, seeds):
    """Damage copies of the folders, each in one way; returns how often events were lost."""
    found = Counter()
    for seed in seeds:
        chance = random.Random(seed)
        source, held = filled[bool(seed % 2)]
        folder = tmp_path / "damaged"
        shutil.copytree(source, folder)
        what = (seed, *damage(folder, chance))
        found["with losses" if check_damaged(folder, held, what) else "without"] += 1
        shutil.rmtree(folder)
    return found


def test_damage_is_noticed_told_and_repaired(filled, tmp_path):
    found = check_many(filled, tmp_path, range(60))
    assert found["with losses"]
    assert found["without"]


@pytest.mark.long
def test_a_thousand_damages(filled, tmp_path):
    print(dict(check_many(filled, tmp_path, range(1000, 2000))))
