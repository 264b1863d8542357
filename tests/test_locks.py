"""Exceptions at any instruction of a call keep no lock, lose no Ctrl-C, and leave a model between two events."""

import copy
import itertools
import threading

import numpy as np
import pytest

import kernling as kl
from interrupting import HOW, Interrupt
from kernling.tables import Standardise

LIMIT = 60  # seconds after which a thread is taken to wait for ever
X = np.random.default_rng(0).normal(50.0, 3.0, size=(300, 3))
Y = X[:, 0] + X[:, 1]
LABELS = (Y > 100.0).astype(int)
ROWS = [dict(zip("abc", row, strict=True)) for row in X.tolist()]
AVM = kl.AVMClassifier(gamma=0.5, delta=0.5, random_state=0)
SPA = kl.SPARegressor(gamma=0.5, random_state=0)
MODELS = {
    "AVMClassifier": (AVM, X, LABELS),
    "SPARegressor": (SPA, X, Y),
    "balanced": (kl.SPAClassifier(gamma=0.5, class_weight="balanced", random_state=0), X, LABELS),
    "own generator": (kl.SPARegressor(gamma=0.5, random_state=np.random.default_rng(0)), X, Y),
    "AOGDClassifier": (kl.AOGDClassifier(gamma=0.5, random_state=0), X, LABELS),
    "POLKRegressor": (kl.POLKRegressor(gamma=0.5, random_state=0), X, Y),
    "calibrated classifier": (kl.AVMClassifier(gamma=0.5, delta=0.5, calibrate=True, random_state=0), X, LABELS),
    "calibrated regressor": (kl.SPARegressor(gamma=0.5, random_state=0, calibrate=True), X, Y),
    "SPAOneClass": (kl.SPAOneClass(gamma=0.5, random_state=0), X, LABELS),
    "scaled": (kl.StreamPipeline([("scale", Standardise()), ("model", SPA)]), X, Y),
    "encoded": (kl.StreamPipeline.auto(AVM), ROWS, LABELS),
}
MANY = "partial_fit, many"
CALLS = {
    "fit": lambda model, X, y: model.fit(X[:50], y[:50]),
    "partial_fit": lambda model, X, y: model.partial_fit(X[10:15], y[10:15]),
    "partial_fit, a list": lambda model, X, y: model.partial_fit(X[10:15], y[10:15].tolist(), sample_weight=5 * [0.5]),
    MANY: lambda model, X, y: model.partial_fit(X[:200], y[:200]),
    "predict_then_learn": lambda model, X, y: model.predict_then_learn(X[10:15], y[10:15]),
    "learn_one": lambda model, X, y: model.learn_one(X[7], y[7]),
    "predict_then_learn_one": lambda model, X, y: model.predict_then_learn_one(X[7], y[7]),
    "predict": lambda model, X, y: model.predict(X[:5]),
    "decision_function": lambda model, X, y: model.decision_function(X[:5]),
    "score": lambda model, X, y: model.score(X[:5], y[:5]),
    "predict_one": lambda model, X, y: model.predict_one(X[3]),
    "score_one": lambda model, X, y: model.score_one(X[3]),
    "to_contents": lambda model, X, y: model.to_contents(),
}
SAMPLE = 4  # instructions of each call and kind of exception, unless all are asked for


def contents(model):
    held = model.to_contents()
    return repr(held.header), {name: array.tobytes() for name, array in held.arrays.items()}


class Pair:
    """A model that is interrupted, and a twin that learns what it should have learned."""

    def __init__(self, name):
        model, self.X, self.y = MODELS[name]
        self.calls = [call for call in CALLS if hasattr(model, call.split(",")[0])]
        if name == "POLKRegressor":  # Ctrl-C may leave its last rows waiting, which fit would learn at its end
            self.calls.remove("fit")
        self.model, self.twin = (self._begun(model) for _ in range(2))

    def _begun(self, model):
        model = kl.StreamPipeline(model.steps) if hasattr(model, "steps") else type(model)(**model.get_params())
        if isinstance(getattr(model, "random_state", None), np.random.Generator):
            model.set_params(random_state=np.random.default_rng(0))
        model.partial_fit(self.X[:50], self.y[:50])
        for call in self.calls:
            CALLS[call](model, self.X, self.y)
        return model

    def interrupt(self, call, at, how):
        """Interrupt a call at an instruction, and check what is left; return whether it was interrupted."""
        act, was = CALLS[call], contents(self.twin)
        interrupt = Interrupt(at, how)
        stopped = interrupt(lambda: act(self.model, self.X, self.y))
        now = contents(self.model)
        if now != was:
            first = slice(interrupt.rows if call == MANY else None)  # Ctrl-C stops it between two compiled calls
            act(self.twin, self.X[first], self.y[first])
            assert now == contents(self.twin), "neither before nor after the call"
        other = threading.Thread(target=self._go_on, args=(self.model,), daemon=True)
        other.start()
        other.join(LIMIT)
        assert not other.is_alive(), "another thread waits for ever"
        self._go_on(self.twin)
        assert contents(self.model) == contents(self.twin), "goes on otherwise"
        return stopped

    def _go_on(self, model):
        model.learn_one(self.X[3], self.y[3])
        model.partial_fit(self.X[20:24], self.y[20:24])
        model.predict(self.X[:2])


def interrupts(name, how, most=10**9, calls=None, file=""):
    """Interrupt calls at up to so many instructions each, those of a file; return how many times."""
    pair, done = Pair(name), 0
    for call in calls or pair.calls:
        act, found = CALLS[call], Interrupt()
        for _ in range(2):  # as it is done again and again
            act(pair.twin, pair.X, pair.y)
            found.seen.clear()
            found(lambda act=act: act(pair.model, pair.X, pair.y))
        places = [place for place in found.seen if place[0].co_filename.endswith(file)]
        for code, instruction in places[:: max(1, len(places) // most)]:
            place = f"{call}: {code.co_qualname}, instruction {instruction}"
            try:
                done += pair.interrupt(call, (code, instruction), how)
            except AssertionError as error:
                raise AssertionError(f"{place}: {error}") from None
    return done


@pytest.mark.parametrize(("name", "how"), list(zip(MODELS, itertools.cycle(HOW))))
def test_a_sample_of_interrupts(name, how):
    assert interrupts(name, how, SAMPLE) > SAMPLE


@pytest.mark.long
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", MODELS)
def test_interrupts_at_every_instruction(name, how):
    assert interrupts(name, how) > 1_000


@pytest.mark.parametrize("how", HOW)
def test_interrupts_at_every_instruction_of_taking_turns(how):
    assert interrupts("SPARegressor", how, calls=["partial_fit", "predict"], file="turns.py") > 50


@pytest.mark.parametrize(
    "name", ["SPARegressor", *(pytest.param(name, marks=pytest.mark.long) for name in ("balanced", "encoded"))]
)
def test_interrupts_at_every_instruction_of_learning_an_event(name):
    assert interrupts(name, "handler", calls=["learn_one", "predict_then_learn_one"]) > 200


def test_interrupts_around_the_compiled_calls_of_a_calibrated_fit():
    """Ctrl-C that arrives after the last look for it has learned all rows, and all their errors are followed."""
    files = ("events.py", "estimators/base.py")
    assert interrupts("calibrated classifier", "keyboard", most=200, calls=["fit", MANY], file=files) > 100


@pytest.mark.parametrize("how", HOW)
def test_interrupts_of_learning_the_first_event_of_a_class(how):
    """Every fifth instruction: the class is there with its event, or neither; and the next class is added as usual."""
    model = AVM.__class__(**AVM.get_params()).partial_fit(X[:50], np.arange(50) % 5).learn_one(X[50], 7)
    found, before, after = Interrupt(), contents(model), contents(copy.deepcopy(model).learn_one(X[7], 6))
    found(lambda: copy.deepcopy(model).learn_one(X[7], 6))
    for place in list(found.seen)[::5]:
        stopped = copy.deepcopy(model)
        Interrupt(place, how)(lambda stopped=stopped: stopped.learn_one(X[7], 6))
        now = contents(stopped)
        assert now in (before, after), place
        twin = copy.deepcopy(model) if now == before else copy.deepcopy(model).learn_one(X[7], 6)
        assert contents(stopped.learn_one(X[8], 5)) == contents(twin.learn_one(X[8], 5)), place


def test_learning_in_the_middle_of_a_prediction_is_refused():
    class Learns(kl.AVMClassifier):
        def _scores(self, X):
            self.partial_fit(X, [0])
            return super()._scores(X)

    model = Learns(gamma=1.0, delta=1.0).fit(X[:50], LABELS[:50])
    with pytest.raises(RuntimeError, match="cannot learn in the middle of its own prediction"):
        model.decision_function(X[:1])
    assert model.learn_one(X[0], 0).t_ == 51


def test_an_entry_that_an_exception_left_behind_does_not_count():
    """A prediction whose end was interrupted: this thread learns, and predicts in its turn."""
    model, done = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(X[:50], LABELS[:50]), []
    turns, me = model._turns, threading.get_ident()
    turns.meanwhile(lambda: done.append(turns.predicting[me]))
    turns.predicting[me] = done[0]
    assert model.partial_fit(X[50:60], LABELS[50:60]).t_ == 60
    turns.predicting[me] = done[0]
    turns.meanwhile(lambda: done.append(turns.predicting[me].lock.locked()))
    assert done[1], "it holds a lock that others wait for"
    assert not turns.predicting


def test_a_thread_that_learns_waits_for_predictions_and_is_not_kept_waiting_by_new_ones():
    model, inside, leave = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(X[:50], LABELS[:50]), threading.Event(), threading.Event()
    usual, answers = model._scores, []

    def slowly(X):
        inside.set()
        leave.wait(LIMIT)
        return usual(X)

    def predict():
        answers.append((model.decision_function(X[:1]), model.t_))

    model._scores = slowly
    first = threading.Thread(target=predict)
    first.start()
    inside.wait(LIMIT)
    learning = threading.Thread(target=model.partial_fit, args=(X[50:60], LABELS[50:60]))
    learning.start()
    learning.join(0.2)
    assert model.t_ == 50
    second = threading.Thread(target=predict)  # waits behind the one that learns
    second.start()
    second.join(0.2)
    assert not answers
    leave.set()
    for thread in (first, learning, second):
        thread.join(LIMIT)
    assert sorted(t for _, t in answers)[-1] == 60 == model.t_
