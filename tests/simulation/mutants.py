"""Wrapped adapters, each with one safeguard switched off: the simulation must notice every one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

from tests.fakes.any_port import AnyPort
from tests.fakes.repositories import MemoryOrigin, Seen
from tests.harness.pool_records import PoolRecords
from tests.simulation.durable import Durable
from tests.simulation.process import Port
from webordinary.adapters.git.workspaces import FenceMark
from webordinary.jobs.site_files import Release
from webordinary.jobs.source import Workspace
from webordinary.model.claims import Claim, FinishResult, StartedJob
from webordinary.model.errors import ClaimLost
from webordinary.model.jobs import Job, JobEnd, JobState, Requeue, RequeueReason, Settlement
from webordinary.model.names import ProjectUser
from webordinary.worker.claims import ClaimSet
from webordinary.worker.slot import Slot
from webordinary.worker.worker import Worker


class Wrapped(AnyPort):
    """All that is not said otherwise goes to the adapter inside."""

    def __init__(self, inside: object) -> None:
        self.inside: Any = inside

    def __getattr__(self, name: str) -> object:
        return getattr(self.inside, name)


class UnfencedSettling(Wrapped):
    """A worker that lost its claim settles all the same."""

    def __init__(self, inside: object, state: PoolRecords) -> None:
        super().__init__(inside)
        self._state = state

    def end_and_take_next(self, started: StartedJob, ending: JobEnd, now: datetime, *, more: bool) -> FinishResult:
        try:
            return self.inside.end_and_take_next(started, ending, now, more=more)
        except ClaimLost:
            job = self._state.jobs[started.job.job_id]
            if isinstance(ending, Settlement):
                self._state.put(
                    job._replace(state=JobState.SETTLED, outcome=ending.outcome, result=ending.result, settled_at=now)
                )
            raise


@dataclass
class UnfencedOrigin:
    """Nobody looks at the fence marks of a push."""

    inside: MemoryOrigin

    def read(self) -> Seen:
        return Seen(self.inside.read().refs, {})

    def push(self, moves: Mapping[str, str], marks: Mapping[str, FenceMark], seen: Seen) -> bool:
        if any(self.inside.refs.get(ref) != seen.refs.get(ref) for ref in moves):
            return False
        self.inside.accept(moves, marks)
        return True


class UnfencedPointer(Wrapped):
    """Whoever points last is shown."""

    def activate(self, release: Release, fence: int, check: Callable[[], None]) -> bool:
        site = self.inside.sites[release.project_id, release.stage]
        highest = site.shown[0] if site.shown else 0
        return self.inside.activate(release, max(fence, highest), check)


class AnyTokenPays(Wrapped):
    """Telling an old token counts as telling the new one."""

    def __init__(self, inside: object, state: PoolRecords) -> None:
        super().__init__(inside)
        self._conn = state.db.conn
        self._told: set[str] = set()

    def mark_delivered(self, job_id: str, token: str) -> None:
        self.inside.mark_delivered(job_id, token)
        self._told.add(job_id)
        self._tell(job_id)

    def bind_token(self, job_id: str, token: str) -> Job:
        job = self.inside.bind_token(job_id, token)
        self._tell(job_id)
        return job

    def _tell(self, job_id: str) -> None:
        if job_id in self._told:
            self._conn.execute("UPDATE jobs SET called_back = 1 WHERE job_id = ?", (job_id,))


class NothingToReconcile(Wrapped):
    """The reconciler finds neither open jobs nor pending callbacks."""

    def keys_to_look_at(self, after: ProjectUser | None, limit: int) -> Sequence[ProjectUser]:
        return ()

    def pending(self, limit: int) -> Sequence[Job]:
        return ()


class BlindRelease:
    """Who releases a key does not see what came in meanwhile."""

    def __init__(self, durable: Durable) -> None:
        self._releasing: set[ProjectUser] = set()
        durable.claims = _ReleasingClaims(durable.claims, self._releasing)
        durable.jobs = _UnseenJobs(durable.jobs, self._releasing)


class _ReleasingClaims(Wrapped):
    def __init__(self, inside: object, releasing: set[ProjectUser]) -> None:
        super().__init__(inside)
        self._releasing = releasing

    def begin_release(self, claim: Claim) -> bool:
        self._releasing.add(claim.key)
        return self.inside.begin_release(claim)

    def end_release(self, claim: Claim) -> None:
        self._releasing.discard(claim.key)
        self.inside.end_release(claim)


class _UnseenJobs(Wrapped):
    def __init__(self, inside: object, releasing: set[ProjectUser]) -> None:
        super().__init__(inside)
        self._releasing = releasing

    def open_jobs(self, key: ProjectUser, limit: int = 1000, after: int = 0) -> Sequence[Job]:
        if key in self._releasing:
            self._releasing.discard(key)
            return ()
        return self.inside.open_jobs(key, limit, after)


class NoThreadOrder(Wrapped):
    """No job looks earlier than another of its thread to whoever chooses the next one."""

    def __init__(self, inside: object, state: PoolRecords) -> None:
        super().__init__(inside)
        self._conn = state.db.conn

    def __getattr__(self, name: str) -> object:
        method = getattr(self.inside, name)

        def call(*args: object, **kwargs: object) -> object:
            orders = self._conn.execute("SELECT thread_ord, job_id FROM jobs").fetchall()
            self._conn.execute("UPDATE jobs SET thread_ord = 0")
            try:
                return method(*args, **kwargs)
            finally:
                self._conn.executemany("UPDATE jobs SET thread_ord = ? WHERE job_id = ?", orders)

        return call


class ForgottenStarts(Wrapped):
    """Every start looks like the first one of its job."""

    def __getattr__(self, name: str) -> object:
        method = getattr(self.inside, name)

        def call(*args: object, **kwargs: object) -> object:
            result = method(*args, **kwargs)
            if isinstance(result, FinishResult) and result.started:
                return replace(result, started=replace(result.started, is_first=True))
            return replace(result, is_first=True) if isinstance(result, StartedJob) else result

        return call


class NoBeatRule(Wrapped):
    """A key that somebody holds is taken at once."""

    def claim_and_start(
        self, key: ProjectUser, worker: str, now: datetime, over: Claim | None = None
    ) -> StartedJob | Claim | None:
        return self.inside.claim_and_start(key, worker, now, over or self.inside.look(key))


class NeverMakesWay(Wrapped):
    """A slot goes on with its own key, whoever waits."""

    def __init__(self, inside: object, state: PoolRecords) -> None:
        super().__init__(inside)
        self._conn = state.db.conn

    def end_and_take_next(self, started: StartedJob, ending: JobEnd, now: datetime, *, more: bool) -> FinishResult:
        waiting = self._conn.execute("DELETE FROM hints RETURNING key, waiting_since, preferred, sent_at").fetchall()
        try:
            return self.inside.end_and_take_next(started, ending, now, more=more)
        finally:
            columns = "key, waiting_since, preferred, sent_at"
            self._conn.executemany(f"INSERT OR IGNORE INTO hints ({columns}) VALUES (?, ?, ?, ?)", waiting)


class UnknownKept(Wrapped):
    """A worker does not ask which claims the store says it holds."""

    def held_by(self, worker: str) -> Sequence[Claim]:
        return ()


class HeldForGood(Wrapped):
    """A held job does not look again by itself: only whoever resumes its site lets it go."""

    def end_and_take_next(self, started: StartedJob, ending: JobEnd, now: datetime, *, more: bool) -> FinishResult:
        if isinstance(ending, Requeue) and ending.why is RequeueReason.HELD:
            ending = replace(ending, not_before=now + timedelta(days=2))
        return self.inside.end_and_take_next(started, ending, now, more=more)


class SettledUnseen(Wrapped):
    """A job that was put back is stopped at once, and nobody looks what it has published."""

    def __init__(self, inside: object, state: PoolRecords) -> None:
        super().__init__(inside)
        self._state = state

    def settle_waiting(self, job_id: str, settlement: Settlement, now: datetime) -> Job:
        job = self._state.jobs[job_id]
        if job.state is JobState.QUEUED and not job.attempts:
            self._state.put(job._replace(fence=0))
        return self.inside.settle_waiting(job_id, settlement, now)


class NeverForgotten(dict[str, Any]):
    """What a job may save stays what it was when it began."""

    def pop(self, key: str, default: object = None) -> object:
        return self.get(key, default)


class NothingLetGo(Wrapped):
    """A slot that cannot save how its job ended goes away, and the key's lease is renewed all the same."""

    def abandon(self, claim: Claim) -> None:
        """Keep it."""


def _never_letting_go(slot: Slot) -> Slot:
    return Slot(
        slot._deps, cast(ClaimSet, NothingLetGo(slot._claim_set)), slot._renewer, slot._stopping, slot._needs_slot
    )


def _saving_previews(worker: Worker) -> None:
    """An interruption saves what is checked out, be it a preview."""
    jobs = cast(Port, worker._deps.work)._target
    jobs._unfinished = NeverForgotten()  # type: ignore[attr-defined]
    workspaces = jobs._deps.workspaces  # type: ignore[attr-defined]
    save = workspaces.save

    def save_head(workspace: Workspace) -> None:
        copy = workspaces._copies[workspace.path]
        copy.branch = copy.head
        save(workspace)

    workspaces.save = save_head


def _forgetting(worker: Worker) -> None:
    """What could not be released is not tried again."""
    worker._claim_set.abandon = worker._claim_set.remove  # type: ignore[method-assign]


def _counting_all_time(durable: Durable) -> None:
    """Downtime and jumps of the clock count as waiting."""
    durable.uptime = lambda process: lambda: timedelta.max


def _losing_bad_ends(durable: Durable) -> None:
    """The event that a workflow was stopped or failed is lost, and no one looks for such workflows."""
    durable.tells_of_bad_ends = False


def _one_offer(durable: Durable) -> None:
    """A key stays with the worker that it was offered to, be that worker frozen."""
    durable.offers_end = False


def _set(name: str, wrap: Callable[[Any, Durable], Any]) -> Callable[[Durable], None]:
    def switch(durable: Durable) -> None:
        setattr(durable, name, wrap(getattr(durable, name), durable))

    return switch


@dataclass(frozen=True, slots=True)
class Mutant:
    """A safeguard switched off, in the stores, a slot or a worker, and the weather in which that shows soonest."""

    switch: Callable[[Durable], object] | None
    climate: str
    spot: str = ""
    slot: Callable[[Slot], Slot] | None = None
    worker: Callable[[Worker], None] | None = None


MUTANTS = {
    "the fence at settling": Mutant(
        _set("claims", lambda claims, durable: UnfencedSettling(claims, durable.state)), "pauses", "end_and_take_next"
    ),
    "the fence at pushing": Mutant(
        _set("remotes", lambda remotes, _: {name: UnfencedOrigin(origin) for name, origin in remotes.items()}),
        "pauses", "push",
    ),
    "the fence at the release pointer": Mutant(
        _set("releases", lambda releases, _: UnfencedPointer(releases)), "pauses", "activate"
    ),
    "the token that a callback answers": Mutant(
        _set("jobs", lambda jobs, durable: AnyTokenPays(jobs, durable.state)), "crashes", "answer_token"
    ),
    "the reconciler": Mutant(_set("jobs", lambda jobs, _: NothingToReconcile(jobs)), "lossy"),
    "the second look at release": Mutant(BlindRelease, "slow", "begin_release"),
    "the order within a thread": Mutant(
        _set("claims", lambda claims, durable: NoThreadOrder(claims, durable.state)), "calm"
    ),
    "the second look of a held job": Mutant(_set("claims", lambda claims, _: HeldForGood(claims)), "crashes", "let_go"),
    "letting go of what cannot be ended": Mutant(None, "surprising", "end_and_take_next", _never_letting_go),
    "giving up a claim that is not served": Mutant(
        _set("claims", lambda claims, _: UnknownKept(claims)), "unwritable", "begin_release", worker=_forgetting
    ),
    # A known start makes the job look at all of main, and hides what the branch says: a lost row uncovers it.
    "saving the thread's branch when a preview is interrupted": Mutant(
        _set("claims", lambda claims, _: ForgottenStarts(claims)), "hasty", worker=_saving_previews
    ),
    "looking what a stopped job has published": Mutant(
        _set("jobs", lambda jobs, durable: SettledUnseen(jobs, durable.state)), "hasty", "end_and_take_next"
    ),
    "making way for a key that waits": Mutant(
        _set("claims", lambda claims, durable: NeverMakesWay(claims, durable.state)), "busy"
    ),
    "not counting time that the system did not see": Mutant(_counting_all_time, "gone"),
    "telling of a workflow that ended badly": Mutant(_losing_bad_ends, "crashes"),
    "knowing that a job was started before": Mutant(
        _set("claims", lambda claims, _: ForgottenStarts(claims)), "skewed", "push"
    ),
    "offering to all workers what one does not take": Mutant(_one_offer, "pauses", "receive"),
    "the beat rule": Mutant(_set("claims", lambda claims, _: NoBeatRule(claims)), "crashes"),
}  # fmt: skip
