"""
Merging four models
===================

Four models are trained on a quarter of a checkerboard each, and merged (:func:`kernling.merge`) into one for the whole
board: the mean of their functions, on cells that cover all of their points. If each model is trained on a machine of its own,
no events have to be exchanged.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernling as kl
from kernling.io import synthetic

X, y = synthetic("checkerboard", 12_000, seed=8).load()
rows, fresh = slice(0, 8000), slice(8000, None)
quarter = 2 * (X[:, 1] > 2) + (X[:, 0] > 2)
parts = []
for which in range(4):
    mine = quarter[rows] == which
    model = kl.AVMClassifier(gamma=6.0, delta=0.4, lam=1e-3)
    parts.append(model.partial_fit(X[rows][mine], y[rows][mine], classes=[-1, 1]))
whole = kl.merge(parts)

axis = np.linspace(0, 4, 160)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
figure, panels = plt.subplots(1, 5, figsize=(12, 2.9), layout="constrained")
titles = ["lower left", "lower right", "upper left", "upper right", "merged"]
for panel, model, title in zip(panels, [*parts, whole], titles, strict=True):
    score = model.decision_function(grid).reshape(160, 160)
    limit = np.percentile(np.abs(score), 98)
    panel.imshow(score, origin="lower", extent=(0, 4, 0, 4), cmap="RdBu", vmin=-1.4 * limit, vmax=1.4 * limit)
    panel.scatter(*model.support_vectors_.T, s=4, facecolors="white", edgecolors="0.15", linewidths=0.4)
    right = (model.predict(X[fresh]) == y[fresh]).mean()
    panel.set(title=f"{title}: {model.n_stored_} points", xlabel=f"accuracy on new events: {right:.0%}", xticks=[], yticks=[])

# %%
# The certificate bounds the difference between any score of the merged model and the mean of the models' scores.

print({name: round(value, 3) for name, value in whole.certificate().items()})
