"""
Anomalies without labels
========================

A motor reports its speed and vibration. Vibration is strong at a resonance, which moves slowly as parts wear, so neither
value alone tells whether a reading is normal. :class:`kernling.SPAOneClass` learns this from the stream, without labels;
``contamination`` is the share of normal readings that may be reported. One reading in fifty is faulty, and is learned like the
others.

Two other models were fitted once, to the first 2,000 readings: the distance from their mean, which accounts for linear
correlations, and scikit-learn's isolation forest. The area under the ROC curve (AUC) is how often a faulty reading looks more
unusual than a normal one; for a constant score it is 0.5.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

import kernling as kl
from kernling.report.figures import COLOURS
from kernling.tables import Standardise

READINGS, FIRST, ASKED = 6000, 2000, 0.05
rng = np.random.default_rng(1)
time = np.arange(READINGS)
speed = rng.uniform(300, 2700, READINGS)  # turns per minute
resonance = 1200 + 500 * time / READINGS
vibration = 4 + speed / 1000 + 5 * np.exp(-(((speed - resonance) / 400) ** 2)) + 0.4 * rng.standard_normal(READINGS)  # mm/s
faulty = rng.random(READINGS) < 0.02
vibration += faulty * rng.choice([-1, 1], READINGS) * rng.uniform(2, 4, READINGS)
X = np.column_stack([speed, vibration])

detector = kl.SPAOneClass(contamination=ASKED, budget=1000, horizon=READINGS, random_state=0)
model = kl.StreamPipeline([("scale", Standardise()), ("detector", detector)])
score = model.predict_then_learn(X, method="decision_function")  # below 0: reported
distance = -EmpiricalCovariance().fit(X[:FIRST]).mahalanobis(X)
scores = {
    f"SPAOneClass, {model.n_stored_} points": score,
    "distance from the mean": distance - np.quantile(distance[:FIRST], ASKED),
    "isolation forest": IsolationForest(contamination=ASKED, random_state=0).fit(X[:FIRST]).decision_function(X),
}
later = time >= FIRST
print("                         AUC   normal readings reported   faulty ones")
for name, values in scores.items():
    area = roc_auc_score(~faulty[later], values[later])
    normal, found = ((values[later & which] < 0).mean() for which in (~faulty, faulty))
    print(f"{name:24} {area:.2f} {normal:16.1%} {found:20.1%}")

# %%
# The left panel shows the last 1,000 readings and the boundary after them, which still includes earlier resonances.

figure, (plane, course) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
last = time >= READINGS - 1000
speeds, vibrations = np.meshgrid(np.linspace(100, 2900, 150), np.linspace(0, 15, 150))
inside = model.decision_function(np.column_stack([speeds.ravel(), vibrations.ravel()])).reshape(speeds.shape)
plane.contourf(speeds, vibrations, inside, levels=[0, np.inf], colors=[COLOURS[4]], alpha=0.3)
plane.plot(*X[last & ~faulty].T, ".", markersize=3, color=COLOURS[0], label="normal")
plane.plot(*X[last & faulty].T, "x", markersize=7, markeredgewidth=2, color=COLOURS[1], label="faulty")
plane.set(title="what is normal after 6,000 readings (shaded)", xlabel="turns per minute", ylabel="vibration (mm/s)")
plane.legend(frameon=False, loc="upper left")
course.plot(time[~faulty], score[~faulty], ".", markersize=2, color=COLOURS[0])
course.plot(time[faulty], score[faulty], "x", markersize=5, color=COLOURS[1])
course.axhline(0, color="grey", linestyle="--", linewidth=1)
course.set(title="score before learning; below 0: reported", xlabel="readings", xlim=(0, READINGS), ylim=(-0.15, 0.25))
course.xaxis.set_major_formatter("{x:,.0f}")
for axes in (plane, course):
    axes.spines[["top", "right"]].set_visible(False)
