"""
Following drift
===============

Two classes lie on opposite sides of a circle that rotates once in 20,000 events. AVM's steps decrease as 1/t: old events count
as much as new ones, so it adapts more and more slowly. With a half-life (``forget``) it follows the drift. So do POLK, whose
steps are constant, with a large ``lam``, and NORMA, which also removes its oldest points.
"""

import matplotlib.pyplot as plt

import kernling as kl
from kernling.baselines import NORMAClassifier
from kernling.evaluate import test_then_train
from kernling.io import synthetic
from kernling.report.figures import COLOURS, STYLES

EVENTS = 80_000
models = {
    "AVM: steps of 1/t": kl.AVMClassifier(gamma=1.0, lam=1e-3, delta=0.5),
    "AVM, forget=2000": kl.AVMClassifier(gamma=1.0, lam=1e-3, delta=0.5, forget=2000),
    "POLK: constant steps": kl.POLKClassifier(gamma=1.0, eta=3.0, lam=1e-2, parsimony=0.01),
    "NORMA: constant steps, 100 newest points": NORMAClassifier(gamma=1.0, eta=0.5, lam=0.005, budget=100),
}
figure, (wrong, size) = plt.subplots(2, 1, figsize=(9, 5), sharex=True, layout="constrained", height_ratios=[2, 1])
for place, (name, model) in enumerate(models.items()):
    rows = test_then_train(model, synthetic("moving", EVENTS, seed=3), every=1000, window=4000)
    events = [row["events"] for row in rows]
    look = {"color": COLOURS[place], "linestyle": STYLES[place], "linewidth": 1.8, "label": name}
    wrong.plot(events, [100 * row["mistakes_window"] for row in rows], **look)
    size.plot(events, [row["n_stored"] for row in rows], **look)
wrong.set(title="mistakes in the last 4,000 events (%)", ylim=(0, None), xlim=(0, EVENTS))
size.set(title="points stored", xlabel="events", ylim=(0, None))
for turn in (20_000, 40_000, 60_000):
    wrong.axvline(turn, color="grey", linewidth=1, linestyle=(0, (1, 2)))
wrong.text(20_000, 0.2, " one whole turn", ha="left", color="grey")
wrong.legend(frameon=False, loc="upper left")
for axes in (wrong, size):
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
