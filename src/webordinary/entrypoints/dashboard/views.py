"""View models: mails with their progress, lists, what needs a person, workers, claims, queues, alerts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from webordinary.entrypoints.dashboard.text import FormattedTime, duration, moment, plural
from webordinary.mail.ports import Undelivered
from webordinary.model.jobs import DeadLetter, JobOutcome, JobState
from webordinary.model.mail import QUEUED_COMMANDS, Command
from webordinary.model.projects import Project
from webordinary.model.snapshot import (
    JobSummary,
    MailFilter,
    MailPage,
    MailState,
    MailSummary,
    PoolSnapshot,
    QueueSummary,
    WorkerSummary,
    state_of,
)
from webordinary.operations.console import NeedsPerson
from webordinary.operations.mails import NEEDS_PERSON, is_over_limit
from webordinary.operations.onboarding import SiteHealth
from webordinary.pool.alerts import unowned_too_long


class Progress(StrEnum):
    """The state of one step of a mail."""

    DONE = "done"
    ACTIVE = "active"
    WAITING = "waiting"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """One step of a mail's way; `took` is the time since the step before it."""

    name: str
    label: str
    progress: Progress
    took: str = ""


_RECEIVED = ProgressStep("received", "received", Progress.DONE)
_Station = tuple[str, str, datetime | None]  # name, label, when it was reached

_EDITED = {Command.UNDO: "taken back"}
_ON_THE_EDIT_SITE = "on the edit site"
_SHOWN = {Command.PUBLISH: "on the public site"}


def steps_of(mail: MailSummary) -> tuple[ProgressStep, ...]:
    """The way of one mail, as far as it is known."""
    for kind, name in (("MailRefused", "refused"), ("MailDropped", "dropped"), ("MailHeld", "held")):
        if at := mail.milestones.get(kind):
            return (_RECEIVED, ProgressStep(name, name, Progress.FAILED, duration(at - mail.received_at)))
    stations = _stations(mail)
    last = max((i for i, (_, _, at) in enumerate(stations) if at), default=-1)
    upcoming = Progress.SKIPPED if finished(mail) else Progress.WAITING
    steps, before = [_RECEIVED], mail.received_at
    for i, (name, label, at) in enumerate(stations):
        if at is not None:
            steps.append(ProgressStep(name, label, Progress.DONE, duration(at - before)))
            before = at
        elif i < last:
            steps.append(ProgressStep(name, label, Progress.SKIPPED))
        else:
            is_next = i == last + 1 and upcoming is Progress.WAITING
            steps.append(ProgressStep(name, label, Progress.ACTIVE if is_next else upcoming))
    return _given_up(tuple(steps)) if mail.dead_reason else tuple(steps)


def finished(mail: MailSummary) -> bool:
    """Nothing more will happen to this mail by itself."""
    stopped = mail.dead_reason is not None or "MailRefused" in mail.milestones or "MailHeld" in mail.milestones
    return stopped or mail.ended or mail.answered_at is not None


def _stations(mail: MailSummary) -> list[_Station]:
    answered: _Station = ("answered", "answered", mail.answered_at)
    job = mail.job
    if job is not None and job.command not in QUEUED_COMMANDS:
        return [answered]
    if job is None:
        to_come: list[_Station] = [(name, name, None) for name in ("queued", "claimed", "edited")]
        return [*to_come, ("published", _ON_THE_EDIT_SITE, None), answered]
    started = job.started_at if job.state in (JobState.RUNNING, JobState.SETTLED) else None
    again = "again " if started and (job.attempts > 1 or job.interruptions) else ""  # not the wait for the first claim
    by = f"claimed {again}by {job.worker}" if started and job.worker else "claimed"
    edited: _Station = ("edited", _EDITED.get(job.command, "edited"), _edited_at(mail, job))
    return [
        ("queued", "queued", job.queued_at if job.state is not JobState.PREPARING else None),
        ("claimed", by, started),
        *([] if job.command is Command.PUBLISH else [edited]),
        ("published", _SHOWN.get(job.command, _ON_THE_EDIT_SITE), _published_at(mail, job)),
        answered,
    ]


def _edited_at(mail: MailSummary, job: JobSummary) -> datetime | None:
    return _of_this_start(mail, job, "ChangeCommitted") or (job.settled_at if _changed(job) else None)


def _published_at(mail: MailSummary, job: JobSummary) -> datetime | None:
    return _of_this_start(mail, job, "SitePublished") or (job.settled_at if _changed(job) else None)


def _of_this_start(mail: MailSummary, job: JobSummary, kind: str) -> datetime | None:
    """When the event happened, unless that was under an earlier start of the job."""
    at = mail.milestones.get(kind)
    running = job.state in (JobState.RUNNING, JobState.SETTLED)
    return at if at and running and (job.started_at is None or at >= job.started_at) else None


def _changed(job: JobSummary) -> bool:
    # Events may reach the disk a moment later than the settled record, which is the truth.
    return job.outcome is JobOutcome.SUCCEEDED and job.result is not None and job.result.commit is not None


def _given_up(steps: tuple[ProgressStep, ...]) -> tuple[ProgressStep, ...]:
    """Mark the first step that the mail did not pass."""
    stop = next((i for i, step in enumerate(steps) if step.progress is not Progress.DONE), len(steps))
    return tuple(
        ProgressStep(step.name, "given up", Progress.FAILED) if i == stop else step for i, step in enumerate(steps)
    )


_COMMAND_DONE = {
    Command.UNDO: "taken back on the edit site",
    Command.PUBLISH: "on the public site",
    Command.STATUS: "answered",
    Command.STOP: "stopped",
    Command.REMEMBER: "wish kept",
    Command.FORGET: "wish dropped",
}


@dataclass(frozen=True, slots=True)
class StatusView:
    """The state of a mail in a word or two; `tone` is good, busy, warn or bad."""

    label: str
    tone: str


@dataclass(frozen=True, slots=True)
class MailLine:
    """One mail in a list."""

    email_id: str
    subject: str
    sender: str
    project: str
    received: FormattedTime
    status: StatusView
    steps: tuple[ProgressStep, ...]
    answered_in: str


@dataclass(frozen=True, slots=True)
class RunningJobView:
    """A job that a worker runs now."""

    key: str
    email_id: str
    subject: str
    since: FormattedTime | None


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker with its running jobs and its claims."""

    name: str
    pid: int
    busy: bool
    slots: int
    up_since: FormattedTime
    tasks: tuple[RunningJobView, ...]
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim of a worker."""

    key: str
    worker: str
    fence: int
    since: FormattedTime
    live: bool


@dataclass(frozen=True, slots=True)
class QueueView:
    """The open jobs of one key."""

    key: str
    open: int
    running: int
    waiting: int
    waiting_for: str


@dataclass(frozen=True, slots=True)
class AlertView:
    """A condition that needs a person: what happened, and what to do."""

    what: str
    advice: str
    email_ids: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HomeView:
    """The whole system at a glance."""

    seq: int
    at: FormattedTime
    alarms: tuple[AlertView, ...]
    in_flight: tuple[MailLine, ...]
    done: tuple[MailLine, ...]
    next_page: str
    workers: tuple[WorkerView, ...]
    claims: tuple[ClaimView, ...]
    queues: tuple[QueueView, ...]
    projects: tuple[str, ...]


def home_view(
    seq: int,
    mails: Sequence[MailSummary],
    pool: PoolSnapshot,
    projects: Sequence[str],
    now: datetime,
    *,
    next_page: str,
) -> HomeView:
    """The view of these mails and this pool; `seq` is the newest event that they include."""
    unique = {mail.email_id: mail for mail in mails}.values()
    newest_first = sorted(unique, key=lambda mail: (mail.received_at, mail.email_id), reverse=True)
    return HomeView(
        seq=seq,
        at=moment(now, now),
        alarms=_alarms(pool, now),
        in_flight=tuple(mail_line(mail, now) for mail in newest_first if not finished(mail)),
        done=tuple(mail_line(mail, now) for mail in newest_first if finished(mail)),
        next_page=next_page,
        workers=tuple(_worker(worker, pool, now) for worker in pool.workers),
        claims=_claims(pool, now),
        queues=tuple(_queue(queue, now) for queue in pool.queues),
        projects=tuple(sorted(set(projects))),
    )


def mail_line(mail: MailSummary, now: datetime) -> MailLine:
    """One mail with its progress."""
    steps = steps_of(mail)
    return MailLine(
        email_id=mail.email_id,
        subject=_subject_of(mail),
        sender=mail.sender,
        project=mail.job.key.project_id if mail.job else "",
        received=moment(mail.received_at, now),
        status=status_of(mail, steps),
        steps=steps,
        answered_in=duration(mail.answered_at - mail.received_at) if mail.answered_at else "",
    )


def _subject_of(mail: MailSummary) -> str:
    if mail.subject is None:
        return "(not read)" if finished(mail) else "(not read yet)"
    return mail.subject or "(no subject)"


def status_of(mail: MailSummary, steps: Sequence[ProgressStep]) -> StatusView:
    """The last step that the mail reached, with its tone."""
    if mail.dead_reason:
        return StatusView("given up", "bad")
    if steps[-1].progress is Progress.FAILED:
        return StatusView(steps[-1].label, "warn")
    if not finished(mail):
        return StatusView([step.label for step in steps if step.progress is Progress.DONE][-1], "busy")
    if mail.answered_at is None:
        return StatusView("ended without an answer", "warn")
    job = mail.job
    if job is None or job.outcome is None:
        return StatusView("answered", "good")
    if job.outcome is not JobOutcome.SUCCEEDED or (job.result and job.result.question):
        return StatusView(*STATE_LABELS[state_of(mail)])
    changed = job.result is not None and job.result.commit is not None
    if job.command is Command.UNDO and not changed:
        return StatusView("nothing to undo", "warn")
    if job.command is Command.UNDO and job.result and job.result.is_public:
        return StatusView("taken back on both sites", "good")
    if changed and job.command is Command.EDIT and job.result and job.result.is_public:
        return StatusView("on the public site", "good")
    if job.command is not Command.EDIT:
        return StatusView(_COMMAND_DONE[job.command], "good")
    return StatusView("on the edit site" if changed else "answered, nothing changed", "good")


def _worker(worker: WorkerSummary, pool: PoolSnapshot, now: datetime) -> WorkerView:
    tasks = tuple(
        RunningJobView(
            str(job.key),
            job.email_id,
            job.subject or "(no subject)",
            moment(job.started_at, now) if job.started_at else None,
        )
        for job in pool.running
        if job.worker == worker.worker
    )
    claims = tuple(str(claim.key) for claim in pool.claims if (claim.worker_id or claim.worker) == worker.worker)
    return WorkerView(worker.name, worker.pid, bool(tasks), worker.slots, moment(worker.started_at, now), tasks, claims)


def _claims(pool: PoolSnapshot, now: datetime) -> tuple[ClaimView, ...]:
    return tuple(
        ClaimView(
            str(claim.key),
            claim.worker,
            claim.fence,
            moment(claim.claimed_at, now),
            claim.lease_expires_at > now,
        )
        for claim in pool.claims
    )


def _queue(queue: QueueSummary, now: datetime) -> QueueView:
    waiting_for = duration(now - queue.waiting_since) if queue.waiting_since else ""
    return QueueView(str(queue.key), queue.open, queue.running, queue.open - queue.running, waiting_for)


def _alarms(pool: PoolSnapshot, now: datetime) -> tuple[AlertView, ...]:
    alarms = []
    if pool.dead_letter_count:
        letters = pool.dead_letters[:5]
        was = "was" if pool.dead_letter_count == 1 else "were"
        alarms.append(
            AlertView(
                f"{plural(pool.dead_letter_count, 'mail')} {was} given up: {letters[0].reason[:200]}",
                "The customer was told. Open the mail to see where it stopped; mend that, then redrive or drop it:",
                tuple(letter.email_id for letter in letters),
                ("webordinary dlq list", f"webordinary dlq redrive {letters[0].letter_id}"),
            )
        )
    if old := unowned_too_long(pool.queues, now):
        longest = max(now - queue.unowned_since for queue in old if queue.unowned_since)
        advice = "See what the workers do:" if pool.workers else "No worker lives. Start one:"
        command = "webordinary worker health" if pool.workers else "webordinary worker"
        names = ", ".join(str(queue.key) for queue in old[:5])
        what = f"No worker owns the work of {names}, for {duration(longest)} now."
        alarms.append(AlertView(what, advice, commands=(command, "webordinary queues")))
    return tuple(alarms)


@dataclass(frozen=True, slots=True)
class ListLink:
    """A link of a list: a state to choose, or a page."""

    label: str
    href: str
    current: bool = False
    count: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class MailListView:
    """A page of the mails that fit a search."""

    lines: tuple[MailLine, ...]
    total: str
    states: tuple[ListLink, ...]
    pages: tuple[ListLink, ...]
    csv: str
    json: str
    since: str
    until: str


STATE_LABELS = {
    MailState.OPEN: ("on their way", "busy"),
    MailState.DONE: ("done", "good"),
    MailState.ASKED: ("asked back", "warn"),
    MailState.NOT_UNDERSTOOD: ("not understood", "bad"),
    MailState.FAILED: ("failed", "bad"),
    MailState.DEAD: ("given up", "bad"),
    MailState.HELD: ("held", "warn"),
    MailState.REFUSED: ("refused", ""),
    MailState.DROPPED: ("dropped", ""),
    MailState.CANCELLED: ("stopped", ""),
    MailState.CLOSED: ("closed", ""),
}


def mail_list_view(
    found: MailPage, counts: Mapping[MailState, int], wanted: MailFilter, page: int, size: int, now: datetime
) -> MailListView:
    """The view of one page of a search."""
    since, until = (f"{at.astimezone():%Y-%m-%d}" if at else "" for at in (wanted.since, _last_day(wanted)))
    fields = {
        "q": wanted.text,
        "state": wanted.state,
        "project": wanted.project_id,
        "user": wanted.user_id,
        "sender": wanted.sender,
        "since": since,
        "until": until,
    }

    def link(path: str = "/mails", **changes: str) -> str:
        return f"{path}?{urlencode({name: value for name, value in (fields | changes).items() if value})}".rstrip("?")

    states = (
        ListLink(label, link(state=state.value), wanted.state == state, f"{counts.get(state, 0):,}", tone)
        for state, (label, tone) in STATE_LABELS.items()
        if counts.get(state) or wanted.state == state
    )
    last = max(1, -(-found.total // size))
    return MailListView(
        lines=tuple(mail_line(mail, now) for mail in found.mails),
        total=f"{found.total:,}{'' if found.counted else ' or more'} {'mail' if found.total == 1 else 'mails'}",
        states=(ListLink("all", link(state=""), not wanted.state, f"{sum(counts.values()):,}"), *states),
        pages=page_links(page, last, lambda number: link(page=str(number))),
        csv=link("/mails.csv"),
        json=link("/mails.jsonl"),
        since=since,
        until=until,
    )


def _last_day(wanted: MailFilter) -> datetime | None:
    return wanted.until - timedelta(days=1) if wanted.until else None


def page_links(page: int, last: int, address: Callable[[int], str]) -> tuple[ListLink, ...]:
    """Links to the first, the last and the pages around; none for one page."""
    return tuple(
        ListLink("…", "") if number == 0 else ListLink(f"{number:,}", address(number), number == page)
        for number in _page_numbers(page, last)
    )


@dataclass(frozen=True, slots=True)
class SiteLine:
    """A site in a list."""

    name: str
    status: StatusView
    shown: FormattedTime | None
    open: int
    needs_person: int
    mails: int


def site_line(project: Project, health: SiteHealth, counts: Mapping[MailState, int], now: datetime) -> SiteLine:
    """One site with its health and its mails."""
    waiting = sum(counts.get(state, 0) for state in NEEDS_PERSON)
    shown = moment(health.shown_at, now) if health.shown_at else None
    status = StatusView(health.words, health.tone)
    return SiteLine(project.project_id, status, shown, counts.get(MailState.OPEN, 0), waiting, sum(counts.values()))


def _page_numbers(page: int, last: int) -> list[int]:
    """The first, the last, and those around; 0 where some are left out. None at all for one page."""
    around = {1, last, *range(page - 2, page + 3)}
    shown = sorted(number for number in around if 1 <= number <= last)
    numbers: list[int] = []
    for number in shown if last > 1 else ():
        if numbers and number - numbers[-1] > 1:
            numbers.append(0)
        numbers.append(number)
    return numbers


@dataclass(frozen=True, slots=True)
class ActionView:
    """A button, with what its form sends."""

    label: str
    href: str
    primary: bool = False
    fields: tuple[tuple[str, str], ...] = ()
    text: str = ""
    """The label of a text to write, if the action needs one."""
    choices: tuple[str, ...] = ()
    """What to choose from, people of sites or agents, if the action needs one."""
    choose: str = "as"
    """The word before the choices."""


@dataclass(frozen=True, slots=True)
class NeedView:
    """One thing that waits for the operator."""

    title: str
    href: str
    about: str
    reason: str
    at: FormattedTime
    actions: tuple[ActionView, ...]
    words: str = ""
    """What the customer wrote, or its beginning."""


@dataclass(frozen=True, slots=True)
class NeedGroup:
    """Things of one kind that wait for the operator, MOST_NEEDS of them at most."""

    name: str
    title: str
    count: int
    items: tuple[NeedView, ...]


MOST_NEEDS = 50
T = TypeVar("T")


def _group(name: str, title: str, found: Sequence[T], view: Callable[[T], NeedView]) -> NeedGroup:
    return NeedGroup(name, title, len(found), tuple(map(view, found[:MOST_NEEDS])))


def attention_view(
    waiting: NeedsPerson, keys: Sequence[str], agents: tuple[str, ...], now: datetime
) -> tuple[NeedGroup, ...]:
    """What waits for the operator, group by group, each with its actions; empty groups are left out."""

    def undone(mail: MailSummary) -> NeedView:
        need = _need(mail, now, _UNDONE)
        other = ActionView(
            "Hand it over", f"{need.href}/retries", choices=agents, choose="Edit this site from now on by"
        )
        return replace(need, actions=(*need.actions, other), words=waiting.words.get(mail.email_id, ""))

    def given_up(letter: DeadLetter) -> NeedView:
        return replace(_letter_need(letter, now), words=waiting.words.get(letter.email_id, ""))

    def held(mail: MailSummary) -> NeedView:
        if why := waiting.unreleasable.get(mail.email_id):
            reason = f"It cannot be done: {why}. Ask {mail.sender} to send it again."
            return replace(_need(mail, now, _HELD[1:]), reason=reason)
        return _need(mail, now, _HELD)

    groups = (
        _group("sites", "Sites that show nothing", waiting.broken_sites, lambda one: _site_need(one, now)),
        _group("held", "Held: the sender is not proven", waiting.held, held),
        _group("asked", "Not understood by any agent", waiting.not_understood, undone),
        _group("failed", "Failed", waiting.failed, undone),
        _group("letters", "Given up", waiting.dead_letters, given_up),
        _group("replies", "Replies that did not arrive", waiting.undelivered, lambda reply: _reply_need(reply, now)),
        _group(
            "limited",
            "Over the limit of mails an hour, in the last three days",
            [mail for mail in waiting.refused if is_over_limit(mail)],
            lambda mail: _need(mail, now, _LIMITED),
        ),
        _group(
            "refused",
            "Refused in the last three days: a customer with another address?",
            [mail for mail in waiting.refused if not is_over_limit(mail)],
            lambda mail: _refused_need(mail, waiting.authors.get(mail.email_id, ""), tuple(keys), now),
        ),
    )
    return tuple(group for group in groups if group.items)


_HELD = (("They wrote it: do it", "releases", ""), ("Drop it", "drops", ""))
_LIMITED = (("Do it now", "retries", ""), ("Close", "closings", ""))
_UNDONE = (
    ("Answer", "answers", "Your answer, in their conversation"),
    ("Try it again", "retries", ""),
    ("Close", "closings", ""),
)


def _need(mail: MailSummary, now: datetime, actions: Sequence[tuple[str, str, str]]) -> NeedView:
    result = mail.job.result if mail.job else None
    reason = mail.stopped_because or (result.error if result else "") or ""
    site = f"{mail.job.key.project_id} · " if mail.job else ""
    return NeedView(
        _subject_of(mail),
        f"/mails/{mail.email_id}",
        f"{site}{mail.sender}",
        reason,
        moment(mail.received_at, now),
        tuple(
            ActionView(label, f"/mails/{mail.email_id}/{resource}", primary=i == 0, text=text)
            for i, (label, resource, text) in enumerate(actions)
        ),
    )


def _refused_need(mail: MailSummary, author: str, keys: tuple[str, ...], now: datetime) -> NeedView:
    need = _need(mail, now, [("Close", "closings", "")])
    [close] = need.actions
    site = mail.recipient.partition("@")[0].partition("+")[2]
    fitting = tuple(key for key in keys if key.startswith(f"{site}#")) or keys
    choices = ("", *fitting) if len(fitting) > 1 else fitting  # no click gives a stranger the first site of the list
    let_in = ActionView(f"Let {author} in, and do it", f"{need.href}/admissions", primary=True, choices=choices)
    return replace(need, actions=(let_in, replace(close, primary=False)) if keys and author else (close,))


def _letter_need(letter: DeadLetter, now: datetime) -> NeedView:
    base = f"/dead-letters/{letter.letter_id}"
    actions = (ActionView("Try it again", f"{base}/redrives", primary=True), ActionView("Drop it", f"{base}/drops"))
    title, href = f"Mail {letter.email_id[:12]}", f"/mails/{letter.email_id}"
    return NeedView(title, href, "", letter.reason, moment(letter.died_at, now), actions)


def _site_need(project: Project, now: datetime) -> NeedView:
    href = f"/sites/{project.project_id}"
    failed = datetime.fromtimestamp(project.build_failed_at, UTC) if project.build_failed_at else now
    again = ActionView("Build it again", f"{href}/builds", primary=True)
    return NeedView(project.project_id, href, "", project.build_problem[-2000:], moment(failed, now), (again,))


def _reply_need(reply: Undelivered, now: datetime) -> NeedView:
    href = f"/mails/{reply.email_id}"
    state = "" if reply.next_try_at else "given up"
    again = ActionView("Send it again", f"{href}/replies", primary=True)
    return NeedView(f"To {reply.recipient}", href, state, reply.error or "", moment(reply.written_at, now), (again,))
