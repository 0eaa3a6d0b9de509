"""What an operator does with running work: end or interrupt a job, release a claim, stop a worker when it is done."""

from __future__ import annotations

from webordinary.compose.container import Container
from webordinary.model.claims import MAX_INTERRUPTIONS, Interrupt
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, EventKind
from webordinary.model.jobs import Job, JobOutcome, JobResult, JobState, Settlement
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.snapshot import WorkerSummary
from webordinary.pool.ports import INTERRUPT
from webordinary.pool.reconciler import STOPPED, end_workflow
from webordinary.pool.transitions import BY_OPERATOR, asked_by_operator


def cancel_job(services: Container, email_id: str, by: str) -> Job:
    """End the job of a mail for good, as its customer's `stop` does. Idempotent; a running one ends in a moment.

    Raises Permanent where the mail has no open job.
    """
    job = _open_job(services, email_id)
    settlement = Settlement(JobOutcome.CANCELLED, JobResult(STOPPED))
    ended = end_workflow(job, settlement, services.pool, services.clock.now())
    _say(services, job, by, "cancel")
    return ended


def interrupt_job(services: Container, email_id: str, by: str) -> None:
    """Have the running job of a mail make way: its work is saved, and it goes on behind the others of its queue.

    Raises Permanent where it does not run, or was interrupted as often as a job may be.
    """
    job = _open_job(services, email_id)
    if job.state is not JobState.RUNNING:
        raise Permanent(f"mail {email_id[:12]} is not being worked on now: it waits, or it has just ended")
    if job.interruptions >= MAX_INTERRUPTIONS:
        raise Permanent(f"mail {email_id[:12]} was interrupted {job.interruptions} times already: cancel it instead")
    asked, now = Interrupt(job.key, job.job_id, job.thread_id, asked_by_operator(job)), services.clock.now()
    # Written before it happens, because the worker keeps no reason: the workflow adds none where one is written.
    services.interruptions.record(job._replace(interruptions=job.interruptions + 1), BY_OPERATOR, now)
    services.pool.interrupts.send(asked, now)
    services.pool.tickets.notify_owner(job, INTERRUPT)
    _say(services, job, by, "interrupt")


def release_claim(services: Container, key: ProjectUser, by: str) -> None:
    """Take a key from a worker that does nothing for it, or is dead; the next worker gets a higher fence.

    Raises Permanent where no worker holds the key, a living one works for it, or the claim changed meanwhile. A job
    that starts in that very moment is given back, and runs again.
    """
    claim = services.pool.claims.look(key)
    held = next((one for one in services.overview.pool(services.clock.now()).claims if one.key == key), None)
    if held is None or claim is None:
        raise Permanent(f"no worker holds {key}: see `webordinary claims`")
    if held.busy and not held.dead:
        raise Permanent(f"{held.worker} works for {key} now: interrupt or cancel that job first")
    same = (held.worker_id, held.fence) == (claim.worker, claim.fence)
    if not (same and services.pool.claims.begin_release(claim)):
        raise Permanent(f"the claim of {key} changed meanwhile: see `webordinary claims`, and try again if it is held")
    services.pool.claims.end_release(claim)
    services.events.emit(Event(EventKind.CLAIM_RELEASED, key=key, worker=claim.worker, data={"by": by}))
    services.pool.tickets.notify_unclaimed()


def drain_worker(services: Container, name: str, by: str) -> WorkerSummary:
    """Ask a worker to take no more jobs and to end once its running ones are done. `up` starts its own again then."""
    workers = services.overview.pool(services.clock.now()).workers
    found = next((one for one in workers if name in (one.name, one.worker)), None)
    if found is None:
        raise Permanent(f"there is no worker {name!r}: see `webordinary status`")
    services.drain_worker(found.worker)
    services.events.emit(Event(EventKind.WORKER_DRAINED, worker=found.worker, data={"by": by}))
    return found


def _open_job(services: Container, email_id: str) -> Job:
    detail = services.overview.mail(email_id)
    known = detail.summary.job.job_id if detail and detail.summary.job else job_id_of(email_id)
    job = services.pool.jobs.get(known)
    if job is None or not job.open:
        raise Permanent(f"nothing is under way for mail {email_id[:12]}: it has ended, or has not become a job yet")
    return job


def _say(services: Container, job: Job, by: str, what: str) -> None:
    services.events.emit(Event(EventKind.STOP_ASKED, job.email_id, job.job_id, job.key, data={"what": what, "by": by}))
