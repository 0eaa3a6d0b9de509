"""The steps that end a mail: commands answered at once, giving up, and the one reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import Any

from webordinary.mail.auth import Admitted
from webordinary.mail.confirm import (
    MAX_QUESTIONS_A_DAY,
    SenderQuestion,
    answer_address,
    answer_page,
    declines,
    digest_of,
    new_token,
)
from webordinary.mail.identify import Ambiguous, identify
from webordinary.mail.parsing.wishes import changed_wishes, wish_in
from webordinary.mail.ports import Outbox, change_project, sender_of
from webordinary.mail.replies import answers
from webordinary.mail.replies.answers import Answer, PersonStatus
from webordinary.mail.replies.compose import (
    ANSWER,
    APPROVAL,
    BY_OPERATOR,
    CONFIRM,
    HELD,
    LATER,
    UNTIL,
    WAITING,
    answer_kind,
    compose,
)
from webordinary.mail.replies.rendering import Brand
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.jobs import (
    NOT_UNDERSTOOD,
    ChangeLine,
    DeferReason,
    Job,
    JobOutcome,
    JobResult,
    JobState,
    Settlement,
)
from webordinary.model.mail import Command, Envelope, ParsedMail, RefusedAttachment
from webordinary.model.names import ProjectUser, first_job_of, job_id_of
from webordinary.model.projects import Project, Sender, SenderRole
from webordinary.pool.ports import DeadLetters, Interruptions, Pool
from webordinary.pool.reconciler import GIVEN_UP, STOPPED, end_workflow, wake_for_end
from webordinary.pool.transitions import ANOTHER_THREAD, all_open, blocked_by, hour_of, may_have_published
from webordinary.workflow.reading import ASKED, CONFIRMED, LIMITED, NOT_THEIRS, MailDeps, limited_scope
from webordinary.workflow.start import BrokenExecution


def words_of(cause: str) -> str:
    """The error message of a failed step, from its cause."""
    try:
        failure = json.loads(cause)
    except ValueError:
        return cause
    return str(failure["errorMessage"]) if isinstance(failure, dict) and "errorMessage" in failure else cause


Payload = dict[str, Any]
_MAX_REASON = 1000
_LOOKED_AT = 20
"""Jobs of a person, the newest, among which a mail settles those that were not understood."""
_STATUS_JOBS, _ANSWERED_WITHIN = 1_000, timedelta(days=14)
"""`status` reads this many settled jobs of a person, and lists questions of this age at most."""
_STOPPED = Settlement(JobOutcome.CANCELLED, JobResult(STOPPED))
_LEAST_UPTIME = timedelta(days=1)
"""No job is given up for its waiting before the system has been up for so long: workers need a chance."""
_CLOCK_JUMP = timedelta(minutes=10)
_LONGEST_RUN = timedelta(days=1)  # a job's own limit ends it sooner: its worker is lost, and no other took over
_CAUSES = {"ABORTED": "an operator stopped it"} | dict.fromkeys(
    ("TIMED_OUT", "States.Timeout"), "it was not done in the time that it may wait"
)
"""What the end of an execution means that comes without a cause."""
_HELD = {
    DeferReason.PAUSE: "kept until the pause of your site is over",
    DeferReason.BUDGET: "kept until tomorrow, as today's budget of your site is used up",
}


class Uptime:
    """How long this process has seen time pass steadily: downtime and jumps of the clock do not count."""

    def __init__(self, now: Callable[[], datetime], monotonic: Callable[[], float]) -> None:
        self._now, self._monotonic = now, monotonic
        self._restart()

    def __call__(self) -> timedelta:
        passed = timedelta(seconds=self._monotonic() - self._began)
        if abs(self._now() - self._began_at - passed) > _CLOCK_JUMP:
            self._restart()
            return timedelta()
        return passed

    def _restart(self) -> None:
        self._began_at, self._began = self._now(), self._monotonic()


@dataclass(frozen=True, slots=True)
class Answering:
    """Each method is one state of the workflow, idempotent, ids in and ids out."""

    mail_deps: MailDeps
    outbox: Outbox
    pool: Pool
    dead_letters: DeadLetters
    interruptions: Interruptions
    events: Events
    now: Callable[[], datetime]
    wake_outbox: Callable[[], None]
    longest_awaited: timedelta = timedelta(days=350)
    """What is held longer is given up, while its mail is still there to be answered."""
    uptime: Callable[[], timedelta] = lambda: timedelta.max
    """How long the workers have had a chance; where the workflow's clock never stops or jumps, that is long enough."""
    renamed: bool = False
    """The transport replaces our Message-ID; the delivery records the one that answers will refer to."""
    brand: Brand = Brand()  # noqa: RUF009  frozen
    public_url: str = ""
    """Address of the page on the net; empty for none."""

    def run_command(self, payload: Payload) -> Payload:
        """`stop` ends its thread's jobs for good, `status` only looks, `remember` and `forget` keep wishes."""
        thread = self.mail_deps.threads.get(payload["threadId"])
        if thread is not None and payload["command"] in (Command.REMEMBER, Command.FORGET):
            self._keep_wish(thread.key.project_id, payload["emailId"])
        if thread is None or payload["command"] != Command.STOP:
            return {}
        of_thread = {job.job_id: job for job in self._of_thread(thread.key, thread.thread_id)}
        for job in of_thread.values():
            end_workflow(job, _STOPPED, self.pool, self.now())
        return {"stopped": len(of_thread)}

    def _keep_wish(self, project_id: str, email_id: str) -> None:
        mail, directory = self.mail_deps.read(email_id).mail, self.mail_deps.directory
        wish = wish_in(mail.text, mail.sender_name)
        if wish is not None and directory.project(project_id) is not None:
            change_project(directory, project_id, lambda one: replace(one, wishes=changed_wishes(one.wishes, *wish)))

    def tell_held(self, job: Job) -> None:
        """Tell the customer once that the mail is kept and is done later."""
        mail = self.mail_deps.read(job.email_id).mail
        if job.held is DeferReason.LATER and job.result:
            self._tell_date(job, job.result, mail)
            return
        answer = answers.held(mail, paused=job.held is DeferReason.PAUSE)
        self._write(answer, job.email_id, mail, job.thread_id, kind=HELD)

    def _tell_date(self, job: Job, result: JobResult, mail: ParsedMail) -> None:
        """Say when a wish is done, or until when its change stays, with what changed."""
        run, when = job.job_id.removeprefix(first_job_of(job.job_id)), self._date_of(job)
        if not result.commit:
            self._write(answers.later(mail, result, when), job.email_id, mail, job.thread_id, LATER + run)
            return
        entries = self.mail_deps.entitlements(mail)
        role = next((one.role for one in entries if one.key.project_id == job.key.project_id), SenderRole.EDITOR)
        done = job._replace(outcome=JobOutcome.SUCCEEDED, result=replace(result, due_at=None))
        answer = answers.until(self._answer_settled(done, mail, role), when)
        self._write(answer, job.email_id, mail, job.thread_id, UNTIL + run)
        if role is SenderRole.EDITOR:
            self._ask_approver(done, mail, APPROVAL + run)

    def _date_of(self, job: Job) -> str:
        project = self.mail_deps.directory.project(job.key.project_id)
        return answers.dated(job.due_at, project.zone if project else UTC) if job.due_at else ""

    def tell_waiting(self, job: Job, place: int) -> None:
        """Tell the customer once that the mail waits in line, unless an earlier reply told them so."""
        if not self.outbox.of(job.email_id):
            mail = self.mail_deps.read(job.email_id).mail
            self._write(answers.waiting(mail, place), job.email_id, mail, job.thread_id, kind=WAITING)

    def handle_timeout(self, payload: Payload) -> Payload:
        """Decide about a job that was awaited for a week: a job that no worker came for is given up.

        A job that is held, or ends by itself, is awaited on; so is every job before the workers have had a chance.
        """
        job = self.pool.jobs.get(payload["jobId"])
        return {"awaitOn": job is not None and self._awaits_on(job)}

    def _awaits_on(self, job: Job) -> bool:
        now = self.now()
        if job.recorded_at < now - self.longest_awaited:
            return False
        if job.state is JobState.SETTLED or (job.state is JobState.RUNNING and _runs_yet(job, now)):
            return True
        if self.uptime() < _LEAST_UPTIME or blocked_by(job, self._of_thread(job.key, job.thread_id)):
            return True
        return self._asked_for_a_look(job)

    def _asked_for_a_look(self, job: Job) -> bool:
        """A job with a start that was not seen to end may be published: a worker looks before it is given up."""
        if job.cancel_requested or not may_have_published(job):
            return False
        timed_out = Settlement(JobOutcome.TIMED_OUT, JobResult(STOPPED))
        wake_for_end(self.pool.jobs.settle_waiting(job.job_id, timed_out, self.now()), self.pool)
        return True

    def give_up(self, payload: Payload) -> Payload:
        """Keep the mail where a person sees it, with the reason; a job that waits is ended."""
        job = self._end_waiting(payload)
        if job and job.outcome not in (None, *GIVEN_UP):
            return {"gaveUp": False}  # a worker was faster: that is the answer, and nothing is left to redrive
        self._dead_letter(payload, job)
        if job and job.outcome is JobOutcome.TIMED_OUT:
            # A number of its own: the audit has one entry for each end of a run.
            ended = job._replace(interruptions=job.interruptions + 1)
            self.interruptions.record(ended, _reason(payload), self.now())
            return {"gaveUp": False}
        return {"gaveUp": True}

    def owes_answer(self, payload: Payload) -> bool:
        """Whether an execution that was started with this must have answered its mail, and has not."""
        email_id, kind = payload["emailId"], answer_kind(payload.get("redrive", 0))
        if any(entry.reply.kind == kind for entry in self.outbox.of(email_id)):
            return False
        with suppress(Permanent):  # a mail that cannot be read gets no answer
            envelope, mail, _ = self.mail_deps.read(email_id)
            return isinstance(self.mail_deps.judge_stored(email_id, envelope, mail), Admitted)
        return False

    def awaits_job(self, payload: Payload) -> bool:
        """Whether the job of an execution is open: it ends by itself."""
        job = self.pool.jobs.get(job_id_of(payload["emailId"], payload.get("redrive", 0)))
        return job is not None and job.open

    def abandon(self, payload: Payload, ended: BrokenExecution) -> None:
        """The workflow itself broke, whatever its state: end the job, keep the mail, tell the customer.

        `payload` is what the execution was started with. Safe to repeat, and told again until it returns.
        """
        error = f"workflow {ended.status}: {ended.error}" if ended.error else f"workflow {ended.status}"
        broken = {**payload, "error": {"Error": error, "Cause": ended.cause}}
        known = self._end_waiting(broken)
        if not (known and known.outcome is JobOutcome.SUCCEEDED):  # else nothing is left to redrive
            self._dead_letter(broken, known)
        job = {"jobId": known.job_id, "threadId": known.thread_id} if known else {}
        with suppress(Permanent):  # what cannot be answered lies with the dead letters, where a person sees it
            self.reply({**payload, "job": job, "answer": {"gaveUp": known is None}})

    def _end_waiting(self, payload: Payload) -> Job | None:
        """The mail's job, also where no step could say that it recorded one: then only the answer was lost."""
        email_id, redrives = payload["emailId"], payload.get("redrive", 0)
        job = self.pool.jobs.get(job_id_of(email_id, redrives))
        if job:
            dead = Settlement(JobOutcome.DEAD, JobResult("", error=_reason(payload)))
            job = self.pool.jobs.settle_waiting(job.job_id, dead, self.now())
            with suppress(Transient, Permanent):  # only a wake-up: without it the mail is given up all the same
                wake_for_end(job, self.pool)
        self.mail_deps.raw_mails.mark_placed(email_id)
        return job

    def _dead_letter(self, payload: Payload, job: Job | None) -> None:
        email_id, job_id, reason = payload["emailId"], job.job_id if job else None, _reason(payload)
        self.dead_letters.add(email_id, job_id, reason, self.now(), payload.get("redrive", 0))
        self.events.emit(Event(EventKind.DEAD_LETTERED, email_id, job_id, data={"reason": reason}))

    def reply(self, payload: Payload) -> Payload:
        """Write the one answer of this mail; strangers and machines get none."""
        email_id = payload["emailId"]
        envelope, mail, is_parsed = self.mail_deps.read(email_id)
        if (payload.get("sender") or {}).get("verdict") == ASKED:
            return {"replied": self._ask_sender(email_id, mail)}
        if not self._is_admitted(payload, envelope, mail):
            return {"replied": False}
        job_route = payload.get("job") or {}
        if job_route.get("route") == LIMITED:
            return self._tell_limit(job_route["key"], mail, payload.get("limited"))
        thread_id = job_route.get("threadId")
        kind = answer_kind(payload.get("redrive", 0))
        answer = self._answer(payload, envelope, mail) if is_parsed else _not_readable(payload)
        asks = job_route.get("role") == SenderRole.EDITOR and Command.UNDO in answer.actions
        done = self.pool.jobs.get(self._job_id(payload)) if asks else None
        approver = self._approver_of(done)
        told = answers.tell_approver(answer, approver.address) if approver else answer
        self._write(told, email_id, mail, thread_id, kind)
        if mail.in_reply_to or mail.references:
            self._close_settled(self.pool.jobs.get(self._job_id(payload)), mail)
        if done:
            self._ask_approver(done, mail, kind.replace(ANSWER, APPROVAL))
        return {"replied": True}

    def _close_settled(self, job: Job | None, mail: ParsedMail) -> None:
        """Mails of its conversation that were not understood need no person after one that was done, or declines."""
        if job is None or job.outcome is not JobOutcome.SUCCEEDED or job.result is None:
            return
        if not (job.result.commit or declines(mail.text)):
            return
        for one in self.pool.jobs.settled_jobs(job.key, _LOOKED_AT):
            if (
                one.outcome is JobOutcome.FAILED
                and needs_person(one)
                and one.thread_id == job.thread_id
                and one.thread_order < job.thread_order
            ):
                self.mail_deps.raw_mails.note_closed(one.email_id)
                self.events.emit(Event(EventKind.MAIL_CLOSED, one.email_id, data={"by": "the sender's next mail"}))

    def _ask_approver(self, job: Job, mail: ParsedMail, kind: str) -> None:
        """Show a change that its sender may not publish to the person who may, pictures and all."""
        if approver := self._approver_of(job):
            to = replace(mail, sender=approver.address)
            answer = answers.ask_approval(self._answer_settled(job, to, approver.role), mail)
            self._write(answer, job.email_id, to, job.thread_id, kind)

    def _approver_of(self, job: Job | None) -> Sender | None:
        """Who is shown the change of this job; None where it is public, or the site has no such person."""
        project = self.mail_deps.directory.project(job.key.project_id) if job else None
        if not job or not job.result or job.result.is_public or not project or not project.approver:
            return None
        approver = sender_of(self.mail_deps.directory, project.project_id, project.approver)
        return approver if approver and approver.role.may(Command.PUBLISH) else None

    def _approver_asked(self, thread_id: str) -> str:
        """The address that was sent the newest change of a conversation, while that is not public."""
        thread = self.mail_deps.threads.get(thread_id)
        jobs = self.pool.jobs.settled_jobs(thread.key, _LOOKED_AT) if thread else ()
        newest = next((one for one in jobs if one.thread_id == thread_id and one.result and one.result.commit), None)
        approver = self._approver_of(newest)
        if newest is None or approver is None or newest.command is Command.PUBLISH:
            return ""
        sent = [one.reply for one in self.outbox.of(newest.email_id) if one.reply.kind.startswith(APPROVAL)]
        return approver.address if any(one.recipient == approver.address for one in sent) else ""

    def _ask_sender(self, email_id: str, mail: ParsedMail) -> bool:
        """Ask the registered address once about a held mail, and not too often on one day."""
        if any(entry.reply.kind == CONFIRM for entry in self.outbox.of(email_id)):
            return True
        token = new_token()
        question = SenderQuestion(digest_of(token), email_id, mail.sender, self.now())
        if not self.mail_deps.confirmations.ask(question, MAX_QUESTIONS_A_DAY):
            return False
        shown, asked = self.mail_deps.shown_whole(email_id), replace(mail, subject="Did you write this?")
        answer_to = answer_address(self.mail_deps.mailbox, token) if shown else ""
        page = answer_page(self.public_url, token) if shown else ""
        self._write(answers.ask_sender(mail.subject, shown, page), email_id, asked, None, CONFIRM, answer_to)
        return True

    def _tell_limit(self, key: str, mail: ParsedMail, told: Payload | None) -> Payload:
        """Tell a person once in an hour, and `told` so once more when it is over, of all the mails.

        The notices are named after the key and the hour, so that there is one of each.
        """
        if told is None:
            now = self.now()
            name = f"limit/{key}/{hour_of(now)}"
            self._write(answers.too_many(mail), name, mail, None, kind=LIMITED)
            is_first = any(mail.message_id.encode() in one.reply.raw for one in self.outbox.of(name))
            until = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            return {"replied": True, "isFirst": is_first, "until": f"{until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}
        began = datetime.fromisoformat(told["until"]) - timedelta(hours=1)
        subjects = self._not_done(key, began, began)
        if len(subjects) > 1:  # of one alone its sender has been told
            name = f"limit/{key}/{hour_of(began)}"
            self._write(answers.not_done(subjects), name, mail, None, kind=f"{LIMITED}-list")
        return {"replied": len(subjects) > 1}

    def _not_done(self, key: str, since: datetime, until: datetime) -> list[str]:
        """The subjects of the mails beyond the hourly limit that were not done since, either."""
        counted = self.mail_deps.rates.counted(limited_scope(key), since, until)
        left = [one for one in counted if self.pool.jobs.get(job_id_of(one, 1)) is None]
        left.sort(key=lambda one: self.mail_deps.read(one).envelope.received_at)
        return [self._subject_of(one) for one in left]

    def _is_admitted(self, payload: Payload, envelope: Envelope, mail: ParsedMail) -> bool:
        """Whether the sender was admitted; a mail that was not judged before is judged now."""
        if (payload.get("job") or {}).get("route") in ("refused", CONFIRMED):
            return False
        judged = (payload.get("sender") or {}).get("verdict")
        if judged == "admitted":
            return True
        return isinstance(self.mail_deps.judge_stored(payload["emailId"], envelope, mail), Admitted)

    def _write(
        self, answer: Answer, email_id: str, mail: ParsedMail, thread_id: str | None, kind: str, reply_to: str = ""
    ) -> None:
        now, address, thread = self.now(), self.mail_deps.mailbox.address, thread_id or ""
        reply = compose(
            answer, email_id=email_id, mail=mail, mailbox=address, sent_at=now, kind=kind, thread_id=thread,
            reply_to=reply_to, brand=self.brand, earlier=self.mail_deps.answered_mails(mail),
        )  # fmt: skip
        with self.mail_deps.atomically():
            if thread_id and not self.renamed:
                self.mail_deps.threads.add_message(thread_id, reply.message_id, email_id)
            is_new = self.outbox.put(reply, now)
        if is_new:
            self.events.emit(Event(EventKind.REPLY_WRITTEN, email_id, data={"headline": answer.headline}))
        self.wake_outbox()

    def _answer(self, payload: Payload, envelope: Envelope, mail: ParsedMail) -> Answer:
        email_id, job_route = payload["emailId"], payload.get("job") or {}
        if (payload.get("answer") or {}).get("gaveUp"):
            return answers.gave_up(mail, self._refused(email_id, mail))
        if job_route.get("route") == "ask":
            return self._ask_which(envelope, mail)
        if job_route.get("route") == NOT_THEIRS:
            approver = self._approver_asked(job_route["threadId"]) if mail.command is Command.PUBLISH else ""
            return answers.not_theirs(mail, approver)
        if job_route.get("route") == "command":
            return self._answer_command(payload, mail)
        role = SenderRole(job_route.get("role", SenderRole.EDITOR))  # as it was when the mail was read
        return self._answer_job(self._job_id(payload), mail, role)

    @staticmethod
    def _job_id(payload: Payload) -> str:
        found = (payload.get("job") or {}).get("jobId")
        return str(found or job_id_of(payload["emailId"], payload.get("redrive", 0)))

    def _answer_job(self, job_id: str, mail: ParsedMail, role: SenderRole) -> Answer:
        job = self.pool.jobs.get(job_id)
        if job is None or job.outcome is None:
            return answers.gave_up(mail)
        if job.interruptions:  # interrupted before the workflow awaited it: the last one was not reported
            self.interruptions.record(job, ANOTHER_THREAD, self.now())
        return self._answer_settled(job, mail, role)

    def _answer_settled(self, job: Job, mail: ParsedMail, role: SenderRole) -> Answer:
        if job.outcome is None or job.result is None:
            return answers.gave_up(mail)
        # Its date had come, or its agent ended with an undo.
        taken_back = job.result.due_at or job.result.undone
        command = Command.UNDO if taken_back else job.command
        # Only lists of changes say who asked: a look-up for each reply is a call that is billed.
        listed = job.result.published or job.result.waiting
        reader = sender_of(self.mail_deps.directory, job.key.project_id, mail.sender) if listed else None
        answer = answers.answer_job(
            replace(mail, command=command), job.outcome, job.result, self._refused(job.email_id, mail),
            shows_cost=self.brand.shows_cost, role=role, reader=reader.key.user_id if reader else "",
        )  # fmt: skip
        with suppress(Permanent):  # a picture that is gone is not worth a failure
            return replace(answer, pictures=tuple(map(self.mail_deps.blobs.get, job.result.pictures)))
        return answer

    def _answer_command(self, payload: Payload, mail: ParsedMail) -> Answer:
        if payload["job"]["command"] == Command.STOP:
            stopped = (payload.get("answer") or {}).get("stopped", 0)
            return answers.stopped(stopped)
        thread = self.mail_deps.threads.get(payload["job"]["threadId"])
        project = self.mail_deps.directory.project(thread.key.project_id) if thread else None
        wishes = project.wishes if project else ()
        if payload["job"]["command"] in (Command.REMEMBER, Command.FORGET):
            wish = wish_in(mail.text, mail.sender_name)
            exact_only = project is not None and project.agent in ("builtin", "auto")
            return answers.told_wish(*(wish or (Command.REMEMBER, "")), wishes, exact_only=exact_only)
        return answers.report_status(self._status_of(thread.key, wishes) if thread else PersonStatus(wishes=wishes))

    def _ask_which(self, envelope: Envelope, mail: ParsedMail) -> Answer:
        entitled = self.mail_deps.entitlements(mail)
        found = identify(envelope, mail, entitled, self.mail_deps.threads, self.mail_deps.mailbox)
        if isinstance(found, Ambiguous):
            return answers.choose_project(found.project_ids, found.addresses, found.named)
        return answers.gave_up(mail)

    def _status_of(self, key: ProjectUser, wishes: Sequence[str]) -> PersonStatus:
        """Also the questions that a person has not answered, and their changes that they have not published."""
        now, busy = self.now(), self.pool.jobs.open_jobs(key)
        mine = self.pool.jobs.settled_jobs(key, _STATUS_JOBS)
        asked = unanswered(mine, now - _ANSWERED_WITHIN, {job.thread_id for job in busy})
        subjects = [self._subject_of(job.email_id) for job in asked]
        if len(mine) == _STATUS_JOBS:
            subjects.append(f"only your last {_STATUS_JOBS:,} mails were looked at")
        project, own = self.mail_deps.directory.project(key.project_id), key.user_id
        others = {one.asked_by for one in project.waiting_then} - {own, "", None} if project else set()
        theirs = [self.pool.jobs.settled_jobs(ProjectUser(key.project_id, str(one)), _STATUS_JOBS) for one in others]
        settled = sorted(chain(mine, *theirs), key=lambda job: job.settled_at or now, reverse=True)
        left = not_published(settled, project)
        waiting = [one.words if one.asked_by == own else answers.line_of(one, own) for one in left]
        not_done = self._not_done(key.text, now - timedelta(days=1), now)
        recent = [job for job in mine if job.settled_at and job.settled_at >= now - _ANSWERED_WITHIN]
        with_person = [self._subject_of(job.email_id) for job in self._with_person(recent)]
        lines = [self._status_line(job) for job in busy]
        return PersonStatus(lines, wishes, subjects, waiting, not_done, with_person)

    def _with_person(self, settled: Sequence[Job]) -> list[Job]:
        """The jobs that were not understood or given up, and that no person has looked at yet."""
        newest: dict[str, Job] = {}
        for job in settled:
            newest.setdefault(job.email_id, job)
        left = (job for job in newest.values() if needs_person(job))
        return [job for job in islice(left, _LOOKED_AT) if not self._is_looked_at(job.email_id)]

    def _is_looked_at(self, email_id: str) -> bool:
        answered = any(one.reply.kind.startswith(BY_OPERATOR) for one in self.outbox.of(email_id))
        return answered or self.mail_deps.raw_mails.is_closed(email_id)

    def _subject_of(self, email_id: str) -> str:
        mail = self.mail_deps.parsed_mails.load(email_id)
        return mail.subject if mail and mail.subject else "(no subject)"

    def _status_line(self, job: Job) -> str:
        subject = self._subject_of(job.email_id)
        words = {JobState.RUNNING: "in work now", JobState.QUEUED: "waits its turn"}
        if job.result and job.held is DeferReason.LATER:
            when = self._date_of(job)
            return f"{subject}: stays until {when}" if job.result.commit else f"{subject}: will be done on {when}"
        return f"{subject}: {_HELD[job.held] if job.held in _HELD else words.get(job.state, 'being prepared')}"

    def _of_thread(self, key: ProjectUser, thread_id: str) -> list[Job]:
        return [job for job in all_open(self.pool.jobs, key) if job.thread_id == thread_id]

    def _refused(self, email_id: str, mail: ParsedMail) -> tuple[RefusedAttachment, ...]:
        if not mail.attachment_count:
            return mail.refused_attachments
        lines = self.mail_deps.manifest.of(email_id)
        return (*(line for line in lines if isinstance(line, RefusedAttachment)), *mail.refused_attachments)


def needs_person(job: Job) -> bool:
    """Whether its mail said that a person looks at it."""
    not_understood = job.result is not None and job.result.error == NOT_UNDERSTOOD
    return not_understood or job.outcome is JobOutcome.DEAD


def unanswered(settled: Sequence[Job], since: datetime, busy: Collection[str]) -> list[Job]:
    """The jobs whose question is the last word of a conversation; `settled` are one person's, the newest first.

    What shall go public, a publication that left nothing back has answered, in whatever conversation.
    """
    last: dict[str, Job] = {}
    published: set[str] = set()
    is_all_public = False
    for job in settled:
        last.setdefault(job.thread_id, job)
        result = job.result
        if is_all_public and (job.command is Command.PUBLISH or (result and result.commit)):
            published.add(job.job_id)
        is_all_public |= (
            job.command is Command.PUBLISH and result is not None and result.is_public and not result.waiting
        )
    asked = (job for job in last.values() if job.result and job.result.question and job.thread_id not in busy)
    asked = (job for job in asked if job.job_id not in published)
    return [job for job in asked if job.settled_at and job.settled_at >= since]


def not_published(settled: Sequence[Job], project: Project | None = None) -> list[ChangeLine]:
    """The changes of these jobs that wait: those that their newest publication left back, and those made since.

    After an operator's rollback it begins with all changes that waited then: `publish all` brings them all. The jobs
    are those of one person, and of everybody whose changes waited then; the newest first.
    """
    since = project.rolled_back_at if project else 0.0
    waiting = list(project.waiting_then) if project else []
    people = {job.key.user_id for job in settled} | {one.asked_by for one in waiting}
    for job in reversed([one for one in settled if one.settled_at and one.settled_at.timestamp() > since]):
        result, user_id = job.result, job.key.user_id
        if job.outcome is not JobOutcome.SUCCEEDED or result is None:
            continue
        if result.undone:
            if undone := next((one for one in reversed(waiting) if _is_same(one, result.undone)), None):
                waiting.remove(undone)
            waiting.extend(result.waiting)
        elif result.is_public or (job.command is Command.PUBLISH and not result.question):
            waiting = [one for one in result.waiting if one.asked_by in people]
        elif result.commit:
            waiting.append(ChangeLine(result.summary.partition("\n\n")[0], user_id, result.commit))
    return waiting


def _is_same(one: ChangeLine, other: ChangeLine) -> bool:
    """By commit; what an earlier release stored has none, and the newest one of these words is meant."""
    return one.commit == other.commit if one.commit and other.commit else one.words == other.words


def _not_readable(payload: Payload) -> Answer:
    return answers.not_readable(words_of((payload.get("error") or {}).get("Cause", "it is damaged")))


def _runs_yet(job: Job, now: datetime) -> bool:
    return job.started_at is not None and job.started_at > now - _LONGEST_RUN


def _reason(payload: Payload) -> str:
    error = payload.get("error") or {}
    name = error.get("Error") or "unknown error"
    cause = words_of(error.get("Cause") or "") or next((words for part, words in _CAUSES.items() if part in name), "")
    return f"{name}: {cause or 'no cause is given'}"[:_MAX_REASON]
