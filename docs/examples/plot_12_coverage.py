"""
Cells that cover the stream
===========================

This picture shows the idea of AVM: an event outside of all cells opens a new one around itself, and any other is represented by
the core point of its cell. Many cells are opened at first and few later, since their number depends on where events are, not on
how many there are.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle

import kernling as kl
from kernling.io import synthetic
from kernling.report.figures import COLOURS

X, y = synthetic("multidist", 10_000, seed=6).load()
moments = [30, 300, 3000, 10_000]
model = kl.AVMClassifier(loss="logistic", gamma=1.4, lam=1e-4, delta=1.0)

figure, panels = plt.subplots(1, 4, figsize=(11, 3.4), layout="constrained", sharex=True, sharey=True)
begin = 0
for panel, end in zip(panels, moments, strict=True):
    model.partial_fit(X[begin:end], y[begin:end], classes=np.unique(y))
    shown = slice(max(0, end - 1500), end)
    panel.scatter(*X[shown].T, s=max(3, 12 - end / 100), c=np.array(COLOURS)[y[shown]], linewidths=0, alpha=0.6)
    for core in model.support_vectors_:
        panel.add_patch(Circle(core, model.delta_ / 2, fill=False, edgecolor="black", linewidth=0.8))
    panel.set(title=f"{end:,} events, {model.n_cells_} cells", aspect="equal", xticks=[], yticks=[])
    begin = end

# %%
# The certificate of this run has, among others, the largest distance of an event from its core point, and a bound on this
# distance in the kernel's space.

print(model.certificate())
