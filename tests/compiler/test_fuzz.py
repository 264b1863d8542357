"""The language of the fast backend: random programs do what they do in Python, and what Numba makes of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("programs.py")


def differences(seed, count, numba, cache, **environment):
    """Run programs in a process of their own, which wrong code may end."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(seed), str(count), str(numba)],
        env={**os.environ, "KERNLING_CACHE": str(cache), **environment},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_random_programs(tmp_path):
    """All are compared with Python, and some with Numba, which takes most of the time.

    LLVM optimises little here, which takes a quarter less: what is compared is our part, and the long test has all of it.
    """
    assert differences(seed=0, count=200, numba=10, cache=tmp_path, NUMBA_OPT="1") == "all the same\n"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 26))
def test_many_random_programs(seed, tmp_path):
    assert differences(seed, count=200, numba=10, cache=tmp_path) == "all the same\n"
