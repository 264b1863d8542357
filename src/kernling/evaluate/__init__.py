"""Running metrics, test-then-train evaluation, hold-out evaluation and parameter search; results are rows."""

from .holdout import batch, folds, held_out
from .metrics import AUC, F1, MAE, RMSE, Accuracy, BalancedAccuracy, Batch, LogLoss, Metric, Mistakes, Risk, Window, metric
from .protocols import ProgressiveRun, ProgressiveRuns, feed, online, test_then_train
from .references import ConstantAnswer, LinearModel
from .rows import model_of, read_rows, summary, write_rows
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
