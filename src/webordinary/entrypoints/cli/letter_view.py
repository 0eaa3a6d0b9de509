"""A dead letter as people and scripts read it: its reason, its mail, its job, and what happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from webordinary.entrypoints.cli.output import clean, clock
from webordinary.entrypoints.cli.wording import line_for
from webordinary.model.events import Event
from webordinary.model.jobs import DeadLetter, Job
from webordinary.model.names import ProjectUser
from webordinary.model.overview import MailDetail, TimelineEntry

HEAD_LINES, HEAD_CHARACTERS = 10, 2000


def letter_lines(letter: DeadLetter, detail: MailDetail | None, job: Job | None) -> Iterator[str]:
    """For people."""
    again = f", after {letter.redrives} redrives" if letter.redrives else ""
    yield f"letter {letter.letter_id}, given up {clock(letter.died_at)}{again}"
    yield f"  reason   {clean(letter.reason)}"
    yield f"  mail     {letter.email_id}"
    if detail:
        yield f"  from     {clean(detail.summary.sender)}"
        yield f"  subject  {clean(detail.summary.subject or '(not read)')}"
        yield f"  received {clock(detail.summary.received_at)}"
    if job:
        yield f"  job      {job.job_id} of {job.key}: {job.outcome or job.state}, {job.attempts} starts"
        yield f"  error    {clean((job.result and job.result.error) or '-')}"
    yield from _text(detail)
    yield "\nwhat happened"
    for entry in detail.timeline if detail else ():
        yield "  " + line_for(entry.seq, entry.at, _event(entry), {})
    yield f"\nonce it is mended: webordinary dlq redrive {letter.letter_id}"


def letter_plain(letter: DeadLetter, detail: MailDetail | None, job: Job | None) -> dict[str, object]:
    """For scripts."""
    summary = detail.summary if detail else None
    return asdict(letter) | {
        "mail": summary
        and {
            "sender": summary.sender,
            "subject": summary.subject,
            "received_at": summary.received_at,
            "text": detail.text.text[:HEAD_CHARACTERS] if detail and detail.text else None,
        },
        "job": job
        and {
            "job_id": job.job_id,
            "key": str(job.key),
            "state": job.state,
            "outcome": job.outcome,
            "attempts": job.attempts,
            "error": job.result.error if job.result else None,
        },
        "timeline": [asdict(entry) for entry in detail.timeline] if detail else [],
    }


def _text(detail: MailDetail | None) -> Iterator[str]:
    if not detail or not detail.text:
        return
    yield "\nthe mail"
    for line in detail.text.text[:HEAD_CHARACTERS].splitlines()[:HEAD_LINES]:
        yield f"  > {clean(line)}"


def _event(entry: TimelineEntry) -> Event:
    key = ProjectUser.parse(entry.key) if entry.key else None
    return Event(entry.kind, None, None, key, entry.worker, entry.data)
