"""Compilation before the first event arrives."""

from __future__ import annotations

import threading

import numpy as np

from .blocks import Block
from .live import LiveModel, Traits
from .rows import Layout
from .service import Service
from .settings import Settings
from .targets import Targets

ROWS = 1000  # so that two windows of columns are compared (components/columns.py)


def warm_up(service: Service) -> None:
    """Compile the default models in the background if there is no model yet."""
    if not service.models:
        threading.Thread(target=_learn_anything, name="compiler", daemon=True).start()


def _learn_anything() -> None:
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=ROWS), "z": rng.normal(size=ROWS)}
    labels = ["a" if x > 0 else "b" for x in columns["x"]]
    for targets, values in ((Targets("classification", "text"), labels), (Targets("regression"), columns["x"].tolist())):
        traits = Traits(Layout(dict.fromkeys(columns, "numbers")), targets)
        model = LiveModel(0, "", {}, traits, Settings(first_rows=ROWS // 2, window=ROWS))
        for position, block in enumerate(Block(columns, values, (ROWS // 2, ROWS // 2)).split()):
            model.learn(position, block)
        row = {name: float(column[0]) for name, column in columns.items()}
        for predict in (model.published.predict, model.published.predict_few):
            predict([row], traits.layout)
