"""
The effect of each parameter
============================

In each panel one parameter is varied while the others are fixed; the dashed line marks the fixed value.
The stream is a checkerboard of 8,000 events with 10 % label noise, so no method can make fewer than 10 % mistakes.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernling as kl
from kernling.evaluate import test_then_train
from kernling.io import stream, synthetic
from kernling.report.figures import COLOURS

X, y = synthetic("checkerboard", 8000, seed=5).load()
noise = np.random.default_rng(99)  # the seed of neither the stream nor a method: equal seeds give equal numbers
y = np.where(noise.random(len(y)) < 0.1, -y, y)


def knobs(model, ranges, metric="mistakes"):
    """Plot a column per parameter: the metric above, the stored points below."""
    stores = test_then_train(model, stream(X, y))[-1]["n_stored"] > 0
    heights = [3, 2] if stores else [1]
    figure, panels = plt.subplots(
        len(heights), len(ranges), figsize=(2.9 * len(ranges), 4.4 if stores else 2.8), sharey="row", sharex="col",
        squeeze=False, layout="constrained", height_ratios=heights,
    )  # fmt: skip
    for column, (name, values) in enumerate(ranges.items()):
        rows = []
        for value in values:
            copy = type(model)(**(model.get_params() | {name: value}))
            rows.append(test_then_train(copy, stream(X, y), metrics=[metric])[-1])
        panels[0, column].plot(values, [100 * row[metric] for row in rows], "o-", color=COLOURS[0])
        if stores:
            panels[1, column].plot(values, [row["n_stored"] for row in rows], "s-", color=COLOURS[1])
        for panel in panels[:, column]:
            panel.axvline(getattr(model, name), color="grey", linestyle="--", linewidth=1)
            panel.set(xscale="log")
            panel.xaxis.set_minor_formatter("")
            panel.spines[["top", "right"]].set_visible(False)
            panel.grid(alpha=0.3)
        panels[-1, column].set_xlabel(name)
    panels[0, 0].set(ylabel=f"{metric} (%)" if metric == "mistakes" else "AUC (%)")
    if stores:
        panels[1, 0].set(ylabel="points", yscale="log")
    return figure


# %%
# AVM: smaller cells give more points and more detail. Once cells are wider than the kernel, detail is lost.

avm = knobs(
    kl.AVMClassifier(gamma=6.0, delta=0.4, lam=1e-3),
    {"delta": np.geomspace(0.1, 2, 8), "gamma": np.geomspace(0.3, 100, 8), "lam": np.geomspace(1e-6, 1, 8)},
)

# %%
# POLK: parsimony is the radius of the error ball, in units of the step. Large steps need larger balls.

polk = knobs(
    kl.POLKClassifier(gamma=6.0, eta=4.0, parsimony=0.03),
    {"parsimony": np.geomspace(0.002, 0.08, 7), "eta": np.geomspace(0.1, 16, 7), "gamma": np.geomspace(0.3, 100, 8)},
)

# %%
# SPA: beta reduces the number of steps, and thus of points; eta limits the size of each step.

spa = knobs(
    kl.SPAClassifier(gamma=6.0, eta=1.0, beta=20.0, random_state=0),
    {"beta": np.geomspace(1, 100, 7), "eta": np.geomspace(0.01, 100, 8), "gamma": np.geomspace(0.3, 100, 8)},
)

# %%
# DualSVRG: the step size matters most, memory and period less; more features give a finer model.

dualsvrg = knobs(
    kl.DualSVRGClassifier(gamma=6.0, eta=0.5, lam=1e-6, oracle="budget", budget=100, random_state=0),
    {
        "eta": np.geomspace(0.01, 5, 7),
        "n_components": [20, 50, 100, 200, 400],
        "memory": [1, 3, 10, 30, 100, 300],
        "period": [10, 30, 100, 300, 1000],
    },
)

# %%
# AOGD, evaluated by the area under the ROC curve: it stores no points, so there is no lower row.

aogd = knobs(
    kl.AOGDClassifier(gamma=6.0, random_state=0),
    {
        "eta": np.geomspace(0.01, 1.5, 7),
        "second_eta": np.geomspace(0.001, 1, 7),
        "n_components": [20, 50, 100, 200, 400],
        "refresh": np.geomspace(0.001, 1, 7),
    },
    metric="auc",
)
