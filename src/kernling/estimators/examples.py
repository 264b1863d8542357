"""The example in an estimator's docstring, which is the same for all estimators of a task except for name and settings."""

from __future__ import annotations

from typing import Any

from .. import registry

_TEMPLATES = {
    "classification": """
>>> from sklearn.datasets import load_digits
>>> from {home} import {name}
>>> X, y = load_digits(return_X_y=True)
>>> model = {name}({settings}).fit(X / 16.0, y)
>>> print(f"{{model.score(X / 16.0, y):.2f}}")
{printed}
""",
    "regression": """
>>> import numpy as np
>>> from {home} import {name}
>>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
>>> model = {name}({settings}).fit(X, np.sin(X[:, 0]))
>>> print(f"{{model.score(X, np.sin(X[:, 0])):.2f}}")
{printed}
""",
    "oneclass": """
>>> import numpy as np
>>> from {home} import {name}
>>> X = np.random.default_rng(0).normal(size=(1000, 2))
>>> model = {name}({settings}).fit(X)
>>> print(f"{{(model.predict(X) == 1).mean():.2f}}")
{printed}
""",
}


class Example:
    """An estimator's example: its settings and its output."""

    def __init__(self, printed: str, **settings: Any):
        self.printed, self.settings = printed, settings

    def section(self, cls: Any) -> str:
        """Return the section "Examples" of the docstring."""
        home = "kernling" if cls.__name__ in registry.public_names(main=True) else "kernling.baselines"
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        lines = _TEMPLATES[cls.task].format(home=home, name=cls.__name__, settings=settings, printed=self.printed)
        return f"\nExamples\n--------{lines}"
