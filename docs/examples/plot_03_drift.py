"""
A stream that changes
=====================

Six groups of events, alternately of two classes, wander around a circle, one turn in 12,000 events; halfway, all labels are
swapped. A model that was trained once is soon wrong, and no line separates the classes. :class:`kernling.AutoClassifier`,
with nothing set by hand, learns from every event and forgets as fast as the stream requires.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.svm import SVC

import kernling as kl
from kernling.evaluate import test_then_train
from kernling.io import stream
from kernling.report.figures import COLOURS, STYLES

EVENTS, WINDOW = 20_000, 1000
rng = np.random.default_rng(5)
group = rng.integers(6, size=EVENTS)
angle = 2 * np.pi * (group / 6 + np.arange(EVENTS) / 12_000)
X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.2 * rng.standard_normal((EVENTS, 2))
y = (group % 2 == 0) == (np.arange(EVENTS) < EVENTS // 2)

model = kl.AutoClassifier()
moments, surfaces = [6000, 9500, 11_500], []
axis = np.linspace(-1.7, 1.7, 120)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def watch(row):
    if row["events"] in moments:
        surfaces.append(model.predict_proba(grid)[:, 1].reshape(120, 120))


rows = test_then_train(model, stream(X, y), every=500, window=WINDOW, linear=True, on_row=watch)
once = SVC().fit(X[:2000], y[:2000]).predict(X) != y

# %%
# The upper panels show the model's probabilities at three moments, with the next 300 events.

figure = plt.figure(figsize=(9, 6.4), layout="constrained")
panels = figure.subplot_mosaic([["0", "1", "2"], ["wrong", "wrong", "wrong"]], height_ratios=[1.1, 1])
for place, (moment, surface) in enumerate(zip(moments, surfaces, strict=True)):
    panel, new = panels[str(place)], slice(moment, moment + 300)
    panel.imshow(surface, origin="lower", extent=(-1.7, 1.7) * 2, cmap="RdBu", vmin=-0.3, vmax=1.3)
    panel.scatter(*X[new].T, c=y[new], s=9, cmap=ListedColormap([COLOURS[1], COLOURS[0]]), edgecolors="white", linewidths=0.3)
    panel.set(title=f"after {moment:,} events", xticks=[], yticks=[])
wrong, events = panels["wrong"], np.array([row["events"] for row in rows])
kept = [100 * once[max(0, end - WINDOW) : end].mean() for end in events]
lines = {
    f"Auto: {rows[-1]['mistakes']:.1%}": [100 * row["mistakes_window"] for row in rows],
    f"SVM trained on the first 2,000 events: {once[2000:].mean():.1%}": np.where(events < 3000, np.nan, kept),
    f"linear model: {rows[-1]['mistakes_linear']:.1%}": [100 * row["mistakes_window_linear"] for row in rows],
    f"constant answer: {rows[-1]['mistakes_constant']:.1%}": [100 * row["mistakes_window_constant"] for row in rows],
}
for place, (label, values) in enumerate(lines.items()):
    wrong.plot(events, values, STYLES[place], color=COLOURS[place], linewidth=2.2 if place == 0 else 1.4, label=label)
wrong.axvline(EVENTS // 2, color="grey", linewidth=1)
wrong.text(EVENTS // 2, 96, " labels swapped", color="grey")
wrong.set(title="mistakes in the last 1,000 events (%)", xlabel="events", ylim=(0, 105), xlim=(0, EVENTS))
wrong.xaxis.set_major_formatter("{x:,.0f}")
wrong.spines[["top", "right"]].set_visible(False)
wrong.grid(alpha=0.3)
figure.legend(*wrong.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
