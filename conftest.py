"""Doctests run in a folder of their own, so that an example may write a file."""

import pytest


@pytest.fixture(autouse=True)
def _own_folder(request):
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
