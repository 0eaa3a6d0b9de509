"""What follows from a record is redone until it is done; and hints are for keys that have something to run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from webordinary.adapters.sqlite.claims import SqliteClaims
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests, SqliteInterrupts, SqliteJobs
from webordinary.model.claims import Claim, ClaimStatus, StartedJob
from webordinary.model.errors import Transient
from webordinary.model.events import Event
from webordinary.model.jobs import DeferReason, Job, JobOutcome, JobResult, NewJob, Requeue, RequeueReason, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.pool import reconciler
from webordinary.pool.ports import QUEUED, Pool
from webordinary.pool.reconciler import Reconciler, Share, deliver_pending_callbacks, end_workflow
from webordinary.worker.claims import release

AMELIA_SCOTT = ProjectUser("amelia", "scott")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done"))


@dataclass
class Ears:
    """Everybody who is told something; `deaf` ones are not reached."""

    told: list[str] = field(default_factory=list)
    woken: list[str] = field(default_factory=list)
    deaf: bool = False

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        self.told.append(f"callback {output['jobId']}")
        return True

    def fail(self, token: str, error: str, cause: str) -> bool:
        self.told.append(f"callback {error}")
        return True

    def heartbeat(self, token: str) -> bool:
        return True

    def send(self, job: Job) -> None:
        if self.deaf:
            raise Transient("the queue is not reached")
        self.told.append(f"output {job.job_id}")

    def notify_owner(self, job: Job, news: str = QUEUED) -> None: ...

    def notify_unclaimed(self, key: ProjectUser | None = None) -> None:
        self.woken.append("unclaimed")

    def emit(self, event: Event) -> None: ...

    def is_dead(self, worker: str) -> bool:
        return False

    def end_survivors(self, worker: str, jobs: Collection[str] | None = None) -> None: ...


@pytest.fixture
def ears() -> Ears:
    return Ears()


@pytest.fixture
def pool(ears: Ears) -> Pool:
    db = MemoryDatabase()
    jobs = SqliteJobs(db)
    return Pool(
        jobs, jobs, SqliteClaims(db), SqliteClaimRequests(db), ears, SqliteInterrupts(db), ears, ears, outputs=ears
    )


def start(pool: Pool) -> StartedJob:
    pool.jobs.record(NewJob("a", AMELIA_SCOTT, "thread", "mail", Command.EDIT), NOON, ready=True)
    pool.jobs.bind_token("a", "token")
    started = pool.claims.claim_and_start(AMELIA_SCOTT, "container-1", NOON)
    assert isinstance(started, StartedJob)
    return started


def test_who_wants_to_hear_of_a_settled_job_is_told_after_its_workflow(pool: Pool, ears: Ears) -> None:
    pool.claims.end_and_take_next(start(pool), DONE, NOON, more=False)
    assert deliver_pending_callbacks(pool) == 1
    assert ears.told == ["callback a", "output a"]
    assert deliver_pending_callbacks(pool) == 0


def test_an_output_that_did_not_leave_is_owed(pool: Pool, ears: Ears) -> None:
    pool.claims.end_and_take_next(start(pool), DONE, NOON, more=False)
    ears.deaf = True
    with pytest.raises(Transient):
        deliver_pending_callbacks(pool)
    ears.deaf = False
    deliver_pending_callbacks(pool)
    assert ears.told[-1] == "output a"
    assert deliver_pending_callbacks(pool) == 0


def test_a_waiting_job_is_ended_although_nobody_can_be_told_yet(pool: Pool, ears: Ears) -> None:
    pool.jobs.record(NewJob("a", AMELIA_SCOTT, "thread", "mail", Command.EDIT), NOON, ready=True)
    pool.jobs.bind_token("a", "token")
    [job] = pool.jobs.open_jobs(AMELIA_SCOTT)
    ears.deaf = True
    assert (
        end_workflow(job, Settlement(JobOutcome.CANCELLED, JobResult("stopped")), pool, NOON).outcome
        is JobOutcome.CANCELLED
    )
    ears.deaf = False
    assert deliver_pending_callbacks(pool) == 1
    assert ears.told[-1] == "output a"


def test_the_end_of_a_job_that_waited_wakes_a_worker_for_those_behind_it(pool: Pool, ears: Ears) -> None:
    for name in ("a", "b"):
        pool.jobs.record(NewJob(name, AMELIA_SCOTT, "thread", f"mail {name}", Command.EDIT), NOON, ready=True)
    started = pool.claims.claim_and_start(AMELIA_SCOTT, "container-1", NOON)
    assert isinstance(started, StartedJob)
    held = Requeue(RequeueReason.HELD, NOON + 60 * MINUTE, DeferReason.PAUSE)
    assert pool.claims.end_and_take_next(started, held, NOON, more=False).started is None
    release(started.claim, pool, NOON)
    assert pool.claims.take_longest_waiting("container-1", NOON + MINUTE) is None, (
        "the first one holds the second one up"
    )
    [first, _] = pool.jobs.open_jobs(AMELIA_SCOTT)
    ears.woken.clear()
    end_workflow(first, Settlement(JobOutcome.CANCELLED, JobResult("stopped")), pool, NOON)
    assert ears.woken == ["unclaimed"]
    assert pool.claims.take_longest_waiting("container-1", NOON + MINUTE) is not None


def test_an_interrupted_job_has_no_output_yet(pool: Pool, ears: Ears) -> None:
    pool.claims.end_and_take_next(start(pool), Requeue(RequeueReason.INTERRUPTED), NOON, more=False)
    deliver_pending_callbacks(pool)
    assert ears.told == ["callback PREEMPTED"]


def test_without_outputs_nobody_is_told_and_nothing_is_owed(pool: Pool, ears: Ears) -> None:
    quiet = Pool(**{name: getattr(pool, name) for name in Pool.__slots__ if name != "outputs"})
    quiet.claims.end_and_take_next(start(quiet), DONE, NOON, more=False)
    deliver_pending_callbacks(quiet)
    assert (ears.told, deliver_pending_callbacks(quiet)) == (["callback a"], 0)


class Kept:
    """See PassProgress."""

    def __init__(self) -> None:
        self.said: list[ProjectUser | None] = [None]

    def after(self) -> ProjectUser | None:
        return self.said[-1]

    def passed(self, after: ProjectUser | None, now: datetime) -> None:
        self.said.append(after)


def lost_hints(pool: Pool, number: int) -> list[ProjectUser]:
    """So many keys with work of which no worker knows."""
    keys = [ProjectUser(f"p{each}", "scott") for each in range(number)]
    for key in keys:
        new = NewJob(f"j-{key.project_id}", key, "thread", f"mail-{key.project_id}", Command.EDIT)
        pool.jobs.record(new, NOON, ready=True)
        pool.hints.acknowledge(key)
    return keys


def test_a_bounded_pass_goes_on_where_the_last_one_ended_and_begins_again(
    pool: Pool, ears: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "_PAGE", 2)
    monkeypatch.setattr(reconciler, "MOST_KEYS", 4)
    keys = lost_hints(pool, 9)
    kept = Kept()
    passes = [Reconciler(pool, ears, progress=kept).run_once(NOON + n * 6 * MINUTE) for n in range(3)]
    assert passes == [4, 4, 1]
    assert kept.said[1:] == [keys[1], keys[3], keys[5], keys[7], None]


def test_a_pass_with_few_owners_sends_so_many_hints_and_leaves_the_other_keys_to_the_next(
    pool: Pool, ears: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hint costs much more than a look: after a night without workers the other chores would not get their turn."""
    monkeypatch.setattr(reconciler, "_PAGE", 4)
    monkeypatch.setattr(reconciler, "MOST_HINTS", 3)
    keys, kept = lost_hints(pool, 9), Kept()
    assert isinstance(pool.claims.claim_and_start(keys[1], "w1", NOON), StartedJob)
    now = NOON + MINUTE / 2  # its lease lasts
    assert [Reconciler(pool, ears, progress=kept).run_once(now) for _ in range(3)] == [3, 3, 2]
    assert kept.said[1:] == [keys[3], keys[6], None]


class ManyKeys:
    """As much of jobs and claims as a pass asks where every key has a living owner."""

    def __init__(self, number: int) -> None:
        self.keys = [ProjectUser(f"p{each:06}", "scott") for each in range(number)]
        self.seen: list[ProjectUser] = []

    def keys_to_look_at(self, after: ProjectUser | None, limit: int) -> Sequence[ProjectUser]:
        first = bisect_right(self.keys, after) if after else 0
        return self.keys[first : first + limit]

    def look_all(self, keys: Collection[ProjectUser]) -> Mapping[ProjectUser, Claim]:
        self.seen += keys
        return {key: Claim(key, "w1", 1, 1, ClaimStatus.HELD, NOON, NOON, NOON + MINUTE) for key in keys}


@pytest.mark.parametrize(("reconcilers", "minutes"), [(1, 2), (3, 1)])
def test_a_hundred_thousand_keys_are_each_looked_at_once_in_so_many_minutes(
    pool: Pool, ears: Ears, reconcilers: int, minutes: int
) -> None:
    many = ManyKeys(100_000)
    of_many = replace(pool, jobs=cast("Any", many), claims=cast("Any", many))
    for number in range(reconcilers):
        kept = Kept()
        share = Share(number, reconcilers)
        for minute in range(minutes):
            assert Reconciler(of_many, ears, progress=kept, share=share).run_once(NOON + minute * MINUTE / 2) == 0
        assert kept.after() == (None if reconcilers > 1 else many.keys[-1]), "its next pass begins with the first key"
    assert sorted(many.seen) == many.keys


def test_a_reconciler_of_several_hints_for_its_own_keys_alone(pool: Pool, ears: Ears) -> None:
    keys = lost_hints(pool, 30)
    sent = [Reconciler(pool, ears, share=Share(number, 3)).run_once(NOON) for number in range(3)]
    assert all(0 < hints < len(keys) for hints in sent)
    assert sum(sent) == len(keys)


def test_a_pass_that_is_cut_off_has_kept_its_place(pool: Pool, ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lambda ends a function after its time; the tail of the keys must be reached all the same."""
    monkeypatch.setattr(reconciler, "_PAGE", 2)
    lost_hints(pool, 4)
    kept = Kept()

    class CutOff:
        def after(self) -> ProjectUser | None:
            return kept.after()

        def passed(self, after: ProjectUser | None, now: datetime) -> None:
            kept.passed(after, now)
            raise Transient("out of time")

    with pytest.raises(Transient):
        Reconciler(pool, ears, progress=CutOff()).run_once(NOON)
    assert kept.after() == ProjectUser("p1", "scott")
    assert Reconciler(pool, ears, progress=kept).run_once(NOON) == 2


def test_a_job_that_waits_for_its_time_needs_no_worker_until_then(pool: Pool, ears: Ears) -> None:
    started = start(pool)
    pool.claims.end_and_take_next(started, Requeue(RequeueReason.HELD, NOON + 10 * MINUTE), NOON, more=False)
    release(started.claim, replace(pool, hints=SqliteClaimRequests(MemoryDatabase())), NOON)  # a hint that got lost
    passes = Reconciler(pool, ears)
    assert passes.run_once(NOON + 9 * MINUTE) == 0
    assert passes.run_once(NOON + 10 * MINUTE) == 1
    [hint] = pool.hints.receive(NOON, (), 10)
    assert hint.key == AMELIA_SCOTT


def test_a_worker_does_not_ask_who_owns_its_own_keys(pool: Pool, ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    start(pool)
    asked, look_all = list[ProjectUser](), pool.claims.look_all
    monkeypatch.setattr(pool.claims, "look_all", lambda keys: asked.extend(keys) or look_all(keys))
    Reconciler(pool, ears, lambda claim: False, {AMELIA_SCOTT}.__contains__).run_once(NOON)
    assert asked == []
    Reconciler(pool, ears, lambda claim: False).run_once(NOON)
    assert asked == [AMELIA_SCOTT]
