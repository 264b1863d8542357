"""Random Fourier features of kernels of the distance, and linear models on them.

With L frequencies drawn from the kernel's spectral distribution,

    z(x) = L^-1/2 [cos(w_1.x) .. cos(w_L.x), sin(w_1.x) .. sin(w_L.x)],

so that <z(x), z(x)> = 1 and the mean of <z(x), z(x')> is the kernel.  All of these distributions are scale mixtures of the
normal one:

====================  =====================================================================
rbf                   sqrt(2 gamma) N
exponential           gamma N / sqrt(chi2(1)), a Cauchy distribution
matern32, matern52    gamma N / sqrt(chi2(nu) / nu), nu = 3 and 5
rational_quadratic    sqrt(2 gamma G / degree) N, G of the gamma distribution with that shape
cauchy                sqrt(2 gamma G) N, G exponential
====================  =====================================================================

Orthogonal frequencies (Yu et al., Orthogonal Random Features, 2016) keep the lengths of the normal draws but make their
directions orthogonal within groups of d: the same cost, less variance.

Products use x minus a fixed centre, and the phase of the centre is added back, so that float32 is accurate far from the origin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import OWNER, FunctionField, by_address, inline, inner, jit, pluggable, shaped
from . import kernels
from .averages import AUTO, LAST, mix_groups
from .block import NARROW, buffers_apart, fill, products
from .expansion import EVENTS, check_room
from .limits import largest_of_angles
from .rows import Rows, centred_row
from .shapes import declared
from .state import Widening
from .vector import sincos

if TYPE_CHECKING:
    from ..estimators.learner import Problem

MEAN, LATEST = 1, 2  # groups: the sum of all models, and the mean of the latest ones
LATEST_EVENTS = 1000.0  # about as many models are in the mean of the latest ones


@declared()
class Linear(NamedTuple):
    """A linear model on random features; without frequencies, on the columns themselves."""

    frequencies: Annotated[np.ndarray, "numbers: waves columns"]
    phase: Annotated[np.ndarray, f"0..{2.0 * math.pi}: waves"]  # of the centre, in float64
    centre: Annotated[np.ndarray, "rows: columns"]
    # float64; of columns, they are multiplied by those of a kernel
    coef: Annotated[np.ndarray, "-1e220..1e220: groups outputs features"]
    places: Annotated[np.ndarray, "settings: outputs"]  # the column of each output, as in an expansion
    clock: Annotated[np.ndarray, "settings", "settings", "counts", "settings"]  # as in an expansion; only the events are used
    votes: Annotated[np.ndarray, "shares: votes"]  # weight of each of CHOICES in the output, or none

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise if the centre is where no row can be."""
        limit = largest_of_angles(self.frequencies, self.centre.dtype.name) if len(self.phase) else 0.0
        if np.abs(self.centre).max() > limit:
            raise ValueError(f"the centre of a linear model is farther away than rows can be, {limit:g}")

    @property
    def work(self) -> int:
        """Number of multiplications per event."""
        return self.frequencies.size + self.coef.size

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return len(self.places)

    @property
    def stored(self) -> int:
        """Number of stored points: none."""
        return 0

    def has_room(self, points: int) -> bool:
        """Return True: a linear model never grows."""
        return True

    def set_centre(self, row: np.ndarray) -> None:
        """Compute features relative to this row, which does not change them; has no effect if the columns are the features."""
        if not len(self.phase):
            return
        self.centre[:] = row
        self.phase[:] = np.mod(self.frequencies.astype(np.float64) @ row.astype(np.float64), 2.0 * math.pi)

    def widened(self, change: Widening) -> Linear:
        """Convert to the outputs of ``change`` on the same features."""
        return self._replace(coef=change.columns(self.coef, self.places), places=change.places(self.places))

    def ordered(self) -> Linear:
        """Return a copy with the columns in the order of the labels, and no others."""
        return self._replace(coef=self.coef.take(self.places, axis=1), places=np.arange(self.outputs))


def new_linear(
    problem: Problem, features: str, components: int, rng: np.random.Generator, groups: int = 1, votes: int = 0
) -> Linear:
    """Return an empty model on this many features, "fourier", "orthogonal" or "linear" ones, for a learner's problem.

    A frequency gives two features, so an odd number is rounded up.
    """
    d = problem.d
    check_room(1 if features == "linear" else components, d, "features")
    if features == "linear":
        frequencies = np.zeros((0, d))
        width = d
    else:
        frequencies = draw_frequencies(problem.kernel, -(-components // 2), d, features == "orthogonal", rng)
        width = 2 * len(frequencies)
    check_room(groups * problem.outputs, width, "outputs")
    return Linear(
        frequencies=frequencies.astype(problem.dtype),
        phase=np.zeros(len(frequencies)),
        centre=np.zeros(d, problem.dtype),
        coef=np.zeros((groups, problem.outputs, width)),
        places=np.arange(problem.outputs),
        clock=np.zeros(4),
        votes=np.full(votes, 1.0 / max(votes, 1)),
    )


def draw_frequencies(kernel: kernels.Kernel, count: int, d: int, orthogonal: bool, rng: np.random.Generator) -> np.ndarray:
    """Draw frequencies (count, d) of a kernel of the distance."""
    normals = rng.standard_normal((count, d))
    if orthogonal:
        normals = _orthogonal(normals)
    gamma, kind = kernel.gamma, kernel.kind
    if kind == kernels.RBF:
        return normals * math.sqrt(2.0 * gamma)
    if kind in (kernels.RATIONAL_QUADRATIC, kernels.CAUCHY):
        shape = kernel.degree if kind == kernels.RATIONAL_QUADRATIC else 1
        return normals * np.sqrt(2.0 * gamma / shape * rng.gamma(shape, size=count))[:, np.newaxis]
    freedom = {kernels.EXPONENTIAL: 1, kernels.MATERN32: 3, kernels.MATERN52: 5}[kind]
    return normals * (gamma / np.sqrt(rng.chisquare(freedom, size=count) / freedom))[:, np.newaxis]


def _orthogonal(normals: np.ndarray) -> np.ndarray:
    """Return rows of the same lengths that are orthogonal within each group of d rows."""
    out = np.empty_like(normals)
    d = normals.shape[1]
    for first in range(0, len(normals), d):
        group = normals[first : first + d]
        directions = np.linalg.qr(group.T)[0].T
        out[first : first + d] = directions * np.linalg.norm(group, axis=1, keepdims=True)
    return out


class Features:
    """The features of the events ahead.  Not part of the state."""

    ASSIGNED = ("Z",)

    def __init__(self, model: Linear, rows: Rows, size: int, spare: int = 0, centred: np.ndarray | None = None):
        """``centred``: where the rows of each block, minus the centre, will be found already."""
        L, d = model.frequencies.shape
        outputs, width = model.outputs, model.coef.shape[2]
        dtype = model.frequencies.dtype
        from_csr = bool(rows.indptr.size) and L > 0 and not model.centre.any()
        waves = load_waves if centred is None else load_centred_waves
        load = load_columns if L == 0 else load_sparse_waves if from_csr else waves
        self.load = FunctionField(load, model, OWNER, 0, 0)
        self.rows = rows
        self.X = np.empty((0 if from_csr else size, d), dtype) if centred is None else centred
        self.angles = np.empty(size * L, dtype)  # flat
        self.phase = np.empty(L, dtype)  # in the precision of the angles: with a wider type, vectors would be half as long
        turned = from_csr or (size == 1 and d <= NARROW)
        self.by_column = np.empty((d if turned else 0, L), dtype)  # frequencies, for CSR rows and single events
        if turned:
            self.by_column[:] = model.frequencies.T
        self.flat = np.empty(size * width, dtype)  # Z
        self.Z = self.flat[:0].reshape(0, 0)  # (events, features)
        self.f, self.g = buffers_apart(outputs)  # scores and gradient of one event
        self.losses = np.empty(len(model.votes))  # of the outputs at one event
        self.spare = np.empty(spare, dtype)  # room for kernel values of other rows, if a learner needs it
        self.spare_norms = np.empty(size if spare else 0, dtype)


@pluggable
def load_columns(model, features, start, b):
    """Take the columns as the features."""
    rows, centre, Z = features.rows, model.centre, features.Z
    for j in range(b):
        centred_row(rows, start + j, centre, Z[j])


@pluggable
def load_waves(model, features, start, b):
    """Compute random Fourier features of dense rows."""
    rows, centre, X = features.rows, model.centre, features.X
    for j in range(b):
        centred_row(rows, start + j, centre, X[j])
    _write_waves(model, features, b)


@pluggable
def load_centred_waves(model, features, start, b):
    """Compute random Fourier features of rows that are centred."""
    _write_waves(model, features, b)


@inner
def _write_waves(model, features, b):
    angles = shaped(features.angles, (b, model.frequencies.shape[0]))
    if b == 1 and features.by_column.size > 0:
        _column_products(features.X[0], features.by_column, angles[0])
    else:
        products(features.X[:b], model.frequencies, angles)
    _cosines_and_sines(angles, model.phase, features.phase, features.Z)


@inner
def _column_products(x, columns, out):
    """Write the products of one row with all others, which are given by columns."""
    fill(out, out.dtype.type(0.0))
    for c in range(x.size):
        value, column = x[c], columns[c]
        for i in range(out.size):
            out[i] += value * column[i]


@pluggable
def load_sparse_waves(model, features, start, b):
    """Compute random Fourier features of CSR rows."""
    rows, by_column = features.rows, features.by_column
    angles = shaped(features.angles, (b, model.frequencies.shape[0]))
    fill(features.angles, angles.dtype.type(0.0))
    for j in range(b):
        angle = angles[j]
        for p in range(rows.indptr[start + j], rows.indptr[start + j + 1]):
            value, column = rows.data[p], by_column[rows.indices[p]]
            for i in range(angle.size):
                angle[i] += value * column[i]
    _cosines_and_sines(angles, model.phase, features.phase, features.Z)


@inner
def open_features(model, features, start, b):
    """Compute the features of events start .. start + b - 1."""
    features.Z = shaped(features.flat, (b, model.coef.shape[2]))
    features.load(model, features, start, b)


def feature_table(model: Linear, rows: Rows, first: int, b: int) -> np.ndarray:
    """Return the features of events first .. first + b - 1 as a new table, (features, events)."""
    out = np.empty((model.coef.shape[2], b))
    _write_features(by_address(model), by_address(Features(model, rows, b)), first, out)
    return out


@jit
def _write_features(model, features, first, out):
    open_features(model, features, first, out.shape[1])
    Z = features.Z
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = Z[j, i]


@inner
def _cosines_and_sines(angles, model_phase, phase, Z):
    number = Z.dtype.type
    L = angles.shape[1]
    for i in range(L):
        phase[i] = number(model_phase[i])
    scale = number(1.0 / np.sqrt(L))
    for j in range(angles.shape[0]):
        angle, cosines, sines = angles[j], Z[j, :L], Z[j, L:]  # indexing Z[j, L + i] would prevent vectorisation
        for i in range(L):
            s, c = sincos(angle[i] + phase[i])
            cosines[i] = c * scale
            sines[i] = s * scale


@inline
def feature_score(weights, z):
    """<weights, z>."""
    total = 0.0
    for i in range(weights.size):
        total += weights[i] * np.float64(z[i])
    return total


@inline
def feature_scores(model, features, j, f):
    """Write the current model's scores of event j."""
    for o in range(f.size):
        f[o] = feature_score(model.coef[0, model.places[o]], features.Z[j])


@inline
def feature_add(model, features, j, factor, values):
    """w <- w + factor * values z_j."""
    for o in range(values.size):
        change = factor * values[o]
        if change != 0.0:
            w, z = model.coef[0, model.places[o]], features.Z[j]
            for i in range(w.size):
                w[i] += change * np.float64(z[i])


@inline
def feature_scale(model, factor):
    """w <- factor * w."""
    for o in range(model.coef.shape[1]):
        w = model.coef[0, o]
        for i in range(w.size):
            w[i] *= factor


@inline
def meet_event(model, features, j, f):
    """Write the current model's scores of event j, and add the model to the means, reading its weights only once."""
    model.clock[EVENTS] += 1.0
    share = max(2.0 / (model.clock[EVENTS] + 1.0), 1.0 / LATEST_EVENTS)
    if model.coef.shape[0] == 1:
        feature_scores(model, features, j, f)
        return
    for o in range(f.size):
        w, total, z = model.coef[0, model.places[o]], model.coef[MEAN, model.places[o]], features.Z[j]
        score = 0.0
        for i in range(w.size):
            score += w[i] * np.float64(z[i])
            total[i] += w[i]
        f[o] = score
        if model.votes.size > 0:
            latest = model.coef[LATEST, model.places[o]]
            for i in range(w.size):
                latest[i] += share * (w[i] - latest[i])


@inline
def group_weight(model, output, g):
    """Return the weight of group g in an output: the last model, the mean of all, or with ``AUTO`` the voted mean."""
    events = model.clock[EVENTS]
    if output == LAST or events == 0.0:
        return 1.0 if g == 0 else 0.0
    weight = 0.0
    if output == AUTO:
        weight = model.votes[g]
    elif g == MEAN:
        weight = 1.0
    return weight / events if g == MEAN else weight


@jit
def freeze_features(model, output, fraction, mix, coef):
    """Write the weights of the groups in the current output, and its coefficients; ``fraction`` only matters for points."""
    for g in range(mix.size):
        mix[g] = group_weight(model, output, g)
    mix_groups(model, mix, coef)


@inline
def output_score(model, output, o, z):
    """Return <w, z> with the weights w of an output."""
    total = 0.0
    for g in range(model.coef.shape[0]):
        weight = group_weight(model, output, g)
        if weight != 0.0:
            total += weight * feature_score(model.coef[g, model.places[o]], z)
    return total


@inline
def feature_outputs(model, features, j, output, row):
    """Write the outputs of event j."""
    for o in range(model.places.size):
        row[o] = output_score(model, output, o, features.Z[j])
