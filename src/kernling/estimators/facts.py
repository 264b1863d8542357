"""Summary of a fitted model for notebooks and the command line."""

from __future__ import annotations

from html import escape
from typing import Any

_STYLE = "border-collapse: collapse; margin: 0.5em 0; font-size: 90%"
_CELL = "padding: 0.1em 1em 0.1em 0; text-align: left"


def facts(model: Any) -> dict[str, str]:
    """Return events learned, points stored, memory and the ``certificate`` as text.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> from kernling.estimators.facts import facts
    >>> model = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(np.eye(4), [0, 1, 0, 1])
    >>> facts(model)["events learned"], facts(model)["points stored"]
    ('4', '4')
    """
    waiting = getattr(model, "n_waiting_", 0)
    clipped = getattr(model, "clipped_", 0)
    certificate = {name: value for name, value in model.certificate().items() if name != "points"}  # already above
    return {
        "events learned": f"{model.t_:,}" + (f", and {waiting:,} more wait for a batch" if waiting else ""),
        **({"rows with clipped numbers": f"{clipped:,}"} if clipped else {}),
        "points stored": f"{model.n_stored_:,}",
        "memory": f"{model.nbytes_:,} bytes",
        **{name.replace("_", " "): f"{value:.6g}" for name, value in certificate.items()},
    }


class ShowsFacts:
    """Mixin that shows a summary of the fitted model below scikit-learn's diagram in notebooks."""

    def _repr_html_inner(self) -> str:
        return _with_facts(self, super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return bundle | ({"text/html": _with_facts(self, bundle["text/html"])} if "text/html" in bundle else {})


def _with_facts(model: Any, html: str) -> str:
    if not hasattr(model, "t_"):
        return html
    lines = "".join(
        f'<tr><th scope="row" style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in facts(model).items()
    )
    diagram, end, _ = html.rpartition("</body>")
    return f'{diagram or html}<table class="kernling-facts" style="{_STYLE}">{lines}</table>{end}'
