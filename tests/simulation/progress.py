"""What must happen in the end, and how long it may take: nobody starves, nothing is stuck, nothing is dropped."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.fakes.repositories import LIVE, MAIN
from tests.simulation.process import EPOCH, Process
from tests.simulation.scenario import Letter, Manner
from tests.simulation.scheduler import Broken
from webordinary.asl.ports import Status
from webordinary.jobs.site_files import Stage
from webordinary.mail.replies.compose import HELD
from webordinary.model.claims import Claim, ClaimStatus
from webordinary.model.jobs import Job, JobOutcome, JobState
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser, job_id_of

if TYPE_CHECKING:
    from tests.simulation.harness import SimulationHarness

CALM_TIMEOUT_SECONDS = 1.0
SLOW_TIMEOUT_SECONDS = 120.0
TIMEOUT_SECONDS = 240.0
"""After a fault: a lease runs out, a hint is sent, another lease is watched, a breaker pauses."""
FORGOTTEN_SECONDS = 75.0
"""Two looks of the lease keeper, a breaker's pause, and slow calls."""
_LOOK_SECONDS = 0.2
_ENDED_WELL = {
    Manner.CHANGES: JobOutcome.SUCCEEDED,
    Manner.PUBLISHES: JobOutcome.SUCCEEDED,
    Manner.ANSWERS: JobOutcome.SUCCEEDED,
    Manner.TRANSIENT: JobOutcome.DEAD,
    Manner.PERMANENT: JobOutcome.DEAD,
    Manner.SURPRISE: JobOutcome.DEAD,
}


class SimulationProgress:
    """Watches one world's work get done."""

    def __init__(self, world: SimulationHarness) -> None:
        self._world, self._durable = world, world.durable
        self._waiting_since: dict[ProjectUser, float] = {}
        self._forgotten_since: dict[tuple[ProjectUser, int], float] = {}
        self._offered: dict[ProjectUser, Process] = {}
        self._refused_since: dict[tuple[ProjectUser, str], float] = {}
        self._look_at = 0.0

    # -- nobody starves -------------------------------------------------------------------------------

    def nobody_starves(self, to: float) -> None:
        """No worker idles while a key has work that nobody does; judged whenever all is quiet."""
        now = self._world.scheduler.now
        if to < self._look_at:
            return
        self._look_at = to + _LOOK_SECONDS
        self.no_claim_is_forgotten(to)
        idle = set(self._free_workers())
        starving = {key for key in self._keys_with_work() if self._could_be_served(key, idle)}
        self._no_key_waits_for_one_worker(starving, idle, to)
        self._waiting_since = {key: self._waiting_since.get(key, now) for key in starving}
        for key, since in self._waiting_since.items():
            if to > self._patient_until(key, since):
                raise Broken(f"{key} has had work since {since:.1f}, and {', '.join(sorted(idle))} idle")

    # -- no key waits for one worker --------------------------------------------------------------------

    def offered(self, key: ProjectUser, by: Process) -> None:
        """This process has woken one worker, or all, for a key that waits."""
        self._offered[key] = by

    def _no_key_waits_for_one_worker(self, starving: set[ProjectUser], idle: set[str], to: float) -> None:
        """Where messages arrive, a free worker takes an offered key in a moment, though other workers are frozen."""
        climate, now = self._world.scenario.climate, self._world.scheduler.now
        hinted = {request.key for request, _ in self._durable.state.hints()}
        self._offered = {key: by for key, by in self._offered.items() if key in hinted & starving}
        awake = {key for key, by in self._offered.items() if by.awake and not self._is_held(key)}
        refused = {(key, worker) for key in awake for worker in idle}
        self._refused_since = {offer: self._refused_since.get(offer, now) for offer in refused}
        if climate.lose or climate.crash or climate.trouble or climate.slow:
            return
        for (key, worker), since in self._refused_since.items():
            if to > since + CALM_TIMEOUT_SECONDS:
                raise Broken(f"{key} was offered, and {worker} has been free since {since:.1f} and did not take it")

    def _is_held(self, key: ProjectUser) -> bool:
        claim = self._durable.state.claims.get(key)
        return claim is not None and claim.status is ClaimStatus.HELD

    # -- every claim is served, or ends -----------------------------------------------------------------

    def no_claim_is_forgotten(self, to: float) -> None:
        """No key is held for longer than a lease and a bound by a living worker that does not serve it."""
        now, struck = self._world.scheduler.now, self._world.weather.last_strike or 0.0
        forgotten = {(claim.key, claim.fence): claim.worker for claim in self._forgotten()}
        self._forgotten_since = {claim: self._forgotten_since.get(claim, now) for claim in forgotten}
        for (key, fence), since in self._forgotten_since.items():
            if to > max(since, struck) + self._world.scenario.settings.lease + FORGOTTEN_SECONDS:
                raise Broken(f"{key} is held under fence {fence} by {forgotten[key, fence]}, which does not serve it")

    def _forgotten(self) -> Iterable[Claim]:
        for claim in self._durable.state.claims.values():
            owner = self._world.employed[claim.worker]
            if claim.status is ClaimStatus.HELD and owner.process.awake and not owner.worker.knows(claim):
                yield claim

    def _patient_until(self, key: ProjectUser, since: float) -> float:
        struck, reconcile = self._world.weather.last_strike, self._world.scenario.settings.reconcile
        if struck is not None:
            return max(since, struck) + TIMEOUT_SECONDS + reconcile
        slow = SLOW_TIMEOUT_SECONDS if self._world.scenario.climate.slow else 0.0
        jobs = [job for job in self._durable.state.jobs.values() if job.key == key and job.open]
        backed_off = any(job.attempts or job.held for job in jobs)
        # Nobody holds a key only because a job of it backs off: the reconciler finds it when it is due.
        return since + CALM_TIMEOUT_SECONDS + slow + (reconcile if backed_off else 0.0)

    def _free_workers(self) -> Iterable[str]:
        slots = self._world.scenario.settings.slots
        for employed in self._world.working():
            if not employed.stopping and self._running_of(employed.process.name) < slots:
                yield employed.process.name

    def _running_of(self, worker: str) -> int:
        claims = self._durable.state.claims
        return sum(
            job.state is JobState.RUNNING and job.worker == worker and claims[job.key].fence == job.fence
            for job in self._durable.state.jobs.values()
        )

    def _keys_with_work(self) -> set[ProjectUser]:
        jobs = [job for job in self._durable.state.jobs.values() if job.open]
        return {job.key for job in jobs if self._ready(job, jobs)}

    def _ready(self, job: Job, jobs: list[Job]) -> bool:
        latest_now = EPOCH + timedelta(seconds=self._world.scheduler.now - self._world.scenario.climate.skew)
        due = job.not_before is None or job.not_before <= latest_now
        waits = job.state is JobState.QUEUED and due
        orphaned = job.state is JobState.RUNNING and not self._served(job)
        behind = any(o.thread_id == job.thread_id and o.thread_order < job.thread_order for o in jobs)
        return (waits or orphaned) and not behind

    def _served(self, job: Job) -> bool:
        claim = self._durable.state.claims.get(job.key)
        owner = self._world.employed.get(job.worker or "")
        return bool(claim and claim.fence == job.fence and owner and owner.process.alive)

    def _could_be_served(self, key: ProjectUser, idle: set[str]) -> bool:
        claim = self._durable.state.claims.get(key)
        if claim is None or claim.status is not ClaimStatus.HELD:
            return bool(idle)
        owner = self._world.employed[claim.worker].process
        busy = any(
            job.state is JobState.RUNNING and job.key == key and self._served(job)
            for job in self._durable.state.jobs.values()
        )
        if busy:
            return False
        return claim.worker in idle if owner.awake else bool(idle)

    # -- everything comes to rest -----------------------------------------------------------------------

    @property
    def at_rest(self) -> bool:
        """Every letter was taken, and nothing is left to do for any of them."""
        return self._world.customers.all_written and not self._left_over()

    def _left_over(self) -> str:
        """What is still to be done, in words; empty when nothing is."""
        for job in self._durable.state.jobs.values():
            if job.open:
                return f"{job.job_id} is still {job.state}"
        if pending := self._durable.jobs.pending(1):
            return f"the workflow of {pending[0].job_id} was never told of its end"
        for email_id in self._world.customers.accepted:
            stored = self._durable.executions.load(email_id)
            if stored is None or stored.execution.status is Status.RUNNING:
                return f"the workflow of {email_id} does not end"
            if any(entry.sent_at is None and not entry.given_up for entry in self._durable.outbox.of(email_id)):
                return f"the reply to {email_id} was never sent"
        return ""

    # -- the end ----------------------------------------------------------------------------------------

    def check_the_end(self) -> None:
        """After the faults everything settles, and every mail has had what it was promised."""
        if not self._world.customers.all_written:
            raise Broken("a letter was never taken")
        if left := self._left_over():
            raise Broken(f"stuck: {left}")
        for email_id, letter in self._world.customers.accepted.items():
            self._mail_was_answered(email_id)
            if job := self._durable.state.jobs.get(job_id_of(email_id)):
                self._job_kept_its_word(job, letter)
        for project_id in self._durable.origins:
            self._site_shows_main(project_id)

    def _mail_was_answered(self, email_id: str) -> None:
        sent = [reply for reply in self._durable.sent.replies.values() if reply.email_id == email_id]
        replies = [reply for reply in sent if reply.kind != HELD]
        stored = self._durable.executions.load(email_id)
        assert stored is not None
        if len(sent) - len(replies) > 1:
            raise Broken(f"{email_id} was told {len(sent) - len(replies)} times that it has to wait")
        if len(replies) > 1:
            raise Broken(f"{email_id} was answered {len(replies)} times")
        if stored.execution.status is Status.SUCCEEDED and not replies:
            raise Broken(f"{email_id} ended without a reply")
        if not replies and not self._is_seen(email_id):
            raise Broken(f"{email_id} ended as {stored.execution.status} and no person sees it")

    def _is_seen(self, email_id: str) -> bool:
        return any(letter.email_id == email_id for letter in self._durable.dead_letters.all(1000))

    def _job_kept_its_word(self, job: Job, letter: Letter) -> None:
        changes = self._changes_on_main(job)
        answered = letter.manner in (Manner.ANSWERS, Manner.UNDOES)
        expects_change = letter.command is Command.EDIT and not answered
        if job.outcome is JobOutcome.SUCCEEDED and expects_change and changes != 1:
            raise Broken(f"{job.job_id} succeeded and has {changes} changes on main")
        if job.outcome not in (JobOutcome.SUCCEEDED, JobOutcome.DEAD) and (changes or self._is_on_live(job)):
            raise Broken(f"{job.job_id} is {job.outcome}, and yet its change is on main or live")
        error = (job.result and job.result.error) or ""
        if job.outcome is JobOutcome.DEAD and "States.Timeout" in error and self._world.scenario.workers:
            raise Broken(f"{job.job_id} was given up for its waiting: {error}")
        if job.outcome is JobOutcome.DEAD and "without ending" in error and changes:
            raise Broken(f"{job.job_id} was given up after a look at main, and its change is there")
        if job.outcome is JobOutcome.DEAD and not self._is_seen(job.email_id):
            raise Broken(f"{job.job_id} is dead and no person sees it")
        given_up = self._is_seen(job.email_id)  # as of a workflow that was ended from outside, which does no more
        if job.interruptions and not given_up and not self._is_on_record(job):
            raise Broken(f"{job.job_id} was interrupted {job.interruptions} times, and the last is not on record")
        if not self._world.scenario.calm or job.command is not Command.EDIT or self._was_stopped(letter):
            return
        expected = _ENDED_WELL.get(letter.manner)
        if expected and job.outcome is not expected:
            raise Broken(f"nothing went wrong, and yet {job.job_id} is {job.outcome}: {job.result}")

    def _is_on_record(self, job: Job) -> bool:
        return (job.job_id, job.interruptions) in self._durable.state.interruptions()

    def _was_stopped(self, letter: Letter) -> bool:
        letters = self._world.scenario.letters
        deadly = any(one.manner is Manner.DEADLY for one in letters)
        return deadly or any(one.command is Command.STOP for one in letters)

    def _changes_on_main(self, job: Job) -> int:
        origin = self._durable.origins[job.key.project_id]
        return sum(commit.note.job_id == job.job_id for commit in origin.history(origin.refs[MAIN]))

    def _is_on_live(self, job: Job) -> bool:
        origin = self._durable.origins[job.key.project_id]
        return any(commit.note.job_id == job.job_id for commit in origin.history(origin.refs.get(LIVE, "")))

    def _site_shows_main(self, project_id: str) -> None:
        origin = self._durable.origins[project_id]
        site = self._durable.releases.sites.get((project_id, Stage.EDIT))
        jobs = [commit.note.job_id for commit in origin.history(origin.refs[MAIN]) if commit.note.job_id]
        unfinished = any(self._durable.state.jobs[job_id].outcome is JobOutcome.DEAD for job_id in jobs)
        if jobs and not unfinished and not (site and site.shown and site.shown[1] == origin.refs[MAIN]):
            raise Broken(f"the edit site of {project_id} does not show main, {origin.refs[MAIN]}")
