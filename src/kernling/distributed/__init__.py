"""Distributed training and prediction: models are trained on parts of the data in parallel and merged into one."""

from .cluster import connected
from .fitting import fit
from .predicting import predict
from .results import BadPartitions, Interrupted, Progress

__all__ = ["BadPartitions", "Interrupted", "Progress", "connected", "fit", "predict"]
