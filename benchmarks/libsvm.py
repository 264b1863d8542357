"""The speed of reading LIBSVM text relative to scikit-learn.

Run ``python benchmarks/libsvm.py [FILE]``; without a file, a text with both short and long numbers is generated.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from kernling.io import stream


def made_up(path: Path, rows: int = 20_000, columns: int = 200, seed: int = 0) -> Path:
    """Write rows of 30 numbers each: a third of them 1, a third with six digits, a third with seventeen."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for _ in range(rows):
            where = np.sort(rng.choice(columns, 30, replace=False)) + 1
            numbers = (
                ["1"] * 10 + [f"{x:.6g}" for x in rng.standard_normal(10)] + [repr(float(x)) for x in rng.standard_normal(10)]
            )
            file.write(
                f"{rng.choice([-1, 1])} " + " ".join(f"{i}:{x}" for i, x in zip(where, rng.permutation(numbers), strict=True))
            )
            file.write("\n")
    return path


def ratio(path: Path, n_features: int | None = None, repeats: int = 3) -> float:
    """Return the ratio of scikit-learn's best time to ours on the same file, in alternating runs."""
    theirs, ours = [], []
    stream(path, format="libsvm", n_features=n_features).load()  # compiles
    for _ in range(repeats):
        begin = time.perf_counter()
        expected = load_svmlight_file(str(path), n_features=n_features, zero_based=False)
        middle = time.perf_counter()
        got = stream(path, format="libsvm", n_features=n_features).load()
        end = time.perf_counter()
        theirs.append(middle - begin)
        ours.append(end - middle)
    assert (expected[0] != got[0]).nnz == 0
    assert np.array_equal(expected[1], got[1])
    return min(theirs) / min(ours)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        file = Path(sys.argv[1]) if len(sys.argv) > 1 else made_up(Path(folder) / "rows.libsvm")
        columns = stream(file, format="libsvm").load()[0].shape[1]
        print(f"columns counted first: {ratio(file):.1f} times as fast; columns given: {ratio(file, columns):.1f} times")
