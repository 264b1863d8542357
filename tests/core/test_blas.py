"""Matrix products run on one thread: the same bits whatever the user's setting, which is given back."""

import os
import subprocess
import sys
import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from interrupting import Interrupt
from kernling.core.blas import _library, one_thread

LEARN = """
import hashlib, sys
import numpy as np
import kernling as kl
from kernling import baselines
from kernling.estimators.contents import flatten

rng = np.random.default_rng(0)
X = rng.standard_normal((800, 40))
y = np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0.3, 1, -1)
common = dict(gamma=0.02, random_state=0)
models = [
    kl.POLKClassifier(parsimony=0.01, eta=2.0, batch_size=16, prune="random", **common),
    kl.AVMClassifier(delta=4.0, **common),
    kl.DualSVRGClassifier(n_components=400, **common),
    baselines.NOGDClassifier(budget=300, **common),
]
for model in models:
    model.partial_fit(X[:600], y[:600], classes=[-1, 1])
    for x, label in zip(X[600:], y[600:]):
        model.learn_one(x, label)
merged = kl.merge([kl.POLKClassifier(parsimony=0.01, eta=2.0, **common).fit(X[i::2], y[i::2]) for i in range(2)])
bits = hashlib.sha256()
for model in [*models, merged]:
    for array in flatten(model.state_).values():
        bits.update(array.tobytes())
    bits.update(model.decision_function(X).tobytes())
print(bits.hexdigest())
"""


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def learned(core: str | None, threads: int) -> str:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
    if core:
        environment["OPENBLAS_CORETYPE"] = core
    run = subprocess.run([sys.executable, "-c", LEARN], env=environment, capture_output=True, text=True, check=True)
    return run.stdout


@pytest.mark.parametrize(
    "core", [None, *(pytest.param(name, marks=pytest.mark.long) for name in ("Haswell", "Zen", "Sandybridge", "Nehalem"))]
)
def test_models_do_not_depend_on_the_number_of_threads(core):
    assert learned(core, 1) == learned(core, 5)


def test_the_setting_is_given_back():
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with one_thread:
            assert set(blas_threads()) == {1}
            with one_thread:
                pass
            assert set(blas_threads()) == {1}
        assert blas_threads() == before

        @one_thread
        def fails():
            raise KeyError("on purpose")

        with pytest.raises(KeyError, match="on purpose"):
            fails()
        assert blas_threads() == before


def test_public_functions_do_if_private_ones_are_missing():
    """Those of threadpoolctl; the private ones only take less time."""

    class Public:
        def __init__(self, library):
            self.get_num_threads, self.set_num_threads = library.get_num_threads, library.set_num_threads

    with threadpool_limits(3, user_api="blas"):
        for library in ThreadpoolController().select(user_api="blas").lib_controllers:
            found = _library(Public(library), with_openmp=False)
            assert found.threads() == 3
            found.set(2)
            assert found.threads() == library.get_num_threads() == 2
            found.set(3)
        assert set(blas_threads()) == {3}


def test_there_is_no_limit_where_none_is_needed():
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with one_thread.where_needed():
            assert set(blas_threads()) == {1}
            assert one_thread.where_needed() is one_thread, "until the one around it ends, it holds"
        assert blas_threads() == before
    with threadpool_limits(1, user_api="blas"):
        assert one_thread.where_needed() is not one_thread


def test_it_counts_all_threads():
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        inside, leave = threading.Event(), threading.Event()

        def stay():
            with one_thread:
                inside.set()
                leave.wait(300)

        other = threading.Thread(target=stay)
        other.start()
        assert inside.wait(300)
        with one_thread:
            pass
        assert set(blas_threads()) == {1}, "the other thread is still inside"
        leave.set()
        other.join()
        assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_counts_its_own_thread_only():
    program = """
import os, threading
from threadpoolctl import threadpool_info, threadpool_limits
from kernling.core.blas import one_thread

def threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

def in_child(check):
    child = os.fork()
    if child == 0:
        os._exit(0 if check() else 1)
    assert os.waitpid(child, 0)[1] == 0

def stay():
    with one_thread:
        inside.set()
        leave.wait(300)

threadpool_limits(3, user_api="blas")
with one_thread:
    in_child(lambda: threads() == {1})
inside, leave = threading.Event(), threading.Event()
other = threading.Thread(target=stay)
other.start()
assert inside.wait(300)
in_child(lambda: threads() == {3})
leave.set()
other.join()
assert threads() == {3}
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=600)


def test_the_setting_is_given_back_after_an_exception_at_any_instruction_of_entering():
    with threadpool_limits(3, user_api="blas"):
        before, looked = blas_threads(), Interrupt()

        def nested():
            with one_thread, one_thread:
                threading.get_ident()

        looked(nested)
        places = [place for place in looked.seen if place[0].co_name in ("__enter__", "begin")]
        assert len(places) > 50
        for place in places:
            assert Interrupt(place)(nested)
            assert blas_threads() == before, place
