"""Mails that wait for days, in virtual time: each is done in the end, or lies where a person sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest

from tests.simulation.durable import Durable
from tests.simulation.faults import CALM
from tests.simulation.harness import SimulationHarness
from tests.simulation.process import EPOCH
from tests.simulation.scenario import Intervention, Letter, Manner, Scenario
from webordinary.jobs.run import NoLedger
from webordinary.mail.replies.compose import ANSWER, HELD
from webordinary.model.jobs import Job, JobOutcome
from webordinary.model.mail import Command
from webordinary.model.names import job_id_of
from webordinary.worker.ports import WorkerSettings

SCOTT = "scott@example.com"
HOUR, DAY = 3600.0, 24 * 3600.0
BEFORE_MIDNIGHT = 11 * HOUR + 55 * 60.0
"""The world begins at noon."""


def wishes(count: int = 1, at: float = 1.0) -> tuple[Letter, ...]:
    """One conversation of so many mails."""
    return tuple(
        Letter(number, SCOTT, at + number, Command.EDIT, number - 1 if number else None, 0, Manner.CHANGES, 1.0)
        for number in range(count)
    )


def play(
    letters: tuple[Letter, ...],
    *interventions: Intervention,
    workers: int = 1,
    until: float = 0.0,
    switch: Callable[[Durable], object] = lambda durable: None,
) -> SimulationHarness:
    settings = WorkerSettings(slots=1, job_limit=3600.0, reconcile=300.0)
    last = Intervention(until, "employ", workers)
    world = SimulationHarness(
        Scenario(1, "calm", CALM, workers, True, settings, letters, (*interventions, last)), switch
    )
    broken = world.run()
    assert broken is None, str(broken)
    return world


def job_of(world: SimulationHarness, letter: Letter) -> Job:
    return world.durable.state.jobs[job_id_of(world.customers.email_id(letter))]


def told(world: SimulationHarness, letter: Letter) -> list[str]:
    email_id = world.customers.email_id(letter)
    return [reply.kind for reply in world.durable.sent.replies.values() if reply.email_id == email_id]


def test_mails_of_a_site_that_is_paused_for_weeks_are_done_when_it_goes_on() -> None:
    letters = wishes(2)
    world = play(letters, Intervention(0.0, "pause", 0), Intervention(8 * DAY, "resume", 0))
    assert [job_of(world, letter).outcome for letter in letters] == [JobOutcome.SUCCEEDED] * 2
    assert [told(world, letter) for letter in letters] == [[HELD, ANSWER], [ANSWER]], "the second waits for the first"
    assert world.durable.dead_letters.all(10) == []
    assert world.durable.state.interruptions() == set()


def test_a_mail_that_no_worker_came_for_in_a_week_lies_where_a_person_sees_it() -> None:
    [letter] = wishes()
    world = play((letter,), workers=0, until=8 * DAY)
    assert job_of(world, letter).outcome is JobOutcome.DEAD
    [given_up] = world.durable.dead_letters.all(10)
    assert given_up.reason == "States.Timeout: it was not done in the time that it may wait"
    assert told(world, letter) == [ANSWER]


class Costly(NoLedger):
    """A project that has used up what it may cost on the first day."""

    def on_day(self, project_id: str, day: date) -> float:
        return 1.0 if day == EPOCH.date() else 0.0


def capped(durable: Durable) -> None:
    durable.ledger = Costly()
    for project in durable.directory.projects():
        durable.directory.add_project(replace(project, daily_cap_usd=0.5), EPOCH)


@pytest.mark.parametrize("at", [1.0, BEFORE_MIDNIGHT], ids=["at noon", "shortly before midnight"])
def test_a_mail_that_the_daily_cap_holds_is_told_so_and_runs_the_next_day(at: float) -> None:
    [letter] = wishes(at=at)
    world = play((letter,), until=DAY, switch=capped)
    job = job_of(world, letter)
    assert job.started_at
    assert (job.outcome, job.started_at.day) == (JobOutcome.SUCCEEDED, EPOCH.day + 1)
    assert told(world, letter) == [HELD, ANSWER]
    assert world.durable.state.interruptions() == set(), "nobody interrupted it"


def deaf_to_resuming(durable: Durable) -> None:
    durable.jobs.let_go = lambda project_id: []  # type: ignore[method-assign]


def test_a_held_job_finds_by_itself_that_its_site_goes_on() -> None:
    [letter] = wishes()
    pauses = (Intervention(0.0, "pause", 0), Intervention(60.0, "resume", 0))
    world = play((letter,), *pauses, until=HOUR, switch=deaf_to_resuming)
    job = job_of(world, letter)
    assert job.started_at
    assert (job.outcome, (job.started_at - EPOCH).total_seconds() < 600) == (JobOutcome.SUCCEEDED, True)


def test_mails_that_are_under_way_when_everything_goes_down_for_eight_days_are_done_afterwards() -> None:
    letters = wishes(2)
    world = play(letters, Intervention(1.5, "down", 8))
    assert [job_of(world, letter).outcome for letter in letters] == [JobOutcome.SUCCEEDED] * 2
    assert [told(world, letter) for letter in letters] == [[ANSWER], [ANSWER]]
    assert world.durable.dead_letters.all(10) == []


def test_a_mail_whose_workflow_was_stopped_while_everything_went_down_is_answered_and_seen() -> None:
    [letter] = wishes()
    world = play((letter,), Intervention(1.2, "stop execution", 0), Intervention(1.25, "down", 1))
    assert told(world, letter) == [ANSWER]
    [given_up] = world.durable.dead_letters.all(10)
    assert given_up.email_id == world.customers.email_id(letter)


def test_a_clock_that_jumps_forty_days_ahead_and_back_gives_nothing_up() -> None:
    letters = wishes(2)
    world = play(letters, Intervention(1.5, "clock", 40), Intervention(200.0, "clock", 0))
    assert [job_of(world, letter).outcome for letter in letters] == [JobOutcome.SUCCEEDED] * 2
    assert world.durable.dead_letters.all(10) == []
