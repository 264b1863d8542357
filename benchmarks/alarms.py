"""Alarms: how many are false on streams that stand still, and how soon changes are noticed.

    python -m benchmarks.alarms [--learners avm,auto] [--seeds 2] [--events 100000] [--only still]

Twenty streams without a change, ten of them with labels: independent rows, rows that resemble their neighbours, seasons,
categories, rare values, heavy tails.  Then the changes of ``benchmarks.changes``.  Odd seeds were used to choose constants.
"""

import argparse
import time
from collections import Counter

import numpy as np

import kernling as kl

from . import changes

AFTER = 2500  # events after a change that are learned
SOON = 1000  # events within which a change should be noticed


def normal(rng, n):
    return rng.normal(size=(n, 8))


def alike(rng, n, share=0.99):
    """Each row resembles the one before."""
    from scipy.signal import lfilter

    steps = rng.normal(size=(n + 2000, 8)) * np.sqrt(1.0 - share**2)
    return lfilter([1.0], [1.0, -share], steps, axis=0)[2000:]


def seasons(rng, n):
    """Four columns follow the time of day, of 240 events each."""
    X, hour = rng.normal(size=(n, 8)), np.arange(n) * 2.0 * np.pi / 240.0
    X[:, :4] += 2.0 * np.sin(hour[:, np.newaxis] + np.arange(4))
    return X


def mixed(rng, n):
    """Codes of categories, heavy tails, rare values and counts."""
    columns = [rng.choice(k, p=rng.dirichlet(np.ones(k)), size=n) for k in (3, 12)]
    columns += [rng.standard_t(2, size=n), np.exp(rng.normal(size=n)), rng.random(n) < 0.003, rng.poisson(1.5, n)]
    return np.column_stack([rng.normal(size=(n, 2)), *columns])


def wide(rng, n):
    return rng.normal(size=(n, 40))


ROWS = {"normal": normal, "alike": alike, "seasons": seasons, "mixed": mixed, "wide": wide}
LABELS = {"curve": changes.curve, "noisy product": lambda X: X[:, 0] * X[:, 1] > 0.0}
VALUES = {"waves": changes.waves(0, 1), "slope": changes.slope}
LEARNERS = {
    "avm": (
        lambda **more: kl.AVMClassifier(gamma=0.2, delta=1.2, **more),
        lambda **more: kl.AVMRegressor(gamma=0.2, delta=1.2, **more),
    ),
    "auto": (kl.AutoClassifier, kl.AutoRegressor),
}


def still(kind, rule, seed, n):
    """Return a stream without a change."""
    rng = np.random.default_rng([seed, *kind.encode()])
    X = ROWS[kind](rng, n)
    if rule in VALUES:
        return X, VALUES[rule](X) + 0.3 * rng.normal(size=n)
    y = LABELS[rule](X)
    return X, np.where(rng.random(n) < (0.2 if "noisy" in rule else 0.02), ~y, y)


def told(counts):
    return ", ".join(f"{count} {what}" for what, count in counts.items()) or "none"


def on_still_streams(learner, seeds, n):
    worst = total = 0
    for kind in ROWS:
        for rule in (*LABELS, *VALUES):
            for seed in seeds:
                X, y = still(kind, rule, seed, n)
                found = Counter()
                model = LEARNERS[learner][rule in VALUES](watch=True)
                model.on_alarm = lambda alarm, found=found: found.update([alarm.what])
                begin = time.process_time()
                for part in np.array_split(np.arange(n), n // 2000):
                    model.partial_fit(X[part], y[part])
                worst, total = max(worst, found.total()), total + found.total()
                seconds = time.process_time() - begin
                print(f"{learner:5s} {kind:8s} {rule:14s} {seed:4d}  {1e6 * seconds / n:5.1f} us  {told(found)}", flush=True)
    print(f"{learner}: {total} alarms in all, at most {worst} on a stream", flush=True)


def on_changes(learner, seeds, before=10_000):
    late = []
    for kind in [*changes.CLASSES, *changes.VALUES]:
        if "none" in kind:
            continue
        for seed in seeds:
            made = (changes.CLASSES | changes.VALUES)[kind]
            X, y, start = made(np.random.default_rng(seed), before)
            begins = before if kind in ("gradual", "slow") else start
            X, y = X[: start + AFTER], y[: start + AFTER]
            model = LEARNERS[learner][kind in changes.VALUES](watch=True).partial_fit(X, y)
            after = [alarm for alarm in model.alarms_ if alarm.event > begins]
            first = {}
            for alarm in after:
                first.setdefault(alarm.what, alarm.event - begins)
            delay = min(first.values(), default=None)
            early = sum(alarm.event <= before for alarm in model.alarms_)
            late += [] if delay is not None and delay <= SOON else [f"{kind} ({delay})"]
            said = ", ".join(f"{what} +{event:,}" for what, event in first.items()) or "nothing"
            print(f"{learner:5s} {kind:20s} {seed:4d}  {said}; {early} before the first change", flush=True)
    print(f"{learner}: noticed later than {SOON:,} events: {', '.join(late) or 'none'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", default=",".join(LEARNERS))
    parser.add_argument("--seeds", default="2")
    parser.add_argument("--events", type=int, default=100_000, help="events of a stream without a change")
    parser.add_argument("--only", choices=("still", "changes"))
    given = parser.parse_args()
    seeds = [int(seed) for seed in given.seeds.split(",")]
    for learner in given.learners.split(","):
        if given.only != "changes":
            on_still_streams(learner, seeds, given.events)
        if given.only != "still":
            on_changes(learner, seeds)


if __name__ == "__main__":
    main()
