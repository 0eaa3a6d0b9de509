"""The steps between a job and its worker. None of them writes ownership: only workers do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from webordinary.model.claims import ClaimRequest, ClaimStatus, Interrupt
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.jobs import Job, JobState
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import INTERRUPT, Interruptions, Pool
from webordinary.pool.reconciler import deliver_callback
from webordinary.pool.transitions import ANOTHER_THREAD, interrupting_job

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Queueing:
    """Each method is one state of the workflow, idempotent, ids in and ids out."""

    pool: Pool
    interruptions: Interruptions
    events: Events
    now: Callable[[], datetime]
    tell_held: Callable[[Job], None]

    def send_to_container(self, payload: Payload) -> Payload:
        """The job becomes runnable, and its owner, if there is one, is woken."""
        job = self._job(payload)
        if job.state is JobState.PREPARING:  # a job without files is recorded as queued
            job = self.pool.jobs.enqueue(job.job_id, self.now())
        self.pool.tickets.notify_owner(job)
        if job.state is JobState.QUEUED:
            self.events.emit(Event(EventKind.JOB_QUEUED, job.email_id, job.job_id, job.key))
        return _as_payload(ClaimRequest.for_job(job))

    def check_ownership(self, payload: Payload) -> Payload:
        """Does a live worker own the key, and is it known to run no other job? Only looks.

        A job that begins later makes no way for this one (see `interrupting_job`), so only a busy owner matters.
        """
        claim = self.pool.claims.look(self._key(payload))
        if claim is None or claim.status is not ClaimStatus.HELD or claim.lease_expires_at <= self.now():
            return {"owned": False, "idle": False}
        alive = not self.pool.liveness.is_dead(claim.worker)
        return {"owned": alive, "idle": alive and claim.running in ("", payload["jobId"])}

    def send_claim_request(self, payload: Payload) -> Payload:
        """Send a claim request for the key, unless one is waiting."""
        queued = payload.get("queued")  # an execution that began before it was told asks the record
        request = _as_request(queued) if queued else ClaimRequest.for_job(self._job(payload))
        self.pool.hints.send(request, self.now())
        self.pool.tickets.notify_unclaimed(request.key)
        self.events.emit(Event(EventKind.CLAIM_REQUESTED, request.email_id, payload["jobId"], request.key))
        return {}

    def check_active_job(self, payload: Payload) -> Payload:
        """Does a running job of another thread have to make way?"""
        open_jobs = self.pool.jobs.open_jobs(self._key(payload))
        running = next((other for other in open_jobs if other.state is JobState.RUNNING), None)
        newcomer = interrupting_job(running, open_jobs, self.now()) if running else None
        if running is None or newcomer is None:
            return {"mustInterrupt": False}
        return {"mustInterrupt": True, "jobId": running.job_id}

    def send_interrupt(self, payload: Payload) -> Payload:
        """Hurry the owner to look; the records decide whether the job really ends."""
        job = self._job(payload)
        asked = Interrupt(job.key, payload["activeJobId"], job.thread_id, ANOTHER_THREAD)
        self.pool.interrupts.send(asked, self.now())
        self.pool.tickets.notify_owner(job, INTERRUPT)
        return {}

    def await_result(self, payload: Payload) -> Payload:
        """Name whom to call back; if the job has ended meanwhile, that is now."""
        job = self.pool.jobs.bind_token(payload["jobId"], payload["taskToken"])
        if not job.open:
            deliver_callback(job, self.pool)
        elif job.held:  # before anybody could be called back
            self.tell_held(job)
        return {}

    def record_interruption(self, payload: Payload) -> Payload:
        """Keep the audit, or tell the customer of a job that has to wait; it is queued again already."""
        job = self._job(payload)
        if job.open and job.held:
            self.tell_held(job)
        else:
            self.interruptions.record(job, ANOTHER_THREAD, self.now(), self._newcomer_of(job))  # unless it is written
        return {}

    def _newcomer_of(self, job: Job) -> str:
        """The thread that this job made way for: its job runs now, or comes next."""
        others = [other for other in self.pool.jobs.open_jobs(job.key) if other.thread_id != job.thread_id]
        others.sort(key=lambda other: (other.state is not JobState.RUNNING, other.order))
        return others[0].thread_id if others else ""

    def _key(self, payload: Payload) -> ProjectUser:
        """The key of the job; an execution from before keys were in its input reads the record."""
        place = payload.get("place")
        return ProjectUser.parse(place["key"]) if place else self._job(payload).key

    def _job(self, payload: Payload) -> Job:
        job = self.pool.jobs.get(payload["jobId"])
        if job is None:
            raise Permanent(f"job {payload['jobId']} is not recorded; was the database restored from a backup?")
        return job


def _as_payload(request: ClaimRequest) -> Payload:
    """What a later step needs to send the request without reading the job again."""
    return {
        "key": str(request.key),
        "emailId": request.email_id,
        "threadId": request.thread_id,
        "since": request.waiting_since.isoformat(),
        "readyAt": request.ready_at.isoformat() if request.ready_at else "",
    }


def _as_request(queued: Payload) -> ClaimRequest:
    return ClaimRequest(
        ProjectUser.parse(queued["key"]),
        datetime.fromisoformat(queued["since"]),
        email_id=queued["emailId"],
        thread_id=queued["threadId"],
        ready_at=datetime.fromisoformat(queued["readyAt"]) if queued["readyAt"] else None,
    )
