"""Training and predicting on many machines: parts of the data train models side by side, which merge into one."""

from .cluster import connected
from .fitting import BadPartitions, Progress, fit, predict

__all__ = ["BadPartitions", "Progress", "connected", "fit", "predict"]
