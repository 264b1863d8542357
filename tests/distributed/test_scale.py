"""kernling.distributed on a real cluster of two processes."""

import os
import signal
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest

pytest.importorskip("distributed")

import checks
import kernling as kl
from kernling import distributed as scale
from kernling.baselines import FOGDClassifier
from kernling.distributed import stages, training
from kernling.distributed.stages import stages_of
from kernling.tables import Encode, Standardise
from oracles import stream

PARTS, ROWS = 6, 4000


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[str]:
    """Parquet files of one stream, and rows for a test."""
    folder = tmp_path_factory.mktemp("parts")
    X, y = stream("binary", PARTS * ROWS, seed=1)
    paths = []
    for part in range(PARTS):
        rows = slice(part * ROWS, (part + 1) * ROWS)
        frame = pandas.DataFrame(X[rows], columns=["a", "b", "c"]).assign(label=y[rows])
        paths.append(str(folder / f"part{part}.parquet"))
        frame.to_parquet(paths[-1], row_group_size=1000)
    return paths


def avm(**params):
    return kl.AVMClassifier(**{"gamma": 1.0, "delta": 0.5, "lam": 1e-3, "random_state": 3, **params})


TEST = stream("binary", 3000, seed=2)


def test_files_train_one_model_that_is_as_good(client, files):
    seen = []
    model = scale.fit(client, avm(), files, target="label", progress=seen.append)
    X, y = stream("binary", PARTS * ROWS, seed=1)
    whole = avm().partial_fit(X, y)
    assert model.t_ == PARTS * ROWS
    assert model.score(*TEST) >= whole.score(*TEST) - 0.01
    assert model.n_stored_ <= 1.3 * whole.n_stored_
    assert 0.0 < model.certificate()["merge_error"] < np.inf
    assert sorted({one.parts for one in seen} - {0}) == list(range(1, PARTS + 1))
    assert seen[-1].events == PARTS * ROWS
    assert seen[-1].rate > 0
    again = scale.fit(client, model, files, target="label")  # goes on from what it is
    assert again.t_ == 2 * PARTS * ROWS


def test_what_comes_from_the_data_comes_once(client, files):
    model = scale.fit(client, kl.AVMClassifier(), files, target="label")  # gamma="scale", delta="auto"
    X = stream("binary", PARTS * ROWS, seed=1)[0][:1000]
    assert model.gamma_ == pytest.approx(1.0 / (3 * X.var()))
    assert model.t_ == PARTS * ROWS
    features = scale.fit(client, FOGDClassifier(gamma=1.0), files, target="label")  # random frequencies without a seed
    assert features.score(*TEST) > 0.8


@pytest.mark.parametrize("make", [avm, lambda: kl.SPAClassifier(gamma=1.0, beta=20.0, random_state=3)], ids=["avm", "spa"])
def test_the_result_is_that_of_the_same_steps_in_one_process(client, files, make):
    """Parts, their order and their seeds decide, not who did what: replayed here, without a cluster."""
    rounds = 2
    model = scale.fit(client, make(), files, target="label", rounds=rounds, parts=4, classes=[0, 1])
    X, y = stream("binary", PARTS * ROWS, seed=1)
    begun = make().partial_fit(X[:1000], y[:1000], classes=[0, 1])
    for number in range(rounds):
        start = training.started(begun, 4 if number else 0)
        outcomes = []
        for part in stages_of(PARTS, 4, None)[0]:
            one = kl.merge([start])
            one._rng = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(number, part.number)))
            for place in part.places:
                rows = slice(place * ROWS + (1000 if number == place == 0 else 0), (place + 1) * ROWS)
                one.partial_fit(X[rows], y[rows])
            outcomes.append(training.Outcome(one, one.t_ - start.t_))
        left, right = training.join(*outcomes[:2], start), training.join(*outcomes[2:], start)
        begun = training.settle(training.join(left, right, start), begun).model
    assert model.t_ == begun.t_ == rounds * PARTS * ROWS
    checks.assert_identical(model, begun)


@pytest.mark.parametrize(("output", "events"), [("last", ROWS / 2), ("average", ROWS / 4), ("suffix", ROWS / 4)])
def test_parts_of_further_rounds_go_on_at_an_earlier_event(output, events):
    """With larger steps: by the square root of the number of parts, where no average over time makes up for them."""
    model = avm(output=output).partial_fit(*stream("binary", ROWS, seed=1))
    start = training.started(model, 4)
    assert start.t_ == events
    np.testing.assert_allclose(start.decision_function(TEST[0]), model.decision_function(TEST[0]), rtol=1e-9, atol=1e-12)
    assert training.started(model, 0) is model


def test_rounds_and_merging_within_a_round(client, files):
    once = scale.fit(client, avm(), files, target="label")
    thrice = scale.fit(client, avm(), files, target="label", rounds=3)
    often = scale.fit(client, avm(), files, target="label", parts=2, merge_every=1)
    assert (once.t_, thrice.t_, often.t_) == (PARTS * ROWS, 3 * PARTS * ROWS, PARTS * ROWS)
    for model in (thrice, often):
        assert model.score(*TEST) >= once.score(*TEST) - 0.01


def teststages_of():
    assert [[part.places for part in stage] for stage in stages_of(5, 2, None)] == [[[0, 1, 2], [3, 4]]]
    assert [[part.places for part in stage] for stage in stages_of(5, 2, 1)] == [[[0], [1]], [[2], [3]], [[4]]]
    assert len(stages_of(200, None, None)[0]) == 64


def test_dask_frames_and_arrays(client, files):
    import dask.array
    import dask.dataframe

    X, y = stream("binary", PARTS * ROWS, seed=1)
    from_files = scale.fit(client, avm(), files, target="label")
    frame = dask.dataframe.read_parquet(files)
    assert frame.npartitions == PARTS
    from_frame = scale.fit(client, avm(), frame, target="label")
    arrays = [dask.array.from_array(table, chunks=(ROWS, *table.shape[1:])) for table in (X, y)]
    from_arrays = scale.fit(client, avm(), *arrays)
    for other in (from_frame, from_arrays):
        checks.assert_identical(from_files, other)
    expected = from_files.predict(X)
    for data, options in ((files, {"target": "label"}), (frame, {"target": "label"}), (arrays[0], {})):
        np.testing.assert_array_equal(scale.predict(client, from_files, data, **options), expected)
    np.testing.assert_allclose(
        scale.predict(client, from_files, arrays[0], "decision_function"),
        from_files.decision_function(X),
        rtol=1e-9,
        atol=1e-12,
    )


def test_libsvm_files_have_the_columns_of_the_widest(client, tmp_path):
    rng = np.random.default_rng(0)
    for part, width in enumerate((3, 5)):
        X = rng.uniform(size=(300, width))
        lines = [f"{int(row[0] > 0.5)} " + " ".join(f"{c + 1}:{v:.6f}" for c, v in enumerate(row)) for row in X]
        (tmp_path / f"{part}.svm").write_text("\n".join(lines) + "\n")
    paths = [tmp_path / f"{part}.svm" for part in range(2)]
    model = scale.fit(client, avm(), paths, first_rows=50)
    assert (model.n_features_in_, model.t_) == (5, 600)
    assert len(scale.predict(client, model, paths)) == 600


def test_categories_are_those_of_the_first_rows(client, tmp_path):
    rng = np.random.default_rng(0)
    for part, towns in enumerate((["a", "b"], ["b", "c"])):
        town = rng.choice(towns, size=400)
        lines = [f"{t},{x:.4f},{int(x > 0.5)}" for t, x in zip(town, rng.uniform(size=400), strict=True)]
        (tmp_path / f"{part}.csv").write_text("\n".join(["town,x,late", *lines]) + "\n")
    paths = [tmp_path / f"{part}.csv" for part in range(2)]
    pipeline = kl.StreamPipeline([("encode", Encode(["town"])), ("model", avm())])
    model = scale.fit(client, pipeline, paths, target="late")
    assert model.t_ == 800
    assert model.steps_[0][1].get_feature_names_out().tolist() == ["town=a", "town=b", "town=?", "x"]
    assert model.model_.n_features_in_ == 4
    said = scale.predict(client, model, paths, target="late")
    np.testing.assert_array_equal(said, np.concatenate([model.predict(pandas.read_csv(path)) for path in paths]))
    assert scale.fit(client, model, paths, target="late").t_ == 1600  # goes on from what it is
    running = kl.StreamPipeline([("encode", Encode(["town"], scale=Standardise())), ("model", avm())])
    with pytest.raises(ValueError, match="different scales"):
        scale.fit(client, running, paths, target="late")


def test_columns_are_those_of_the_first_file(client, tmp_path):
    X, y = stream("binary", 600, seed=5)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(label=y)
    frame[:300].to_csv(tmp_path / "0.csv", index=False)
    frame[300:][["label", "c", "a", "b"]].to_csv(tmp_path / "1.csv", index=False)
    frame[300:].to_csv(tmp_path / "same.csv", index=False)
    models = [scale.fit(client, avm(), [tmp_path / "0.csv", tmp_path / other], target=-1) for other in ("1.csv", "same.csv")]
    checks.assert_identical(*models)


def test_classes_that_only_some_parts_have_unite(client, tmp_path):
    X, y = stream("multiclass", 3000, seed=5)
    paths = []
    for part in range(3):
        chosen = np.isin(y, [[0, 1], [1, 2], [2, 3]][part])
        paths.append(tmp_path / f"{part}.csv")
        np.savetxt(paths[-1], np.c_[X[chosen], y[chosen]], delimiter=",", header="a,b,c,label", comments="")
    model = scale.fit(client, avm(), paths, target="label", first_rows=20)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2, 3])


def test_a_damaged_line_leaves_its_whole_partition_out(client, tmp_path):
    X, y = stream("binary", 600, seed=5)
    for part in range(2):
        rows = slice(300 * part, 300 * part + 300)
        np.savetxt(tmp_path / f"{part}.csv", np.c_[X[rows], y[rows]], delimiter=",", header="a,b,c,label", comments="")
    with open(tmp_path / "1.csv", "a") as file:
        file.write("1,2\n")
    paths = [tmp_path / f"{part}.csv" for part in range(2)]
    with pytest.raises(scale.BadPartitions, match=r"1\.csv: row 301 has 2 columns, not 4") as caught:
        scale.fit(client, avm(), paths, target="label")
    assert caught.value.model.t_ == 300


def test_progress_inside_a_part(client, files, monkeypatch, capsys):
    monkeypatch.setattr(stages, "TELL_EVERY", 0.0)
    seen = []
    scale.fit(client, avm(), files[:2], target="label", parts=1, chunk=500, progress=seen.append)
    inside = [one.events for one in seen if one.parts == 0]
    assert len(inside) > 5
    assert set(inside) <= set(range(500, 2 * ROWS + 1, 500))
    assert inside == sorted(inside)
    assert (seen[-1].parts, seen[-1].events) == (1, 2 * ROWS)
    scale.fit(client, avm(), files[:2], target="label", progress=True)
    assert f"\rround 1, 2 of 2 parts, {2 * ROWS:,} events, " in capsys.readouterr().err


# ---------------------------------------------------------------------- faults


@pytest.mark.parametrize("stop", [(1, 0), (1, 3), (2, 2)], ids=["at once", "in the first round", "in the second"])
def test_an_interrupt_gives_what_is_merged_so_far(client, files, stop):
    def interrupt(progress):
        if (progress.round, progress.parts) >= stop:
            raise KeyboardInterrupt

    with pytest.raises(scale.Interrupted) as caught:
        scale.fit(client, avm(), files, target="label", rounds=2, progress=interrupt)
    round_, parts = stop
    least = PARTS * ROWS * (round_ - 1) + parts * ROWS
    model = caught.value.model
    assert max(1000, least) <= model.t_ <= round_ * PARTS * ROWS  # parts may be done of which it has not heard when it stops
    assert model.t_ % 1000 == 0
    assert model.score(*TEST) > 0.8
    assert model.partial_fit(*TEST).t_ % 1000 == 0  # it can go on


def test_a_killed_worker_costs_time_and_never_the_result(client, files):
    make = lambda: kl.SPAClassifier(gamma=1.0, beta=20.0, random_state=3)  # noqa: E731
    expected = scale.fit(client, make(), files, target="label", rounds=2)
    killed = []

    def kill_when_busy(progress):
        if progress.parts == 2 and not killed:  # others are being learned, and some results live in its memory
            workers = client.scheduler_info(n_workers=-1)["workers"]
            busy = [address for address, keys in client.processing().items() if keys] or list(workers)
            killed.append(client.run(os.getpid, workers=[busy[0]])[busy[0]])
            os.kill(killed[0], signal.SIGKILL)

    model = scale.fit(client, make(), files, target="label", rounds=2, progress=kill_when_busy)
    assert killed
    checks.assert_identical(model, expected)


def damaged(path: str) -> str:
    """A copy that ends too early."""
    target = path.replace(".parquet", "-damaged.parquet")
    Path(target).write_bytes(Path(path).read_bytes()[:-1000])
    return target


def test_a_bad_partition_is_named_and_the_others_are_learned(client, files):
    bad = [*files[:2], damaged(files[2]), files[3], "nowhere.parquet", files[5]]
    with pytest.raises(scale.BadPartitions, match=r"part2-damaged\.parquet: .*nowhere\.parquet: ") as caught:
        scale.fit(client, avm(), bad, target="label")
    assert caught.value.model.t_ == 4 * ROWS
    assert caught.value.model.score(*TEST) > 0.85
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = scale.fit(client, avm(), bad, target="label", skip_bad=True, rounds=2)
    assert model.t_ == 8 * ROWS
    about = [str(one.message) for one in told if "was skipped" in str(one.message)]
    assert len(about) == 2
    assert "part2-damaged.parquet" in about[0]
    assert "nowhere.parquet" in about[1]
    first = scale.fit(client, avm(), ["nowhere.parquet", *files[:2]], target="label", skip_bad=True)
    assert first.t_ == 2 * ROWS


@pytest.mark.parametrize("options", [{"parts": 1}, {"parts": 2}, {"parts": 1, "merge_every": 1, "rounds": 2}])
@pytest.mark.filterwarnings("ignore:nowhere")
def test_first_rows_behind_bad_partitions_are_learned_once(client, tmp_path, options):
    X, y = stream("binary", 900)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(label=y)
    paths = [str(tmp_path / f"part{part}.parquet") for part in range(3)]
    for part, path in enumerate(paths):
        frame[300 * part : 300 * (part + 1)].to_parquet(path)
    model = scale.fit(client, avm(), ["nowhere.parquet", *paths], target="label", skip_bad=True, **options)
    assert model.t_ == 900 * options.get("rounds", 1)


def test_nothing_to_learn_from_is_an_error(client):
    with pytest.raises(ValueError, match=r"no rows to learn from: nowhere\.parquet"):
        scale.fit(client, avm(), ["nowhere.parquet"], target="label")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((["a"],), {"rounds": 0}, "rounds must be at least 1"),
        (([],), {}, "no partitions"),
        ((["a", "b"],), {"merge_every": 1}, "merge_every=1 needs parts=: by default each of 2 partitions"),
        ((["a"], [1]), {}, "y is for Dask arrays"),
    ],
)
def test_bad_calls(client, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        scale.fit(client, avm(), *arguments, **options)


def test_bad_addresses():
    for where, message in (("local:0", "number of processes"), ("host", "address such as")):
        with pytest.raises(ValueError, match=message):
            scale.fit(where, avm(), ["a"])


def test_local_workers_do_not_watch_themselves():
    from dask import config

    usual = config.get("distributed.worker.profile.enabled")
    with scale.connected("local:1") as local:
        [periodic] = local.run(lambda dask_worker: list(dask_worker.periodic_callbacks)).values()
        assert config.get("distributed.worker.profile.enabled") == usual  # of clusters that others start meanwhile
    assert "heartbeat" in periodic
    assert "profile" not in periodic


def test_kernling_does_not_import_dask(run_python):
    assert run_python("import sys, kernling, kernling.cli.commands; print('dask' in sys.modules)") == "False\n"


def test_a_cluster_that_grows_and_shrinks(client, files):
    expected = scale.fit(client, avm(), files, target="label")
    cluster = client.cluster
    stop = threading.Event()

    def breathe():
        while not stop.is_set():
            cluster.scale(1)
            time.sleep(0.3)
            cluster.scale(3)
            time.sleep(0.3)

    thread = threading.Thread(target=breathe)
    thread.start()
    try:
        model = scale.fit(client, avm(), files, target="label")
    finally:
        stop.set()
        thread.join()
        cluster.scale(2)
    checks.assert_identical(model, expected)
