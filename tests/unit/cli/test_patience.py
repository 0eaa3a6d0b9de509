"""Nobody is ended by the process above it while it stops in good order."""

from __future__ import annotations

import pytest

from webordinary.compose.worker import SAVING_SECONDS
from webordinary.config import Config
from webordinary.entrypoints import lifecycle


@pytest.mark.parametrize("backend", ["embedded", "aws"])
@pytest.mark.parametrize("grace", [0.1, 10.0, 300.0])
def test_each_waits_longer_than_those_below_may_need(backend: str, grace: float) -> None:
    config = Config(backend=backend, interrupt_grace_seconds=grace)
    saving = grace + SAVING_SECONDS
    assert (
        saving
        < lifecycle.worker_stop_seconds(config)
        < lifecycle.supervisor_stop_seconds(config)
        < lifecycle.up_stop_seconds(config)
    )
