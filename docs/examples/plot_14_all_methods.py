"""
Size and mistakes of seven methods
==================================

The left panel shows the mistakes of several methods on the same noisy checkerboard, in a sliding window, and the right one the
number of points that they store. Parameters were set by hand. FOGD stores 200 random features instead of points. SPA stores
points slowly and never moves them, so it learns slowly with as few points as here.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernling as kl
from kernling.baselines import BPANNClassifier, FOGDClassifier, PegasosClassifier
from kernling.evaluate import test_then_train
from kernling.io import stream, synthetic
from kernling.report.figures import COLOURS, STYLES

EVENTS = 20_000
X, y = synthetic("checkerboard", EVENTS, seed=1).load()
noise = np.random.default_rng(99)  # the seed of neither the stream nor a method: equal seeds give equal numbers
y = np.where(noise.random(EVENTS) < 0.1, -y, y)
models = {
    "AVM": kl.AVMClassifier(gamma=6.0, lam=1e-3, delta=0.4),
    "POLK": kl.POLKClassifier(gamma=6.0, eta=4.0, parsimony=0.03),
    "SPA": kl.SPAClassifier(gamma=6.0, eta=1.0, budget=400, horizon=EVENTS, random_state=0),
    "DualSVRG": kl.DualSVRGClassifier(gamma=6.0, eta=0.5, lam=1e-6, oracle="budget", budget=100, random_state=0),
    "BPA-NN": BPANNClassifier(gamma=6.0, C=0.1, budget=100),
    "FOGD": FOGDClassifier(gamma=6.0, eta=0.5, n_components=200, random_state=0),
    "Pegasos": PegasosClassifier(gamma=6.0, lam=1e-3),
}

figure, (wrong, size) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for place, (name, model) in enumerate(models.items()):
    rows = test_then_train(model, stream(X, y), every=1000, window=2000)
    events = [row["events"] for row in rows]
    look = {"color": COLOURS[place], "linestyle": STYLES[place % 3], "linewidth": 1.8, "label": name}
    wrong.plot(events, [100 * row["mistakes_window"] for row in rows], **look)
    size.plot(events, [max(row["n_stored"], 0.5) for row in rows], **look)
wrong.axhline(10, color="grey", linewidth=1, linestyle=(0, (1, 2)))
wrong.annotate("label noise", (EVENTS, 10), xytext=(0, -12), textcoords="offset points", ha="right", color="grey")
wrong.set(title="mistakes in the last 2,000 events (%)", xlabel="events", ylim=(0, None))
size.set(title="points stored", xlabel="events", yscale="log", ylim=(0.4, None))
size.set_yticks([0.5, 10, 100, 1000, 10000], ["none", "10", "100", "1,000", "10,000"])
for axes in (wrong, size):
    axes.set_xticks(range(0, EVENTS + 1, 5000))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
figure.legend(*size.get_legend_handles_labels(), loc="outside lower center", ncols=7, frameon=False)
