"""SiteJobs: runs one job of a site from its start to its Settlement. Instructions: the only reader of its mail."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta

from webordinary.jobs import report
from webordinary.jobs.dates import put_off
from webordinary.jobs.deploy import SiteDeployer
from webordinary.jobs.edit import check_out, edit, save_work
from webordinary.jobs.live import deploy_and_report, find_published, publish, undo, with_preview
from webordinary.jobs.run import JobDeps, JobRun
from webordinary.jobs.source import SUBJECT_LENGTH, Workspace
from webordinary.mail.addresses import Mailbox, conversation_in
from webordinary.mail.confirm import ConfirmationAnswer, answer_in, declines
from webordinary.mail.parsing.commands import is_reply, mentions, named_change, own_words
from webordinary.mail.parsing.small_talk import without_own_name
from webordinary.mail.ports import AttachmentManifest, ParsedMails, RawMails, Threads
from webordinary.model.claims import CancelToken, StartedJob
from webordinary.model.errors import NotNow, Permanent
from webordinary.model.events import Events
from webordinary.model.jobs import DeferReason, Job, JobOutcome, Settlement
from webordinary.model.mail import Attachment, Command, Instruction, ParsedMail
from webordinary.model.names import job_id_of
from webordinary.model.projects import existing
from webordinary.pool.ports import Jobs

_MOST_QUESTIONS = 3
"""A customer may be asked about one wish; so many are looked back."""
_SETTLED_LOOKED_AT = 20
"""Of a person's jobs, the newest: a question that is older was not meant by a “yes”."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """Reads instructions from stored mails."""

    parsed_mails: ParsedMails
    manifest: AttachmentManifest
    threads: Threads
    raw_mails: RawMails
    mailbox: Mailbox
    jobs: Jobs

    def of(self, job: Job) -> Instruction:
        """The customer's request, with the accepted attachments."""
        mail = self.parsed_mails.load(job.email_id)
        if mail is None:
            raise Permanent(f"job {job.job_id}: its mail {job.email_id} was never parsed; was a backup restored?")
        files = self._files_of(job.email_id, mail)
        text = without_own_name(mail.text, mail.sender_name)
        told = Instruction(text, own_words(mail.subject), mail.sender, job.command, files)
        if job.command is not Command.EDIT:
            return self._with_change_meant(told, job.email_id, mail)
        if answer_in(mail.text) is ConfirmationAnswer.YES:
            told = replace(told, undone_since=self._undone_since_question(job))
        if not (mail.in_reply_to or mail.references):
            return told
        if answer_in(mail.text) is not ConfirmationAnswer.UNCLEAR or declines(mail.text):
            answered = self._mail_answered(mail)
            before = self.jobs.get(job_id_of(answered)) if answered else None
            told = replace(told, answers_failure=before is not None and before.outcome is JobOutcome.FAILED)
        asked = self._mails_asked_about(job, mail)
        return self._with_wish(told, mail, asked) if asked else told

    def _with_wish(self, told: Instruction, mail: ParsedMail, asked: Sequence[tuple[str, ParsedMail]]) -> Instruction:
        """With the wish and the files of the mails that it answers a question about."""
        told = replace(told, wish=_wish_behind(mail, asked))
        brought = [files for email_id, one in asked if (files := self._files_of(email_id, one))]
        if told.attachments and brought:
            return files_meant(told, brought[0])
        if not brought or len(brought) == 1:
            return replace(told, attachments=told.attachments or next(iter(brought), ()))
        # The answer before this one brought files, too: it may have been asked which are meant.
        (email_id, before), *earlier = asked
        text = without_own_name(before.text, before.sender_name)
        first = self._with_wish(replace(told, text=text, attachments=self._files_of(email_id, before)), before, earlier)
        return files_chosen(told, first) if first.rivals else replace(told, attachments=brought[0])

    def _undone_since_question(self, job: Job) -> bool:
        """Whether an undo, and no question, is the last thing that became of the job's conversation."""
        for one in self.jobs.settled_jobs(job.key, _SETTLED_LOOKED_AT):
            if one.thread_id == job.thread_id and one.result and (one.result.question or one.result.undone):
                return bool(one.result.undone)
        return False

    def _files_of(self, email_id: str, mail: ParsedMail) -> tuple[Attachment, ...]:
        if not mail.attachment_count:
            return ()
        return tuple(line for line in self.manifest.of(email_id) if isinstance(line, Attachment))

    def _with_change_meant(self, told: Instruction, email_id: str, mail: ParsedMail) -> Instruction:
        """With what an `undo` or a `publish` names in its text, and the job whose answer it replies to.

        The mail of a button replies to nothing; the address of the button says which answer it stands in.
        """
        answered, thread_id = self._mail_answered(mail), ""
        if not answered:
            recipient = self.raw_mails.envelope(email_id).recipient
            thread_id, answered = conversation_in(self.mailbox.token(recipient))
        replies = bool(answered or thread_id or mail.in_reply_to or mail.references) or is_reply(mail.subject)
        named = named_change(mail.text, mail.subject, mail.sender_name)
        told = replace(told, named=named, answers=job_id_of(answered) if answered else "", replies=replies)
        asked = self.jobs.get(told.answers) if told.answers and told.command is Command.PUBLISH else None
        is_question = bool(asked and asked.command is Command.PUBLISH and asked.result and asked.result.question)
        return replace(told, confirms=is_question)

    def _mail_answered(self, mail: ParsedMail) -> str:
        return self.threads.mail_of((*mail.in_reply_to, *mail.references[-1:]))  # earlier references: whole thread

    def _mails_asked_about(self, job: Job, mail: ParsedMail) -> list[tuple[str, ParsedMail]]:
        """The earlier mails of this conversation that a mail answers the question about, the newest first."""
        found: list[tuple[str, ParsedMail]] = []
        while len(found) < _MOST_QUESTIONS and (asked := self._mail_answered(mail)):
            before, earlier = self.jobs.get(job_id_of(asked)), self.parsed_mails.load(asked)
            if not (earlier and before and before.thread_id == job.thread_id):
                break
            if not (before.result and before.result.question):
                break
            found.append((asked, mail := earlier))
        return found


def _wish_behind(mail: ParsedMail, asked: Sequence[tuple[str, ParsedMail]]) -> str:
    """What was wished, where this mail answers a question about it in fewer words; else empty.

    Who writes more than a title holds, or more than before, has said it anew.
    """
    wish = mail.text
    for _, earlier in asked:
        if len(wish) <= SUBJECT_LENGTH:
            wish = max(wish, earlier.text or own_words(earlier.subject), key=len)
    return "" if wish == mail.text else wish


_SAYS_NEW = re.compile(
    r"\b(?:instead|rather|attached|better|new|other|this|these|here|stattdessen|lieber|anbei|angehängt\w*|besser\w*|neue?\w*"
    r"|andere?\w*|dies\w*|hier|plutôt|à la place|ci-joint\w*|meilleure?\w*|nouve\w+|autre|cette|ces|voici|en su lugar"
    r"|mejor|adjunt\w+|nuev\w+|otr[ao]|est[ao]s?|aquí|invece|allegat\w+|migliore?|nuov\w+|altr[ao]|quest\w+|ecco"
    r"|in plaats|liever|bijgevoegd\w*|bijlage|nieuwe?|betere|deze|hierbij)\b",
    re.I,
)
_SAYS_BOTH = re.compile(
    r"\b(?:also|too|as well|both|auch|beiden?|zusätzlich|aussi|les deux|également|también|amb[ao]s|anche|entramb[ei]"
    r"|ook|allebei)\b",
    re.I,
)
_SAYS_NOT = re.compile(r"\b(?:not|don't|without|nicht|keine?\w*|ohne|pas|sans|sin|non|senza|niet|geen|zonder)\b", re.I)
_SAYS_FIRST = re.compile(
    r"\b(?:1|first|earlier|old|erste\w*|alte\w*|première?|premier|ancienne?|primer[ao]?|antigu[ao]|prim[ao]|vecchi[ao]"
    r"|eerste|oude)\b",
    re.I,
)
_SAYS_SECOND = re.compile(
    r"\b(?:2|second|new|last|zweite\w*|neue?\w*|letzte\w*|deuxième|seconde?|nouvelle|nouveau|dernière?|segund[ao]"
    r"|nuev[ao]|últim[ao]|second[ao]|nuov[ao]|ultim[ao]|tweede|nieuwe|laatste)\b",
    re.I,
)


def files_meant(told: Instruction, before: tuple[Attachment, ...]) -> Instruction:
    """An answer with files to a question about a mail with files: those that it says, else both sets are `rivals`.

    A mail program may send the files of the mail before once more, and the logo of a signature with each mail.
    """
    known = {one.digest for one in before}
    new = tuple(one for one in told.attachments if one.digest not in known)
    if not new:
        return replace(told, attachments=before)
    is_other_kind = not {one.kind for one in new} & {one.kind for one in before}
    says_not = _SAYS_NOT.search(told.text)
    if is_other_kind or (_SAYS_BOTH.search(told.text) and not says_not):
        return replace(told, attachments=(*before, *new))
    if _SAYS_NEW.search(told.text) and not says_not:
        return replace(told, attachments=new)
    return replace(told, attachments=new, rivals=before)


def files_chosen(told: Instruction, asked: Instruction) -> Instruction:
    """The answer that was asked about, with the files that its sender has chosen now; else it is asked about again."""
    says = [bool(words.search(told.text)) for words in (_SAYS_FIRST, _SAYS_SECOND)]
    both = (*asked.rivals, *asked.attachments)
    if _SAYS_BOTH.search(told.text) or says == [True, True]:
        return replace(asked, attachments=both, rivals=())
    if says == [False, False]:
        return asked
    return replace(asked, attachments=asked.rivals if says[0] else asked.attachments, rivals=())


@dataclass(frozen=True, slots=True)
class ThreadSessions:
    """Stores an agent's session with the mail thread that it belongs to."""

    threads: Threads

    def session_of(self, thread_id: str) -> str:
        thread = self.threads.get(thread_id)
        return thread.agent_session if thread else ""

    def keep_session(self, thread_id: str, session: str) -> None:
        self.threads.save_session(thread_id, session)


MIN_DEFERRAL, MAX_DEFERRAL = timedelta(minutes=5), timedelta(hours=1)


class SiteJobs:
    """The worker's JobRunner for real sites. Thread-safe: each slot serves another key."""

    def __init__(
        self,
        deps: JobDeps,
        instruction_of: Callable[[Job], Instruction],
        events: Events,
        now: Callable[[], datetime],
    ) -> None:
        self._deps, self._instruction_of, self._events, self._now = deps, instruction_of, events, now
        self._deployer = SiteDeployer(deps.workspaces, deps.main, deps.leases, deps.releases, now, deps.wait)
        self._unfinished: dict[str, tuple[JobRun, Workspace]] = {}
        """By job: edits under way, for `save`."""

    def perform(self, started: StartedJob, token: CancelToken) -> Settlement:
        """Run the job. Idempotent: after a crash a second run changes nothing twice.

        Raises ClaimLost, Interrupted, Cancelled, JobTimedOut, NotNow, MustWait, Transient and Permanent.
        """
        job_id, due_at = started.job.job_id, started.job.due_at
        self._unfinished.pop(job_id, None)
        if due_at and self._now() < due_at:
            raise NotNow(DeferReason.LATER, due_at)
        run = self._run_of(started, token)
        check_budget(run)
        settlement = report.of_date(run, self._dispatch(run))
        cost = 0.0 if run.agent_is_free else self._deps.ledger.of_job(job_id)
        return replace(settlement, result=replace(settlement.result, cost_usd=cost)) if cost else settlement

    def find_done(self, started: StartedJob, token: CancelToken) -> Settlement | None:
        """Complete what an earlier attempt brought to main or live; None if it did not get there.

        The claim's fence is on the origin before anything is read: that attempt cannot push any more.
        """
        run = self._run_of(started, token)
        workspace = check_out(run)
        if not workspace.on_main:
            stays = run.takes_back and run.job.cancel_requested
            return report.of_change_that_stays() if stays else find_published(run, workspace)
        then = workspace.made.then if workspace.made else ""
        done = with_preview(run, workspace, follow_up(run, deploy_and_report(run, workspace), then))
        return report.of_date(run, put_off(run, done, then))

    def save(self, started: StartedJob, token: CancelToken) -> None:
        """Save the work of an interrupted edit, if it had begun."""
        unfinished = self._unfinished.pop(started.job.job_id, None)
        if unfinished is not None:
            token.check()
            save_work(*unfinished)

    def _run_of(self, started: StartedJob, token: CancelToken) -> JobRun:
        job, deps = started.job, self._deps
        project_id = job.key.project_id
        instruction, project = self._instruction_of(job), existing(deps.project_of(project_id), project_id)
        run = JobRun(started, instruction, project, token, deps, self._deployer, self._events, self._now)
        if not run.takes_back:
            return run
        undo_job = replace(started, job=job._replace(command=Command.UNDO))
        return replace(run, started=undo_job, instruction=replace(instruction, named=run.takes_back))

    def _dispatch(self, run: JobRun) -> Settlement:
        command = run.job.command
        if command not in (Command.EDIT, Command.UNDO, Command.PUBLISH):
            raise Permanent(f"{command} is answered at once and never becomes a worker's job")
        if command is Command.EDIT and not run.request:
            return report.of_no_words(run.instruction.attachments)
        if run.instruction.answers_failure and (words := report.of_answer_to_failure(run.request)):
            return words
        if run.instruction.rivals:
            return report.of_rival_files(run.instruction)
        workspace = check_out(run)
        if command is Command.PUBLISH:
            return publish(run, workspace)
        if command is Command.UNDO or (workspace.made and workspace.made.undoes):  # an edit may end with an undo
            # Quick to repeat, so an interrupted undo is not saved.
            return with_preview(run, workspace, undo(run, workspace))
        self._remember(run, workspace)
        done, then = edit(run, workspace)
        done = report.with_unused(run, done)
        self._unfinished.pop(run.job.job_id, None)  # what an interruption saves is the edit alone
        return put_off(run, with_preview(run, workspace, follow_up(run, done, then)), then)

    def _remember(self, run: JobRun, workspace: Workspace) -> None:
        for job_id, (other, _) in list(self._unfinished.items()):
            if other.job.key == run.job.key:  # the key's only workspace serves this job now
                self._unfinished.pop(job_id, None)
        self._unfinished[run.job.job_id] = (run, workspace)


def follow_up(run: JobRun, done: Settlement, then: str) -> Settlement:
    """Do what the customer wants after the edit, in the order of the mail; a change that failed is not published.

    An agent reads untrusted pages, so its word alone publishes nothing: the customer's own words must name the command.
    """
    if done.outcome is not JobOutcome.SUCCEEDED or done.result.question:
        return done
    if then not in (Command.PUBLISH, Command.UNDO):
        return done
    if then == Command.UNDO and run.instruction.undone_since:
        return report.of_undone_already()
    said = f"{run.request} {run.instruction.wish}"  # a “yes” may answer a question about it
    if answer_in(run.request) is not ConfirmationAnswer.YES:  # one to another reply of a thread about it does not
        said = f"{run.instruction.subject} {said}"
    if not mentions(Command(then), said):
        return done
    if run.job.cancel_requested:  # what is public already is completed; a stopped mail begins no publication
        public = find_published(run, check_out(run)) if then == Command.PUBLISH else None
        return report.of_both(done, public) if public else done
    if then == Command.PUBLISH and not run.sender_may_publish():
        return report.of_edit_alone(done)
    if then == Command.PUBLISH:
        return report.of_both(done, publish(run, check_out(run)))
    return undo(run, check_out(run)) if then == Command.UNDO and not done.result.commit else done


def check_budget(run: JobRun) -> None:
    """Raise NotNow if the operator paused the project or its agents reached today's budget."""
    now = run.now()
    if run.project.paused:
        raise NotNow(DeferReason.PAUSE, _retry_at(run.job, now))
    cap = run.project.daily_cap_usd or run.deps.daily_cap_usd
    if run.job.command is not Command.EDIT or not cap or run.agent_is_free:
        return
    if run.deps.ledger.on_day(run.project.project_id, now.date()) >= cap:
        tomorrow = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
        raise NotNow(DeferReason.BUDGET, min(_retry_at(run.job, now), tomorrow))


def _retry_at(job: Job, now: datetime) -> datetime:
    """Retry after as long as the job has waited, within bounds.

    `resume` starts deferred jobs at once, but it misses a job that reads the pause at that moment.
    """
    waited = now - (job.queued_at or job.recorded_at)
    return now + min(max(waited, MIN_DEFERRAL), MAX_DEFERRAL)
