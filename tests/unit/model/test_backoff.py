"""Backoff: exponential delays with a cap and jitter."""

from __future__ import annotations

import random

from webordinary.model.errors import Backoff


def test_delays_grow_by_the_factor_up_to_the_cap() -> None:
    backoff = Backoff(1.0, factor=3.0, cap=20.0, jitter=0.0)
    assert [backoff.delay(attempt, random.Random(1)) for attempt in range(5)] == [1.0, 3.0, 9.0, 20.0, 20.0]


def test_jitter_is_the_random_share_of_a_delay() -> None:
    rng = random.Random(1)
    delays = [Backoff(8.0, jitter=0.25).delay(0, rng) for _ in range(200)]
    assert 6.0 <= min(delays) < 6.2
    assert 7.8 < max(delays) <= 8.0


def test_a_very_late_attempt_waits_as_long_as_the_cap() -> None:
    assert Backoff(1.0, cap=30.0, jitter=0.0).delay(100_000, random.Random(1)) == 30.0
