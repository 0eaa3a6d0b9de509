"""Demand: a seed makes a day, and the day looks like people's."""

from __future__ import annotations

import statistics
from collections import Counter
from itertools import pairwise

import pytest

from webordinary.operations.capacity.demand import DAY_SECONDS, LONGEST_JOB, Demand, OutOfBounds, mails_of

A_DAY = Demand(projects=200, mails=4000, seed=7)


def test_the_same_seed_makes_the_same_day_and_another_seed_another() -> None:
    assert mails_of(A_DAY) == mails_of(A_DAY)
    assert mails_of(A_DAY) != mails_of(Demand(projects=200, mails=4000, seed=8))


def test_every_mail_comes_in_order_within_the_day() -> None:
    mails = mails_of(A_DAY)
    assert len(mails) == 4000
    assert all(before.at <= after.at for before, after in pairwise(mails))
    assert mails[0].at >= 0
    assert mails[-1].at < DAY_SECONDS


@pytest.mark.slow
def test_a_business_day_has_its_peak_in_business_hours_and_a_flat_one_has_none() -> None:
    def mails_by_hour(curve: str) -> Counter[int]:
        return Counter(int(mail.at // 3600) for mail in mails_of(Demand(5000, 24_000, curve=curve)))

    business, flat = mails_by_hour("business"), mails_by_hour("flat")
    assert 9 <= max(business, key=lambda hour: business[hour]) <= 16
    assert business[10] > 10 * business[3]
    assert max(flat.values()) < 1.3 * min(flat.values())


def test_a_few_projects_write_much_and_none_writes_more_than_people_can() -> None:
    by_project = Counter(mail.key.project_id for mail in mails_of(Demand(1000, 5000)))
    ranked = [count for _, count in by_project.most_common()]
    assert sum(ranked[: len(ranked) // 10]) > 2 * sum(ranked[-len(ranked) // 10 :])
    assert ranked[0] < 100


def test_projects_have_several_users() -> None:
    users = Counter(key.project_id for key in {mail.key for mail in mails_of(Demand(50, 5000, job_seconds=10))})
    assert 1.5 < statistics.mean(users.values()) < 2.5
    assert all(mail.key.user_id == "user0" for mail in mails_of(Demand(50, 100, users_per_project=1.0)))


def test_jobs_have_the_mean_that_was_asked_for_and_most_are_shorter() -> None:
    seconds = [mail.seconds for mail in mails_of(Demand(5000, 20_000, job_seconds=200))]
    assert statistics.mean(seconds) == pytest.approx(200, rel=0.05)
    assert statistics.median(seconds) < 170
    assert max(seconds) <= LONGEST_JOB


def test_without_spread_all_jobs_take_the_same_time() -> None:
    assert {round(mail.seconds, 6) for mail in mails_of(Demand(10, 50, job_seconds=60, job_spread=0))} == {60.0}


def test_a_conversation_belongs_to_one_writer() -> None:
    threads: dict[str, set[object]] = {}
    for mail in mails_of(A_DAY):
        threads.setdefault(mail.thread_id, set()).add(mail.key)
    assert all(len(keys) == 1 for keys in threads.values())
    assert len(threads) < 4000


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"projects": 0}, "projects 0: use 1 to"),
        ({"mails": 10**9}, "mails a day"),
        ({"job_seconds": float("nan")}, "seconds of a job"),
        ({"job_spread": -1.0}, "spread"),
        ({"users_per_project": 0.5}, "users"),
        ({"curve": "sunday"}, "use business or flat"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_words(asked: dict[str, object], words: str) -> None:
    with pytest.raises(OutOfBounds, match=words):
        Demand(**{"projects": 10, "mails": 10, **asked})  # type: ignore[arg-type]


def test_a_person_who_writes_more_than_a_day_of_work_is_refused_since_no_worker_could_help() -> None:
    with pytest.raises(OutOfBounds, match="one after another"):
        mails_of(Demand(projects=1, mails=2000, users_per_project=1.0))
