"""Finding the fewest workers."""

from __future__ import annotations

import random

import pytest

from webordinary.model.names import ProjectUser
from webordinary.operations.capacity.demand import Mail
from webordinary.operations.capacity.forecast import fewest, first_guess, plain_waits

SCOTT = ProjectUser("amelia", "scott")


@pytest.mark.parametrize("seed", range(50))
def test_the_smallest_number_is_found_from_any_guess_and_none_is_tried_twice(seed: int) -> None:
    rng, tried = random.Random(seed), list[int]()
    most = rng.choice((1, 2, 50, 10_000))
    needed, guess = rng.randint(1, most), rng.randint(1, most)

    def enough(workers: int) -> bool:
        tried.append(workers)
        return workers >= needed

    assert fewest(enough, guess, most) == needed
    assert len(set(tried)) == len(tried)
    assert all(1 <= workers <= most for workers in tried)


def test_a_good_guess_needs_two_trials() -> None:
    tried = []

    def enough(workers: int) -> bool:
        tried.append(workers)
        return workers >= 96

    assert fewest(enough, 96) == 96
    assert tried == [96, 95]


def test_where_not_even_the_most_are_enough_there_is_no_answer() -> None:
    assert fewest(lambda workers: False, 3, most=20) is None


def test_a_plain_queue_serves_the_oldest_with_whatever_is_free() -> None:
    mails = [Mail(n, at, SCOTT, "t", 10.0) for n, at in enumerate((0.0, 1.0, 2.0, 30.0))]
    assert plain_waits(mails, 1) == [0.0, 9.0, 18.0, 0.0]
    assert plain_waits(mails, 2) == [0.0, 0.0, 8.0, 0.0]
    assert first_guess(mails, slots=1, share=1.0, seconds=8.0) == 2
    assert first_guess(mails, slots=4, share=1.0, seconds=0.0) == 1
