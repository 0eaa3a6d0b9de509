"""Three workers and a network that loses a tenth of everything: no job is lost, done twice or out of order."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from tests.aws.emulator import RunningEmulator
from tests.aws.faulty_proxy import BROKEN, CONFLICT, DROP_REQUEST, DROP_RESPONSE, FaultyProxy
from tests.aws.pool_tables import PoolTables
from webordinary.adapters.aws.pool.claims import AwsClaims
from webordinary.model.claims import Claim, FinishResult, StartedJob
from webordinary.model.errors import ClaimLost, Transient
from webordinary.model.jobs import JobEnd, JobOutcome, JobResult, NewJob, Requeue, RequeueReason, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

KEYS = [ProjectUser("amelia", "scott"), ProjectUser("bakery", "ann")]
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
RATES = {DROP_REQUEST: 0.05, DROP_RESPONSE: 0.1, BROKEN: 0.03, CONFLICT: 0.03}
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done"))
JOBS_OF_A_KEY = 5
MOST_STEPS = 300


@dataclass
class FenceHistory:
    """What all workers were told, in the order in which it happened."""

    truth: AwsClaims
    fences: defaultdict[ProjectUser, list[int]] = field(default_factory=lambda: defaultdict(list))
    settled: list[str] = field(default_factory=list)

    def began(self, started: StartedJob) -> None:
        """Whoever is told that a job is his holds the key, under the highest fence that anybody heard of."""
        known = self.fences[started.claim.key]
        assert started.claim.fence >= max(known, default=0)
        known.append(started.claim.fence)
        held = self.truth.look(started.claim.key)
        assert held
        assert (held.worker, held.fence) == (started.claim.worker, started.claim.fence)


@dataclass
class FaultyWorker:
    """As the real one reacts: it repeats an ending, forgets a claim it heard nothing of, watches a foreign one."""

    name: str
    claims: AwsClaims
    history: FenceHistory
    rng: random.Random
    running: StartedJob | None = None
    ending: JobEnd = DONE
    seen: Claim | None = None

    def step(self, now: datetime) -> None:
        try:
            if self.running:
                self._end(self.running, now)
            else:
                self._claim(self.rng.choice(KEYS), now)
        except Transient:
            pass
        except ClaimLost:
            self.running = None

    def die(self) -> None:
        """And be another process, that knows nothing."""
        self.name, self.running, self.seen = f"{self.name}x", None, None

    def _claim(self, key: ProjectUser, now: datetime) -> None:
        over = self.seen if self.seen and self.seen.key == key else None
        taken = self.claims.claim_and_start(key, self.name, now, over)
        self.seen = taken if isinstance(taken, Claim) else None
        if isinstance(taken, StartedJob):
            self._begin(taken)

    def _begin(self, started: StartedJob) -> None:
        self.history.began(started)
        self.running = started
        requeued = Requeue(RequeueReason.INTERRUPTED), Requeue(RequeueReason.STOPPED)
        endings: list[Settlement | Requeue] = [DONE, DONE, DONE, *requeued]
        self.ending = self.rng.choice(endings)

    def _end(self, started: StartedJob, now: datetime) -> None:
        turn: FinishResult = self.claims.end_and_take_next(started, self.ending, now, more=True)
        if isinstance(self.ending, Settlement):
            self.history.settled.append(started.job.job_id)
        self.running = None
        if turn.started:
            self._begin(turn.started)
        elif turn.kept and self.claims.begin_release(turn.kept):
            self.claims.end_release(turn.kept)


@pytest.mark.parametrize("seed", range(3))
def test_every_job_is_settled_once_under_the_highest_fence_and_threads_keep_their_order(
    ministack: RunningEmulator, proxy: FaultyProxy, seed: int
) -> None:
    calm = PoolTables(ministack.endpoint)
    for key in KEYS:
        for number in range(JOBS_OF_A_KEY):
            new = NewJob(f"{key}-{number}", key, f"thread-{number % 2}", "mail", Command.EDIT)
            calm.jobs().record(new, NOON, ready=True)
    rng, history = random.Random(seed), FenceHistory(calm.claims())
    workers = [FaultyWorker(f"w{n}", calm.through(proxy.endpoint).claims(), history, rng) for n in range(3)]
    proxy.at_random(seed, RATES)
    try:
        for number in range(MOST_STEPS):
            worker = rng.choice(workers)
            worker.die() if rng.random() < 0.03 else worker.step(NOON + number * timedelta(seconds=1))
            if not calm.jobs().keys_to_look_at(None, 1):
                break
    finally:
        proxy.calm()
    for key in KEYS:
        assert calm.jobs().open_jobs(key) == []
        jobs = [calm.jobs().get(f"{key}-{number}") for number in range(JOBS_OF_A_KEY)]
        ends = [job.settled_at for job in jobs if job and job.settled_at]
        assert ends[0::2] == sorted(ends[0::2])
        assert ends[1::2] == sorted(ends[1::2])
    assert len(history.settled) == len(set(history.settled))
