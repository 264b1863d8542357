"""What a method's theory guarantees for a run."""

from __future__ import annotations

import inspect
from numbers import Real
from typing import Any

MEANINGS = {
    "points": "Points stored.",
    "points_bound": "There are never more points than this.",
    "budget": "There are never more points than this.",
    "features": "Number of features; nothing else is guaranteed.",
    "expected_points": "Expected number of points, given the losses of this run.",
    "expected_bound": "The expected number of points is at most this.",
    "merge_error": "Distance of the merged model from the mean of the models, in the kernel's space, at most.",
}


class Certified:
    """Mixin with the certificate of a fitted model."""

    def certificate(self: Any, **known: float) -> dict[str, float]:
        """Return the method's theoretical guarantees, evaluated for this run; ``certificate_meanings`` explains them.

        Guarantees that do not hold for this run, such as a theorem about the published steps, are absent.  For a merged model
        that has not learned since, ``merge_error`` bounds its distance from the mean of the models.  With
        ``standardise_target``, losses, norms and targets are those on the running scale of the targets.

        Parameters
        ----------
        **known : float
            Facts that the stream does not show, for theorems that need them: ``confidence`` and ``diameter`` of the rows for
            AVM, ``best_norm`` and ``best_loss`` of a function to compare with for SPA, ``error`` and ``diameter`` for DualSVRG.
        """
        state, learner = self._fitted(), self.learner
        found = dict(learner.certificate(self._params, state, self._problem))
        if known:
            found |= self._assumed(known)
        return {**found, "merge_error": self._merged[0]} if self._merged[1] == self.t_ else found

    def _assumed(self: Any, known: dict[str, float]) -> dict[str, float]:
        """Return the guarantees for what is known besides the stream."""
        learner = self.learner
        asked = inspect.signature(learner.assumed).parameters.values() if learner.assumed else ()
        names = [parameter.name for parameter in asked if parameter.kind is parameter.KEYWORD_ONLY]
        for name, value in known.items():
            if name not in names:
                accepted = f"accepts {' and '.join(names)}" if names else "accepts nothing"
                raise TypeError(f"the certificate of {type(self).__name__} {accepted}, not {name}")
            if not isinstance(value, Real) or not value > 0.0 or (name == "confidence" and not value < 1.0):
                limits = "between 0 and 1" if name == "confidence" else "a number greater than 0"
                raise ValueError(f"{name} must be {limits}, not {value!r}")
        return learner.assumed(self._params, self._fitted(), self._problem, **known)

    @classmethod
    def certificate_meanings(cls: Any) -> dict[str, str]:
        """Return what each number of the certificate says, with the number of the paper's theorem."""
        return MEANINGS | cls.learner.meanings
