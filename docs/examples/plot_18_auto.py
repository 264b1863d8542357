"""
Inside Auto
===========

Four pictures show how :class:`kernling.AutoClassifier` works: several experts of different kinds, a memory in cells, a
successor after a change, and probabilities that rank events of a rare class.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernling as kl

rng = np.random.default_rng(0)


def error(wrong, width=500):
    """Return the share of mistakes of each block of events."""
    return wrong[: len(wrong) // width * width].reshape(-1, width).mean(axis=1)


# %%
# Experts
# -------
# When the boundary begins to turn, the weights of the experts follow: those that forget gain, and so do those of the window.

X = rng.normal(size=(12_000, 2))
turn = np.clip(np.linspace(-4.0, 8.0, len(X)), 0.0, None)
y = (np.cos(turn) * X[:, 0] + np.sin(turn) * X[:, 1] > 0.0).astype(int)
model = kl.AutoClassifier(points=100)
weights, wrong = [], []
for rows in np.split(np.arange(len(X)), 48):
    wrong.append(model.predict_then_learn(X[rows], y[rows]) != y[rows])
    weights.append(model.expert_weights_)
figure, panel = plt.subplots(figsize=(8, 3.6), layout="constrained")
events = 250 * np.arange(1, 49)
for name in ("kernel", "linear", "linear_recent", "window", "window_cityblock", "memory_recent"):
    panel.plot(events, [moment[name] for moment in weights], label=name)
panel.axvline(4000, color="grey", linewidth=0.8, linestyle=":")
panel.set(xlabel="events; the boundary turns from the dotted line on", ylabel="weight of the expert's scores")
panel.legend(frameon=False, ncols=3, fontsize="small")
print(f"{np.mean(wrong[:16]):.1%} mistakes before, {np.mean(wrong[16:]):.1%} while it turns")

# %%
# Memory
# ------
# The board has 8 times 8 squares. Few points and a short window are not enough for it. With a memory, the model goes on
# improving. It stores the events whose neighbours do not predict their class, which lie along the borders.

X = rng.uniform(0.0, 8.0, size=(20_000, 2))
y = ((np.floor(X[:, 0]) + np.floor(X[:, 1])) % 2).astype(int)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=(3, 2))
for memory in (0, "16MB"):
    model = kl.AutoClassifier(points=128, window=300, memory=memory)
    mistakes = error(model.predict_then_learn(X, y) != y, 1000)
    left.plot(1000 * np.arange(1, len(mistakes) + 1), mistakes, label=f"memory={memory!r}")
left.set(xlabel="events", ylabel="share of mistakes", ylim=0.0)
left.legend(frameon=False)
held = model.state_.archive.trimmed(0)  # without spare room
right.scatter(*held.points.T, s=2, c=held.targets, cmap="coolwarm", linewidths=0)
right.set(title=f"{held.stored:,} events are stored", aspect="equal", xticks=[], yticks=[])

# %%
# After a change
# --------------
# The rule changes at event 6,000. An alarm is raised, a successor learns from scratch beside the old experts, and takes over
# once it is better.

X = rng.normal(size=(16_000, 10))
y = np.where(np.arange(len(X)) < 6000, X[:, 0] + X[:, 1] ** 2 > 1.0, X[:, 2] * X[:, 3] > 0.0).astype(int)
model = kl.AutoClassifier(points=200)
mistakes = error(model.predict_then_learn(X, y) != y)
figure, panel = plt.subplots(figsize=(8, 3.4), layout="constrained")
panel.plot(500 * np.arange(1, len(mistakes) + 1), mistakes, label="share of mistakes")
for alarm in model.rises_:
    panel.axvline(alarm.event, color="tab:red", linewidth=0.9, linestyle="--", label="alarm")
    if alarm.replaced:
        panel.axvline(alarm.replaced, color="tab:green", linewidth=0.9, linestyle="--", label="the successor takes over")
panel.set(xlabel="events", ylabel="share of mistakes", ylim=0.0)
handles, labels = panel.get_legend_handles_labels()
known = dict(zip(labels, handles, strict=True))
panel.legend(known.values(), known.keys(), frameon=False)
print(*model.rises_, sep="\n")

# %%
# Probabilities
# -------------
# Two events in a hundred are positive, and none of them is certain. So ``predict`` nearly always says no, but the probabilities
# rank events well (left), and positives are as frequent as they say (right).

X = rng.normal(size=(30_000, 4))
risk = 1.0 / (1.0 + np.exp(6.0 - 2.0 * X[:, 0] * X[:, 1] - X[:, 2]))
y = (rng.uniform(size=len(X)) < risk).astype(int)
model = kl.AutoClassifier(points=200)
said = model.predict_then_learn(X, y, method="predict_proba")[5000:, 1]
happened = y[5000:]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
order = np.argsort(-said)
left.plot(np.arange(len(said)) / len(said), np.cumsum(happened[order]) / happened.sum())
left.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle=":")
left.set(xlabel="share of events, the most probable ones first", ylabel="share of positives among them")
groups = np.array_split(np.argsort(said), 12)
right.loglog([said[group].mean() for group in groups], [max(happened[group].mean(), 1e-4) for group in groups], "o")
right.loglog([1e-4, 1.0], [1e-4, 1.0], color="grey", linewidth=0.8, linestyle=":")
right.set(xlabel="mean probability of a group", ylabel="share of positives in it")
print(f"{happened.mean():.2%} positive")
