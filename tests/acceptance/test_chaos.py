"""Whatever happens to the processes, every accepted mail is answered once and every change published once."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.acceptance.chaos import STOPPED, Chaos
from tests.acceptance.chaos_verdict import problems

SECONDS = float(os.environ.get("CHAOS_SECONDS", "60"))
SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))


@pytest.mark.timeout(SECONDS + 600)
def test_workers_killed_frozen_and_stopped_at_random_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    chaos = Chaos(tmp_path / "house", SEED)
    try:
        chaos.run(SECONDS)
        wrong = problems(chaos.harness, chaos.customers.promises, chaos.postbox.read())
        assert not wrong, "\n".join([f"CHAOS_SEED={SEED}, {chaos.progress()}", *wrong[:20]])
        assert set(chaos.harness.close()) <= set(STOPPED)
    finally:
        chaos.harness.raze()
