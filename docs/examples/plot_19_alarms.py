"""
Alarms
======

A model that watches its errors and columns says when the stream has changed. Here, the rule changes at event 6,000, and at
event 10,000 one of the sensors is replaced by another, whose values are larger.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernling as kl

rng = np.random.default_rng(0)
X = rng.normal(size=(14_000, 4))
y = np.where(np.arange(14_000) < 6000, X[:, 0] + X[:, 1] ** 2 > 1.0, X[:, 1] * X[:, 2] > 0.0)
X[10_000:, 2] += 1.5

# %%
# With ``watch=True``, errors before learning and all columns are watched.  ``on_alarm`` is called with each alarm, and
# ``alarms_`` has the latest 16.  Both work with arrays, tables and single events.

model = kl.AutoClassifier(points=200, watch=True)
model.on_alarm = print
wrong = np.concatenate([model.predict_then_learn(X[rows], y[rows]) != y[rows] for rows in np.split(np.arange(len(X)), 56)])

# %%
# Each alarm says what has changed: the share of mistakes before and after, or the columns that moved, with the share of
# their values that lie elsewhere now.

error = wrong.reshape(-1, 250).mean(axis=1)
figure, (upper, lower) = plt.subplots(2, figsize=(8, 5.2), sharex=True, layout="constrained")
upper.plot(250 * np.arange(1, len(error) + 1), 100.0 * error, label="mistakes, in blocks of 250 events")
upper.set(ylabel="mistakes (%)", ylim=(0, 50))
lower.plot(X[:, 2], ".", markersize=1.0, color="tab:grey", label="column 2")
lower.set(xlabel="events", ylabel="column 2")
colours = {"error": "tab:red", "columns": "tab:orange", "constant": "tab:purple"}
for alarm in model.alarms_:
    panel = lower if alarm.what == "columns" else upper
    panel.axvline(alarm.event, color=colours[alarm.what], linestyle="--", label=f"alarm: {alarm.what}")
for panel in (upper, lower):
    labels = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))  # each once
    panel.legend(labels.values(), labels.keys(), loc="upper left", fontsize="small")
plt.show()
