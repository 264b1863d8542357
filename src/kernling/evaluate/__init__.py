"""Running metrics, test-then-train evaluation, hold-out evaluation and parameter search; results are rows."""

from .holdout import batch, folds, held_out
from .label_metrics import F1, Accuracy, BalancedAccuracy, Mistakes
from .metrics import AUC, MAE, RMSE, LogLoss, Risk, Window, metric
from .protocols import ProgressiveRun, ProgressiveRuns, feed, online, test_then_train
from .references import ConstantAnswer, LinearModel
from .rows import model_of, read_rows, summary, write_rows
from .running import Batch, Metric
from .search import Found, Search, search
from .selection import Choice, choose

__all__ = [
    "AUC",
    "F1",
    "MAE",
    "RMSE",
    "Accuracy",
    "BalancedAccuracy",
    "Batch",
    "Choice",
    "ConstantAnswer",
    "Found",
    "LinearModel",
    "LogLoss",
    "Metric",
    "Mistakes",
    "ProgressiveRun",
    "ProgressiveRuns",
    "Risk",
    "Search",
    "Window",
    "batch",
    "choose",
    "feed",
    "folds",
    "held_out",
    "metric",
    "model_of",
    "online",
    "read_rows",
    "search",
    "summary",
    "test_then_train",
    "write_rows",
]
