"""Services in this process."""

import pytest

from kernling.serve.service import Service
from kernling.serve.settings import Settings

QUICK = Settings(first_rows=20, snapshot_seconds=3600.0)


@pytest.fixture
def start(tmp_path):
    """Start services in one folder, one after another; those that run in the end are stopped."""
    started = []

    def begin(settings=QUICK):
        started.append(Service(tmp_path / "service", settings))
        return started[-1]

    yield begin
    for service in started:
        if service.is_running:
            service.stop()
