"""The language of the fast backend: random programs do what they do in Python, and what Numba makes of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("programs.py")


def differences(seed, cache, *, count=200, numba=10, most=7, **environment):
    """Run programs in a process of their own, which wrong code may end."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, (seed, count, numba, most))],
        env={**os.environ, "KERNLING_CACHE": str(cache), **environment},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_random_programs(tmp_path):
    """All are compared with Python, and a few with Numba, which takes as long as ten others.

    They are shorter, and LLVM optimises nothing here: what is compared is our part, and the long test has all of it.
    """
    assert differences(0, tmp_path, numba=40, most=4, NUMBA_OPT="0") == "all the same\n"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 26))
def test_many_random_programs(seed, tmp_path):
    assert differences(seed, tmp_path) == "all the same\n"
