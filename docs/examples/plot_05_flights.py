"""
Predicting late flights
=======================

Every 25th flight that left New York in 2013 (`nycflights13 <https://github.com/tidyverse/nycflights13>`_, public
domain), in the order of departure, with the weather at that hour. Late means more than 15 minutes. Each flight is predicted
from its day, hour, airline and weather before it is learned.

Delays depend on much that is not in the table, so hardly any flight is more likely late than not, and AVM's accuracy
is about that of always predicting "on time". AOGD sets its threshold such that both classes are recognised equally often,
and has a lower accuracy. The order of the scores is more useful, and this is what the area under the ROC curve measures.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import kernling as kl
from kernling.evaluate import test_then_train
from kernling.report.figures import COLOURS, STYLES
from kernling.streams import Encode, Standardise, stream

here = next(folder for folder in (Path.cwd(), Path("docs/examples")) if (folder / "flights.csv.gz").exists())


def flights():
    rows = stream(here / "flights.csv.gz", target="late", categorical=["carrier", "origin"])
    return rows.through(Encode(["carrier", "origin"], scale=Standardise()))


models = {
    "AOGD": kl.AOGDClassifier(loss="logistic", gamma=0.01, eta=0.5, second_eta=0.125, n_components=400, random_state=0),
    "AVM": kl.AVMClassifier(loss="logistic", gamma=0.03, lam=1e-3, delta=8.0),
}
figure, (auc, late) = plt.subplots(2, 1, figsize=(9, 5), sharex=True, layout="constrained", height_ratios=[2, 1])
for place, (name, model) in enumerate(models.items()):
    rows = test_then_train(model, flights(), metrics=["auc", "accuracy"], every=250, window=1000)
    events = [row["events"] for row in rows]
    label = f"{name}: AUC {rows[-1]['auc']:.3f}, accuracy {rows[-1]['accuracy']:.3f}"
    auc.plot(events, [row["auc_window"] for row in rows], STYLES[place], color=COLOURS[place], linewidth=1.8, label=label)
share_late = [100 * (1 - row["accuracy_window_constant"]) for row in rows]
late.fill_between(events, share_late, color=COLOURS[4], alpha=0.6, linewidth=0)
auc.axhline(0.5, color="grey", linestyle=(0, (1, 2)))
auc.set(title="area under the ROC curve, last 1,000 flights", ylim=(0.45, 0.85))
auc.legend(frameon=False, loc="upper left")
late.set(title="late, last 1,000 flights (%)", ylim=(0, None), xlim=(0, events[-1]))
starts = [events[-1] * month / 12 for month in range(12)]
late.set_xticks(starts, ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], ha="left")
late.tick_params(axis="x", length=0)
for axes in (auc, late):
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
print(f"the constant answer: accuracy {rows[-1]['accuracy_constant']:.3f}; AVM stores {models['AVM'].n_stored_} points")
