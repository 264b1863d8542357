"""
A model that stops growing
==========================

The stream has two intertwined spirals, 20,000 events, and 10 % label noise. AVM (:class:`kernling.AVMClassifier`) opens a cell
around the first event in a region, and represents all later ones by the cell's core point. Without cells, the same
method is kernel Pegasos (:class:`kernling.baselines.PegasosClassifier`), which stores every event with a
margin below 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernling as kl
from kernling.baselines import PegasosClassifier
from kernling.evaluate import test_then_train
from kernling.io import stream, synthetic
from kernling.report.figures import COLOURS

EVENTS = 20_000
X, y = synthetic("spirals", EVENTS).load()
noise = np.random.default_rng(99)  # the seed of neither the stream nor a method: equal seeds give equal numbers
y = np.where(noise.random(EVENTS) < 0.1, -y, y)
models = {
    "Pegasos": PegasosClassifier(gamma=40.0, lam=1e-3),
    "AVM": kl.AVMClassifier(gamma=40.0, lam=1e-3, delta=0.2),
}
runs = {name: test_then_train(model, stream(X, y), every=500) for name, model in models.items()}

# %%
# The surface is the score of AVM; circles are the stored points.

model = models["AVM"]
figure, (plane, size) = plt.subplots(1, 2, figsize=(9, 4.1), layout="constrained")
axis = np.linspace(-1.15, 1.15, 240)
grid = np.stack(np.meshgrid(axis, axis), axis=-1)
score = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
limit = np.percentile(np.abs(score), 98)
plane.imshow(score, origin="lower", extent=(-1.15, 1.15) * 2, cmap="RdBu", vmin=-1.4 * limit, vmax=1.4 * limit)
plane.scatter(*model.support_vectors_.T, s=16, facecolors="white", edgecolors="0.15", linewidths=0.8)
plane.set(title=f"AVM after {model.t_:,} events: {model.n_stored_} points", xticks=[], yticks=[])
for (name, rows), colour, style in zip(runs.items(), COLOURS, ("--", "-"), strict=False):
    events, points = zip(*((row["events"], row["n_stored"]) for row in rows), strict=True)
    size.plot(events, points, style, color=colour, linewidth=2.2)
    mistakes = f"{name}: {points[-1]:,} points,\n{rows[-1]['mistakes']:.1%} mistakes"
    size.annotate(mistakes, (events[-1], points[-1]), xytext=(-4, 8), textcoords="offset points", ha="right", color=colour)
size.set(title="points stored", xlabel="events", xlim=(0, EVENTS))
size.xaxis.set_major_formatter("{x:,.0f}")
size.yaxis.set_major_formatter("{x:,.0f}")
size.set_xticks(range(0, EVENTS + 1, 5000))
size.set_ylim(0, 1.2 * runs["Pegasos"][-1]["n_stored"])
size.spines[["top", "right"]].set_visible(False)
size.grid(alpha=0.3)
