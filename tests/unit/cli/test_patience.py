"""Nobody is ended by the process above it while it stops in good order."""

from __future__ import annotations

import pytest

from webordinary.app.working import SAVING_SECONDS
from webordinary.config import Config
from webordinary.entrypoints import patience


@pytest.mark.parametrize("backend", ["embedded", "aws"])
@pytest.mark.parametrize("grace", [0.1, 10.0, 300.0])
def test_each_waits_longer_than_those_below_may_need(backend: str, grace: float) -> None:
    config = Config(backend=backend, interrupt_grace_seconds=grace)
    saving = grace + SAVING_SECONDS
    assert saving < patience.of_worker(config) < patience.of_supervisor(config) < patience.of_up(config)
