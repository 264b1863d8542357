"""
One positive in a hundred
=========================

A ring of positive events lies among a hundred times as many others. Always predicting "no" has an accuracy of 99 %.
The area under the ROC curve measures instead how often a positive event scores higher than a negative one. AOGD
(:class:`kernling.AOGDClassifier`) learns from such pairs; FOGD uses the same random features with single events,
with and without balanced weights. The step size of each was the best of five on another sample.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernling as kl
from kernling.baselines import FOGDClassifier
from kernling.evaluate import test_then_train
from kernling.io import stream
from kernling.report.figures import COLOURS, STYLES

EVENTS = 20_000
rng = np.random.default_rng(11)
y = (rng.random(EVENTS) < 0.01).astype(int)
radius = np.where(y == 1, 1.4 + 0.15 * rng.standard_normal(EVENTS), 1.2 * np.sqrt(-2 * np.log(rng.random(EVENTS))))
angle = 2 * np.pi * rng.random(EVENTS)
X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])

models = {
    "AOGD, pairs": kl.AOGDClassifier(loss="logistic", gamma=2.0, eta=10.0, second_eta=2.5, n_components=200, random_state=0),
    "FOGD, single events": FOGDClassifier(loss="logistic", gamma=2.0, eta=3.0, n_components=200, random_state=0),
    "FOGD, balanced": FOGDClassifier(
        loss="logistic", gamma=2.0, eta=0.1, n_components=200, class_weight="balanced", random_state=0
    ),
}

figure, (plane, curve) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
plane.scatter(*X[y == 0][:4000].T, s=2, color=COLOURS[4], alpha=0.5, linewidths=0)
plane.scatter(*X[y == 1].T, s=12, color=COLOURS[1], linewidths=0)
plane.set(title="positives (orange) among others", aspect="equal", xticks=[], yticks=[])
for place, (name, model) in enumerate(models.items()):
    rows = test_then_train(model, stream(X, y), metrics=["auc"], every=500)
    label = f"{name}: {rows[-1]['auc']:.3f}"
    curve.plot([row["events"] for row in rows], [row["auc"] for row in rows], STYLES[place], color=COLOURS[place], label=label)
curve.set(title="area under the ROC curve so far", xlabel="events", ylim=(0.5, 1.0), xlim=(0, EVENTS))
curve.set_xticks(range(0, EVENTS + 1, 5000))
curve.xaxis.set_major_formatter("{x:,.0f}")
curve.grid(alpha=0.3)
curve.spines[["top", "right"]].set_visible(False)
figure.legend(*curve.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
