"""Parameters shared by several methods, as mixin classes.

A class that needs another default or description redeclares the parameter and gives only what differs.
"""

from __future__ import annotations

from ..components.succession import Rise
from ..core.averages import averaged_share
from ..core.expansion import CHOICES
from ..core.kernels import ISOTROPIC
from .base import OnlineEstimator
from .constraints import NOTHING, POSITIVE, SWITCH, OneOf, Real, Whole
from .parameters import parameter
from .ranges import Among, Log
from .tasks import OnlineClassifier, OnlineRegressor

# ---------------------------------------------------------------------- the model


class IsotropicKernel(OnlineEstimator):
    """The kernel is a function of the Euclidean distance."""

    kernel: str = parameter(default="rbf", allowed=OneOf(ISOTROPIC), doc="A function of the Euclidean distance.")


class RandomFeatures(IsotropicKernel):
    """The model is linear in random features."""

    n_components: int = parameter(
        default=200,
        allowed=Whole(1),
        doc="Number of random features: a cosine and a sine for each frequency, so an odd number is rounded up.",
    )
    features: str = parameter(
        default="fourier",
        allowed=OneOf(("fourier", "orthogonal", "linear")),
        doc="Features with random frequencies, with orthogonal ones, or the columns themselves.",
    )


class Budget(OnlineEstimator):
    """A maximum number of points."""

    budget: int = parameter(default=100, allowed=Whole(1), doc="Maximum number of points.")


class OptionalBudget(OnlineEstimator):
    """An optional maximum number of points."""

    budget: int | None = parameter(default=None, allowed=(NOTHING, Whole(1)), doc="Maximum number of points.")


class Buffer(OnlineEstimator):
    """A maximum number of stored events per class."""

    buffer_size: int = parameter(default=50, allowed=Whole(1), doc="Maximum number of stored events per class.")


# ---------------------------------------------------------------------- steps


class StepSize(OnlineEstimator):
    """Gradient steps."""

    eta: float = parameter(default=0.5, allowed=POSITIVE, search=Log(0.01, 10.0), doc="Step size.")


class RegularisedSteps(StepSize):
    """Gradient steps on a regularised loss."""

    lam: float = parameter(default=0.0, allowed=Real(0.0), search=Log(1e-08, 0.01), doc="Weight of the regulariser.")


class MeanAndExample(OnlineEstimator):
    """Each event takes one step against a mean and one against a stored event."""

    eta: float = parameter(default=0.25, allowed=Real(0.0), search=Log(0.01, 2.0), doc="Size of the step against the mean.")
    second_eta: float = parameter(
        default=0.0625, allowed=Real(0.0), search=Log(0.001, 1.0), doc="Size of the step against the stored event."
    )
    refresh: float = parameter(
        default=0.1, allowed=Real(0.0, 1.0), doc="Probability with which an event replaces the stored one."
    )
    lam: float = parameter(default=0.0, allowed=Real(0.0), doc="Weight of the regulariser, in both steps.")


class Aggressive(OnlineEstimator):
    """Passive-aggressive steps."""

    C: float = parameter(default=1.0, allowed=POSITIVE, search=Log(0.01, 10.0), doc="Aggressiveness: the largest step.")


class Forgets(OnlineEstimator):
    """Old events can be forgotten exponentially."""

    forget: float | None = parameter(
        default=None,
        allowed=(NOTHING, Real(1.0)),
        doc="Half-life in events, for streams that drift: after this many events, the weight of what was learned is halved. "
        "Steps of size 1 / (lam t) stop decreasing at the t where 1 - 1 / t forgets at this rate. "
        'The mean of all models does not forget: use output="auto" or "last".',
    )


class Restarts(OnlineEstimator):
    """After a change of the stream, the model can be replaced by one that knows nothing of the events before."""

    restart: bool = parameter(
        default=False,
        allowed=SWITCH,
        doc="Whether to begin anew when errors rise, for streams that change abruptly: another model learns beside this one "
        "from then on, and takes its place once it is better.",
    )

    @property
    def rises_(self) -> list[Rise]:
        """Return the latest rises of the error, after which another model begins: event, how sure, error before and after.

        ``replaced`` is the event at which the other model took over, None if it did not.  Only with ``restart=True``.

        Examples
        --------
        >>> import numpy as np, kernling as kl
        >>> X = np.random.default_rng(0).normal(size=(4000, 2))
        >>> y = (X[:, 0] > 0.0) ^ (np.arange(4000) >= 2000)
        >>> model = kl.KRLSClassifier(points=50, restart=True).fit(X, y)
        >>> print([(rise.event, rise.replaced) for rise in model.rises_])
        [(2016, 3296)]
        """
        held = self._fitted().succession
        if not held:
            raise AttributeError("errors are watched only with restart=True")
        unit = getattr(self, "target_spread_", 1.0) ** 2
        return [rise.in_units_of(unit) for rise in held.latest()]


class HarmonicSteps(Forgets):
    """Steps of size 1 / (lam t)."""

    lam: float = parameter(
        default=0.001,
        allowed=POSITIVE,
        search=Log(1e-08, 0.01),
        doc="Weight of the regulariser; the step at event t is 1 / (lam t).",
    )


class HarmonicOrConstantSteps(HarmonicSteps):
    """Steps of size 1 / (lam t), or all of the same size."""

    eta: float | None = parameter(
        default=None, allowed=(NOTHING, POSITIVE), doc="Size of all steps; by default the step at event t is 1 / (lam t)."
    )


# ---------------------------------------------------------------------- losses


class Tube(OnlineEstimator):
    """Residuals within a tube cause no loss."""

    epsilon: float = parameter(default=0.1, allowed=Real(0.0), doc="Half the width of the tube without loss.")


class ResidualLoss(Tube):
    """A choice of losses for regression."""

    loss: str = parameter(
        default="epsilon_insensitive", allowed=OneOf(("epsilon_insensitive", "l2", "l1")), doc="Loss of the residual."
    )


class MarginLoss(OnlineEstimator):
    """A choice of losses for classification."""

    loss: str = parameter(
        default="hinge",
        allowed=OneOf(("hinge", "logistic", "softmax")),
        doc="Loss of the margin; with more than two classes, hinge and logistic take the margin over the best wrong class.",
    )


class PairLoss(OnlineEstimator):
    """A choice of losses for pairs of events."""

    loss: str = parameter(
        default="squared",
        allowed=OneOf(("squared", "hinge", "logistic")),
        doc="Loss of the margin f(x) - f(x') between a positive and a negative event.",
    )


# ---------------------------------------------------------------------- which model predicts


AUTO_OR_LAST = ("auto", "last")  # to search among: what the averages were worth so far says little about streams that move


class MeanOrLast(OnlineEstimator):
    """The mean of all models can be used for prediction instead of the last one."""

    output: str = parameter(
        default="average",
        allowed=OneOf(("average", "last")),
        search=Among(("average", "last")),
        doc="Model used for prediction: the mean of all models so far, or the last one.",
    )


class VotedMean(MeanOrLast):
    """The mean of all models can be used for prediction, the last one, or a voted mean of these and the latest."""

    output: str = parameter(
        default="auto",
        allowed=OneOf(("auto", "average", "last")),
        search=Among(AUTO_OR_LAST),
        doc="Model used for prediction: the mean of all models so far, the last one, or with ``auto`` the mean of these and of "
        "about the latest 1,000 models, weighted by how well each has predicted lately.",
    )

    @property
    def output_weights_(self) -> dict[str, float]:
        """Weights of the last model, the mean of all and that of the latest in the prediction."""
        return _output_weights(self)


def _output_weights(model: OnlineEstimator) -> dict[str, float]:
    votes = model._fitted().model.votes
    fixed = [float(name == model.get_params()["output"]) for name in CHOICES]
    return dict(zip(CHOICES, votes.tolist() or fixed, strict=True))


class Averaged(OnlineEstimator):
    """The mean of all models, or of the latest, can be used for prediction instead of the last one."""

    output: str = parameter(
        default="last",
        allowed=OneOf(("auto", "last", "average", "suffix")),
        search=Among(AUTO_OR_LAST),
        doc="Model used for prediction: the last one, the mean of all models, that of the latest, or with ``auto`` the mean "
        "of these three, weighted by how well each has predicted lately.",
    )
    suffix: float = parameter(default=0.5, allowed=Real(0.0, 1.0, strict=True), doc="Fraction of models in the suffix mean.")

    suffix_fraction_ = property(
        lambda self: averaged_share(self._fitted().model, self._setup.output, self._setup.fraction),
        doc="Fraction of all models in the mean: ``suffix`` after ``fit``, up to 1.25 times as much on an endless stream.",
    )

    @property
    def output_weights_(self) -> dict[str, float]:
        """Weights of the last model, the mean of all and that of the latest in the prediction."""
        return _output_weights(self)


# ---------------------------------------------------------------------- tasks with their losses, and defaults that suit them


class LossClassifier(MarginLoss, OnlineClassifier):
    """A classifier with a choice of losses."""


class TubeRegressor(Tube, OnlineRegressor):
    """A regressor with the epsilon-insensitive loss."""


class HarmonicRegressor(HarmonicSteps, TubeRegressor):
    """A regressor with steps of size 1 / (lam t), with a default of lam that keeps the first steps small."""

    lam: float = parameter(default=0.01)


class StepRegressor(StepSize, TubeRegressor):
    """A regressor with steps of size eta outside of the tube."""

    eta: float = parameter(default=0.2)


class LossRegressor(ResidualLoss, OnlineRegressor):
    """A regressor with a choice of losses."""


class StepLossRegressor(LossRegressor, StepRegressor):
    """A regressor with steps of size eta on a choice of losses."""


class SquaredLossRegressor(LossRegressor):
    """A regressor with the squared loss by default."""

    loss: str = parameter(default="l2", allowed=OneOf(("l2", "epsilon_insensitive", "l1")))
