"""Training and predicting on many machines: parts of the data train models side by side, which merge into one."""

from .cluster import connected
from .fitting import fit
from .predicting import predict
from .results import BadPartitions, Interrupted, Progress

__all__ = ["BadPartitions", "Interrupted", "Progress", "connected", "fit", "predict"]
