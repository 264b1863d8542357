"""Calls let go of their rows at once: a cycle of objects would keep them until the garbage collector runs, which is rarely."""

import gc
import weakref

import pytest

import checks
from oracles import CASES, stream

CLASSES = [cls for cls in checks.estimators() if cls.task in ("classification", "regression")]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_rows_are_let_go_of(cls):
    case = CASES[cls.__name__][0]
    X, y = stream(case.stream, 600)
    model = checks.make(cls, case).partial_fit(X, y)
    gc.disable()
    try:
        for call in ("partial_fit", "predict_then_learn", "predict"):
            rows = X.copy()
            gone = weakref.ref(rows)
            getattr(model, call)(*((rows,) if call == "predict" else (rows, y)))
            del rows
            assert gone() is None, call
    finally:
        gc.enable()
