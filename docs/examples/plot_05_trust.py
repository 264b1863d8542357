"""
When to trust a prediction
==========================

The flights of :ref:`another example <sphx_glr_gallery_plot_02_units.py>`, with an accident that happens to real streams: from
flight 9,000 on, the distance arrives in kilometres instead of miles. Nobody tells the model.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import kernling as kl
from kernling.io import stream
from kernling.report.figures import COLOURS

here = next(folder for folder in (Path.cwd(), Path("docs/examples")) if (folder / "flights.csv.gz").exists())
X, minutes = stream(here / "flights.csv.gz", target="air_time", missing="keep").load()
X.columns["distance"] = np.where(np.arange(len(minutes)) < 9000, 1.0, 1.609) * X.columns["distance"]

# %%
# **How far off is it?** With ``calibrate=True`` the model keeps track of its errors, and gives an interval for each prediction.
# **Has something changed?** With ``watch=True`` the model says so: its error rose, and the distance moved.

model = kl.StreamPipeline.auto(kl.AutoRegressor(calibrate=True, watch=True))
model.on_alarm = lambda alarm: print(
    f"flight {alarm.event:,}: {alarm.what} {alarm.before:.2g} to {alarm.after:.2g}", *alarm.columns
)
said, limits = [], []
for first in range(0, len(minutes), 200):
    rows = slice(first, first + 200)
    if first:
        limits.append(model.predict_interval(X[rows], coverage=0.9))
    said.append(model.predict_then_learn(X[rows], minutes[rows]))
    if first == 8800:
        why = model.explain(X[9000:9001])  # the first flight with a wrong distance
off = np.abs(np.concatenate(said) - minutes)
low, high = np.concatenate([np.full((200, 2), np.nan), *limits]).T
inside = (low <= minutes) & (minutes <= high)
next_one, ahead = model.calibration_[0.9].inside, inside[200:].mean()
print(f"inside of 90 % intervals: {next_one:.1%} if asked for the next flight, {ahead:.1%} up to 200 flights ahead")

# %%
# Intervals are for the next flight. Those in the middle panel were requested up to 200 flights ahead, which is five days, in
# which the weather changes. So fewer flights are inside: hardly any until the model has learned about kilometres, after which
# intervals are wider.
# **Why did it predict that?** The right panel explains the first flight with a wrong distance, before it was learned: the
# column to blame is the one that the alarm names.

figure, (error, width, reasons) = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
events = np.arange(200, len(off), 200)
blocks = [slice(one, one + 200) for one in events]
error.plot(events, [off[block].mean() for block in blocks], color=COLOURS[0], label="minutes off")
width.plot(events, [(high - low)[block].mean() for block in blocks], color=COLOURS[1], label="width of intervals (minutes)")
width.plot(events, [100.0 * inside[block].mean() for block in blocks], color=COLOURS[2], label="flights inside (%)")
for panel in (error, width):
    for alarm in model.alarms_:
        panel.axvline(alarm.event, color="tab:red", linestyle="--", linewidth=1.0, label="alarm")
    labels = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))  # each once
    panel.legend(labels.values(), labels.keys(), frameon=True, framealpha=1.0, loc="upper left")
    panel.set(xlabel="flights", ylim=(0, 1.35 * panel.get_ylim()[1]))
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.set_xticks(range(0, 13_000, 4_000))
order = np.argsort(np.abs(why.values[0]))
reasons.barh([why.columns[one] for one in order], why.values[0][order], color=COLOURS[0])
title = f"{why.score[0]:.0f} minutes, {why.base:.0f} on average; it took {minutes[9000]:.0f}"
reasons.set(title=title, xlabel="contribution (minutes)")
for panel in figure.axes:
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)
