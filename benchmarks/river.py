"""The time of learning one row with River's interface, compared with River's own logistic regression.

    python -m benchmarks.river

Prints microseconds per row and ratios of times taken in the same run; see README.md in this folder.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

from river import datasets, linear_model

import kernling as kl
from kernling.compat import to_river

ROUNDS = 7
GOAL = 15.0  # microseconds in addition to the kernel row


def main() -> None:
    print("| columns | points | whole call | overhead | goal | River's logistic regression | whole / River |")
    print("|---|---|---|---|---|---|---|")
    rows = list(datasets.Phishing())
    linear = linear_model.LogisticRegression()
    for columns in (9, 128):
        model = to_river(kl.AVMClassifier(gamma=1.0, delta=0.5), columns)
        bare = to_river(kl.AVMClassifier(gamma=1.0, delta=0.5, max_cells=1), columns)  # negligible kernel row

        def learn(learner) -> None:
            for x, y in rows:
                learner.learn_one(x, y)

        contestants = {"whole": model, "bare": bare, "river": linear}
        seconds = best({name: lambda each=each: learn(each) for name, each in contestants.items()}, ROUNDS)
        whole, besides, river = (1e6 * seconds[name] / len(rows) for name in contestants)
        points = model.learned.n_stored_
        print(f"| {columns} | {points} | {whole:.1f} | {besides:.1f} | {GOAL:.0f} | {river:.1f} | {whole / river:.1f} |")


if __name__ == "__main__":
    main()
