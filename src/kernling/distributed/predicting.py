"""Prediction on a Dask cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..tables.steps import columns_of
from . import training
from .cluster import connected
from .partitions import Reading, partitions_of


def predict(client: Any, model: Any, data: Any, method: str = "predict", **reading: Any):
    """Return predictions for all rows, in the order of the partitions, which workers read in chunks.

    Parameters
    ----------
    client : distributed.Client or str
        See :func:`fit`.
    model : estimator
        A fitted estimator or pipeline.
    data : Dask DataFrame, Dask array, path or list of paths
        See :func:`fit`; targets are ignored.
    method : str
        "predict", "decision_function" or "predict_proba".
    **reading
        Options of :func:`kernling.io.stream`; a pipeline knows its columns.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> import dask.array, numpy as np, kernling as kl
    >>> from kernling import distributed
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = kl.AVMClassifier(gamma=1.0, delta=0.5, lam=1e-3).fit(X, X[:, 0] > X[:, 1])
    >>> said = distributed.predict("local:1", model, dask.array.from_array(X, chunks=(250, 2)))
    >>> print(f"{np.mean(said == (X[:, 0] > X[:, 1])):.1f}")
    1.0
    """
    check_is_fitted(model)
    if not hasattr(model, method):
        raise ValueError(f"a {type(model).__name__} has no {method}")
    partitions, pieces = partitions_of(data, None)
    how = Reading({"n_features": model.n_features_in_} | columns_of(model) | reading)
    with connected(client) as connection:
        from dask import delayed

        say, shared = delayed(training.say, pure=False), delayed(model, pure=False, traverse=False)
        jobs = [say(shared, *pair, how, method) for pair in zip(partitions, pieces, strict=True)]
        return np.concatenate(connection.gather(connection.compute(jobs)))
