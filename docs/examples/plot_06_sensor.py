"""
Anomaly detection on a sensor
=============================

One-class learning: there are no labels, the model only learns what is normal. A vibration is split into windows of
64 samples, each described by the power in eight bands. :class:`kernling.SPAOneClass` learns a ball around them. From
event 3,000 on, a worn bearing adds a tone that grows slowly; the alarm is the fraction of the last 50 windows
outside of the ball.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernling as kl
from kernling.report.figures import COLOURS

rng = np.random.default_rng(7)
WINDOWS, LENGTH, BEGINS, RADIUS = 4000, 64, 3000, 0.7
times = np.arange(WINDOWS * LENGTH)
speed = 0.31 + 0.02 * np.sin(2 * np.pi * times / 40_000)  # the machine's speed varies
signal = np.sin(np.cumsum(speed)) + 0.5 * np.sin(2.0 * np.cumsum(speed)) + 0.5 * rng.standard_normal(len(times))
wear = np.clip((times / LENGTH - BEGINS) / 1000, 0, 1)
signal += 0.7 * wear * np.sin(1.9 * times)

power = np.abs(np.fft.rfft(signal.reshape(WINDOWS, LENGTH) * np.hanning(LENGTH)))[:, 1:33] ** 2
X = np.log(power.reshape(WINDOWS, 8, 4).mean(axis=2))

# %%
# The model learns every window, including anomalous ones. It stores few points, because steps are random, and rare once most
# windows are inside of the ball.

model = kl.SPAOneClass(kernel="rbf", gamma=0.05, radius=RADIUS, eta=0.05, beta=1.0, random_state=0)
distance = -model.predict_then_learn(X, method="score_samples")
outside = distance > RADIUS
alarm = np.convolve(outside, np.full(50, 1 / 50))[:WINDOWS]
print(f"{model.n_stored_} points of {model.t_} windows; outside before the wear: {outside[500:BEGINS].mean():.1%}")

figure, (above, below) = plt.subplots(2, 1, figsize=(9, 4.6), sharex=True, layout="constrained", height_ratios=[1, 1.3])
bands = above.imshow(X.T, aspect="auto", origin="lower", cmap="cividis", extent=(0, WINDOWS, 0.5, 8.5))
above.set(ylabel="band", title="log power in eight bands")
below.plot(distance, ".", markersize=2, color=COLOURS[4], label="distance from the centre")
below.plot(alarm, color=COLOURS[1], linewidth=2, label="fraction of the last 50 outside")
below.axhline(RADIUS, color="grey", linestyle="--", linewidth=1, label="radius")
below.axvline(BEGINS, color="grey", linewidth=1)
below.text(BEGINS, 1.02, " wear begins", ha="left", va="top", color="grey")
below.set(xlabel="windows", xlim=(0, WINDOWS), ylim=(0, 1.05))
below.legend(loc="upper left", ncols=3, frameon=False, markerscale=5)
below.spines[["top", "right"]].set_visible(False)
