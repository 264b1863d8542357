"""Doctests run in a folder of their own, so that an example may write a file."""

from importlib.util import find_spec

import pytest

collect_ignore = [] if find_spec("capymoa") else ["src/kernling/compat/capymoa.py"]  # needs Java, and is not in an extra


@pytest.fixture(autouse=True)
def _own_folder(request):
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
