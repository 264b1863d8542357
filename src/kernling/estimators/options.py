"""Parameters that several methods share, each with what belongs to it: an estimator has them by inheriting."""

from __future__ import annotations

from ..core.averages import averaged_share
from ..core.kernels import ISOTROPIC
from .base import OnlineEstimator
from .constraints import NOTHING, OneOf, Real, Whole
from .parameters import parameter


class IsotropicKernel(OnlineEstimator):
    """The kernel is a function of the Euclidean distance."""

    kernel: str = parameter(default="rbf", allowed=OneOf(ISOTROPIC), doc="A function of the Euclidean distance.")


class RandomFeatures(IsotropicKernel):
    """The model is linear in random features."""

    n_components: int = parameter(
        default=200,
        allowed=Whole(1),
        doc="Number of random features: a cosine and a sine for each frequency, so an odd number is one more.",
    )
    features: str = parameter(
        default="fourier",
        allowed=OneOf(("fourier", "orthogonal", "linear")),
        doc="Random frequencies, orthogonal ones, or the columns themselves.",
    )


class MeanOrLast(OnlineEstimator):
    """The mean of all models can predict instead of the last one."""

    output: str = parameter(
        default="average", allowed=OneOf(("average", "last")), doc="The mean of all models so far, or the last one."
    )


class Averaged(OnlineEstimator):
    """The mean of all models, or of the latest, can predict instead of the last one."""

    output: str = parameter(
        default="last",
        allowed=OneOf(("last", "average", "suffix")),
        doc="Which model predicts: the current one, the mean of all, or the mean of the last ones.",
    )
    suffix: float = parameter(default=0.5, allowed=Real(0.0, 1.0, strict=True), doc="Share of the models in the suffix mean.")

    suffix_fraction_ = property(
        lambda self: averaged_share(self._fitted().model, self._setup.output, self._setup.fraction),
        doc="Share of all models in the mean: ``suffix`` after ``fit``, up to 1.25 times as much on an open stream.",
    )


class Forgets(OnlineEstimator):
    """Old events can count less and less."""

    forget: float | None = parameter(
        default=None,
        allowed=(NOTHING, Real(1.0)),
        doc="Half-life in events, for streams that drift: after that many events, what was learned counts half. Steps of size "
        "1 / (lam t) stop getting smaller at the t where 1 - 1 / t forgets that fast. The mean of all models still remembers: "
        'use output="last".',
    )


class Tube(OnlineEstimator):
    """Residuals within a tube are no loss."""

    epsilon: float = parameter(default=0.1, allowed=Real(0.0), doc="Half the width of the tube without loss.")
