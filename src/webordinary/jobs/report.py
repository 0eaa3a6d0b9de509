"""The Settlement of each outcome, with texts for the customer and the operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from webordinary.jobs.deploy import EditDeployment, PublicDeployment
from webordinary.jobs.history import Entangled, MayNotPublish, PutBack, Unchosen, WaitingChange
from webordinary.jobs.page_checks import Flawed, SiteComparison
from webordinary.jobs.ports import Answered, Asked, Changed, NotUnderstood
from webordinary.jobs.run import JobRun
from webordinary.jobs.site_files import Stage, address_of
from webordinary.jobs.source import BuildFailed, InvalidChange, MergeConflict, PastChange
from webordinary.mail.confirm import ConfirmationAnswer, answer_in, declines
from webordinary.mail.parsing.commands import ALL
from webordinary.mail.replies.answers import ANOTHER_PUBLISHES, NOT_PUBLIC_YET, line_of
from webordinary.model.jobs import NOT_UNDERSTOOD, ChangeLine, JobOutcome, JobResult, Settlement
from webordinary.model.mail import Attachment, AttachmentKind, Instruction

LISTED_FILES = 50
LOG_CHARACTERS = 8000
_CHOICES = 10
_DIGITS = 8
_LISTED_CHANGES = 20
NOT_ALLOWED = "not allowed on this site; see `webordinary project set --allow-host`"
NOT_A_PUBLISHER = "the sender's role does not allow it now; see `webordinary project role`"
ON_PUBLIC_SITE = "This is on your public site now."
NOTHING_WAITS = "No change of this conversation waits to be published."
NO_LONGER_PUBLIC = "Your public site does not show it any more, either."
STILL_PUBLIC = (
    "Your public site still shows it: there it cannot be separated from other changes. Reply “publish all” to give "
    "the public site the state of the edit site, or write in words how it should look."
)


NOT_YOURS = (
    "Your public site still shows it: you may ask for changes, and another person publishes them. That person's "
    "“publish” in this conversation takes it back there, too."
)


def of_agent(result: Answered | Asked | NotUnderstood) -> Settlement:
    """The agent ended without a change."""
    match result:
        case Answered(text=text):
            return Settlement(JobOutcome.SUCCEEDED, JobResult(text))
        case Asked(question=question):
            return Settlement(JobOutcome.SUCCEEDED, JobResult(question, question=question))
        case NotUnderstood(text=text):
            return Settlement(JobOutcome.FAILED, JobResult(text, error=NOT_UNDERSTOOD))


def of_date(run: JobRun, done: Settlement) -> Settlement:
    """The end of a job; what it takes back on a date is told so."""
    due_at = run.due_at if run.takes_back else None
    return replace(done, result=replace(done.result, due_at=due_at.isoformat())) if due_at else done


def of_change_that_stays() -> Settlement:
    """A change that was wanted until a date, and now for good."""
    return Settlement(JobOutcome.CANCELLED, JobResult("The date is dropped: the change stays on your site."))


def of_taken_back_already() -> Settlement:
    """The date has come of a change that does not stand any more."""
    words = "Today this change was to be taken back; it is not on your site any more, so there was nothing to do."
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words))


def of_no_words(files: Sequence[Attachment]) -> Settlement:
    """A mail without text: asks back instead of running an agent."""
    if files:
        names = ", ".join(file.name for file in files[:5])
        words = f"I got {names}, but no words with it. What shall I do with it? Please reply."
    else:
        words = (
            "Your mail came without words, so I do not know what to change. Reply with what you wish, as you would say "
            "it to a person, for example: change the title of the homepage to Spring Sale."
        )
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words, question=words))


def of_answer_to_failure(text: str) -> Settlement | None:
    """A plain no or yes after “Nothing was changed”; None where the mail says more."""
    if declines(text):
        words = "All right, I leave it as it is."
    elif answer_in(text) is ConfirmationAnswer.YES:
        words = (
            "Thank you. The person who looks after your site sees your mail and answers you here. To have it done "
            "sooner, write it again in other words."
        )
    else:
        return None
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words))


def of_rival_files(instruction: Instruction) -> Settlement:
    """An answer brings files beside those of the mail that it is about: asks back, as either may be lost."""
    before, now = (", ".join(one.name for one in some[:5]) for some in (instruction.rivals, instruction.attachments))
    words = (
        f"Your earlier mail brought {before}, and your answer brought {now}, so nothing was changed yet. Which do you "
        "mean? Reply “1” for the earlier one, “2” for the new one, or “both”."
    )
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words, question=words))


def with_unused(run: JobRun, done: Settlement) -> Settlement:
    """Named are the files that an agent without a model cannot use: all but photos. Other agents read them."""
    files = [one.sent_as or one.name for one in run.instruction.attachments if one.kind is not AttachmentKind.IMAGE]
    if not files or not run.agent_is_free:
        return done
    return replace(done, result=replace(done.result, unused=tuple(files[:_LISTED_CHANGES])))


def of_no_difference(result: Changed) -> Settlement:
    """The agent reports a change, but no file differs."""
    words = f"Nothing needed to change: the site is already as you asked. {result.summary}".strip()
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words))


def note_on(outcome: MergeConflict | BuildFailed | InvalidChange | Flawed) -> str:
    """The note to the agent for its second try, which starts from the current site."""
    if isinstance(outcome, MergeConflict):
        return (
            f"Your first try could not be published: somebody else changed the same lines{_in(outcome.files)} "
            "meanwhile. The workspace now holds the newest state, without your change. Follow the instruction again, "
            "on top of it."
        )
    if isinstance(outcome, InvalidChange):
        return (
            f"Your first try could not be published: {outcome.reason} The workspace holds the state before your "
            "change. Follow the instruction again, without that."
        )
    if isinstance(outcome, Flawed):
        return (
            "Your first try could not be published. The workspace holds the state before your change. Follow the "
            f"instruction again, and avoid this:\n{_flaws(outcome)}"
        )
    log = (outcome.log or outcome.reason)[-LOG_CHARACTERS:]
    return (
        "Your first try could not be published: the site did not build with it. The workspace holds the state before "
        f"your change. Follow the instruction again, and avoid this:\n{log}"
    )


def _flaws(flawed: Flawed) -> str:
    lines = [f"{flaw} on the page {page!r}: {detail}" for flaw, page, detail in flawed.findings]
    return "\n".join([*lines, *(f"new on this site and not allowed: {host}" for host in flawed.refused)])


def of_deployment(
    run: JobRun, outcome: EditDeployment | MergeConflict | BuildFailed | InvalidChange | Flawed
) -> Settlement:
    """The change is on the edit site, or the site is unchanged."""
    match outcome:
        case EditDeployment(stands=False, change=change):
            words = (
                "The site was taken back to an earlier state meanwhile; your change is not on it. "
                "Write again if you still want it."
            )
            return Settlement(JobOutcome.FAILED, JobResult(words, error=f"{change.commit} was rolled back or undone"))
        case EditDeployment(change=change, page=page, pictures=pictures):
            files = run.project.names_of(change.changed_files)[:LISTED_FILES]
            result = JobResult(change.summary, change.commit, run.edit_url(page), None, files, pictures=pictures)
            return Settlement(JobOutcome.SUCCEEDED, _compared(result, outcome.comparison))
        case Flawed(refused=refused):
            words = (
                "Your change was left out, and the site is as it was: it would bring something to your pages that the "
                f"person who looks after your site has not allowed yet ({_named(refused)})."
            )
            return Settlement(JobOutcome.FAILED, JobResult(words, error=f"{NOT_ALLOWED}: {', '.join(refused)}"))
        case MergeConflict(files=files):
            return Settlement(JobOutcome.FAILED, _conflict(files))
        case InvalidChange(reason=reason):
            words = f"Your change was left out, and the site is as it was: {reason}"
            return Settlement(JobOutcome.FAILED, JobResult(words, error=reason))
        case BuildFailed(reason=reason, log=log):
            words = f"The site could not be built with your change, so it stays as it was. {reason}"
            return _unbuilt(run, words, log or reason)


def _unbuilt(run: JobRun, words: str, log: str) -> Settlement:
    if run.deps.releases.current(run.project.project_id, Stage.EDIT) is None:  # it was never built
        words = (
            "This site cannot be built at the moment, for a reason that is not your change. "
            "The people who run the site see that, and your mail is kept."
        )
    return Settlement(JobOutcome.FAILED, JobResult(words, error=log[-LOG_CHARACTERS:]))


def _compared(result: JobResult, comparison: SiteComparison) -> JobResult:
    return replace(
        result,
        pages_total=comparison.pages_total,
        pages_changed=comparison.pages_changed,
        changed_pages=comparison.changed_pages,
        checks=comparison.findings,
        is_checked=comparison.is_checked,
        is_restyled=comparison.is_restyled,
    )


def _named(refused: Sequence[str]) -> str:
    return ", ".join("a new script" if one == "script" else one for one in refused)


def of_publication(
    run: JobRun, outcome: PublicDeployment | Entangled | Unchosen | PutBack | MayNotPublish | BuildFailed
) -> Settlement:
    """The conversation's changes are public, or the reply asks which changes are meant."""
    match outcome:
        case PublicDeployment(release=release, brought=brought, flipped=flipped):
            url = run.deps.site_url(run.project.project_id, Stage.PUBLIC)
            is_public = bool(brought) or flipped
            words = ON_PUBLIC_SITE if is_public else NOTHING_WAITS
            if outcome.comparison.pages_changed == 1 and len(outcome.comparison.changed_pages) == 1:
                url += address_of(outcome.comparison.changed_pages[0][0])
            result = JobResult(words, release.name, url, is_public=is_public, published=lines_of(brought))
            result = replace(result, waiting=_stays_back(outcome))
            return Settlement(JobOutcome.SUCCEEDED, _compared(result, outcome.comparison))
        case Entangled(others=(), files=files):
            words = (
                f"This cannot go public by itself: it touches the same lines{_in(files)} as other changes that are "
                "not public yet. Nothing was published. Reply “publish all” to publish everything."
            )
        case Entangled(others=others, files=files):
            words = (
                f"This cannot go public by itself: it touches the same lines{_in(files)} as these changes of another "
                f"conversation:\n\n{_listed(run, others)}\n\nNothing was published. Shall both go public? Reply "
                "“publish both”."
            )
        case Unchosen(waiting=waiting):
            words = (
                "This conversation has no change of its own. These changes are not public yet:\n\n"
                f"{_listed(run, waiting)}\n\nReply “publish all” to publish all of them, or answer “publish” to the "
                "mail about the change that you mean."
            )
        case PutBack(changes=changes):
            words = (
                "These changes were taken back, and are on your edit site again, because the person who looks after "
                f"your site has put back an earlier state:\n\n{_listed(run, changes)}\n\nNothing was published. "
                "Reply “publish all” to publish them, too, or write in words what shall not be there."
            )
        case MayNotPublish():
            return Settlement(JobOutcome.FAILED, JobResult(ANOTHER_PUBLISHES, error=NOT_A_PUBLISHER))
        case BuildFailed(reason=reason, log=log):
            words = f"The public site could not be built with this, so it stays as it was. {reason}"
            return _unbuilt(run, words, log or reason)
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words, question=words))


def of_both(done: Settlement, public: Settlement) -> Settlement:
    """A change and its publication, asked for in one mail; the change stays where the publication did not work."""
    first, second = done.result, public.result
    words = first.summary if second.question else f"{first.summary}\n\n{second.summary}".strip()
    url = second.url if second.is_public else first.url or second.url
    result = replace(first, summary=words, url=url, question=second.question, error=second.error)
    result = replace(result, is_public=second.is_public, published=second.published, waiting=second.waiting)
    return Settlement(JobOutcome.SUCCEEDED, result)


def of_edit_alone(done: Settlement) -> Settlement:
    """A change whose sender also asked to publish it, and may not."""
    return replace(done, result=replace(done.result, summary=f"{done.result.summary}\n\n{NOT_PUBLIC_YET}"))


def of_undo(
    run: JobRun,
    deployment: EditDeployment,
    public: PublicDeployment | Entangled | Unchosen | PutBack | MayNotPublish | BuildFailed | None,
) -> Settlement:
    """The change is taken back on the edit site, and on the public site if it was there and can be separated."""
    settled = of_deployment(run, deployment)
    change, customer = deployment.change, run.job.key.user_id
    result = settled.result
    if settled.outcome is JobOutcome.SUCCEEDED:
        taken_back = ChangeLine(undone_words(change.summary), customer, change.undoes)
        result = replace(result, undone=taken_back)
    if public is None:
        return replace(settled, result=result)
    is_public = isinstance(public, PublicDeployment)
    words = NOT_YOURS if isinstance(public, MayNotPublish) else STILL_PUBLIC
    summary = f"{result.summary}\n\n{NO_LONGER_PUBLIC if is_public else words}"
    waiting = () if is_public else (ChangeLine(change.summary, customer, change.commit),)
    return replace(settled, result=replace(result, summary=summary, is_public=is_public, waiting=waiting))


_UNDONE = "Undone: "


def words_of_undo(summary: str) -> str:
    """The text about a change that is taken back."""
    return f"{_UNDONE}{summary}"


def undone_words(summary: str) -> str:
    """What `words_of_undo` was made of."""
    return summary.removeprefix(_UNDONE)


def lines_of(changes: Sequence[WaitingChange]) -> tuple[ChangeLine, ...]:
    """The changes for a list, bounded."""
    lines = tuple(ChangeLine(one.words, one.customer, one.commit) for one in changes[:_LISTED_CHANGES])
    return lines if len(lines) == len(changes) else (*lines, ChangeLine(f"and {len(changes) - len(lines)} more"))


def _listed(run: JobRun, changes: Sequence[WaitingChange]) -> str:
    return "\n\n".join(line_of(one, run.sender) for one in lines_of(changes))


def _stays_back(public: PublicDeployment) -> tuple[ChangeLine, ...]:
    lines = lines_of(public.waiting)
    if not public.unowned:
        return lines
    commits = "1 change" if public.unowned == 1 else f"{public.unowned} changes"
    return (*lines, ChangeLine(f"{commits} made in the repository itself"))


def of_nothing_to_undo() -> Settlement:
    """No change to undo."""
    words = (
        "There is nothing to undo: no change that was asked for in this conversation is on the site. To take back one "
        "of another conversation, reply “undo” to the mail that told you of it."
    )
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words))


def of_undone_already() -> Settlement:
    """A “yes” to a question about an undo, after the sender has undone the change by another mail."""
    words = (
        "The change was taken back already, so I took nothing else back. To take back the change before it, too, "
        "reply “undo”."
    )
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words))


def of_ambiguous_undo(named: str, choices: Sequence[PastChange]) -> Settlement:
    """Ask back which change to undo; without a name, the answered change is not on the site any more."""
    if not choices:
        return of_nothing_to_undo()
    why = f"I cannot tell which change you mean by “{named}”" if named else "That change is not on the site any more"
    why = "I take back one change at a time" if named == ALL else why
    lines = "\n\n".join(f"undo {one.change.commit[:_DIGITS]}\n({one.title})" for one in choices[:_CHOICES])
    words = f"{why}, so nothing was changed. Reply with one of these lines to take that change back:\n\n{lines}"
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words, question=words))


def of_undo_conflict(files: tuple[str, ...]) -> Settlement:
    """Later changes conflict with the undo."""
    words = (
        f"I could not undo it: later changes touched the same lines{_in(files)}. Nothing was changed. "
        "Please write in words how it should look."
    )
    return Settlement(JobOutcome.FAILED, JobResult(words, error=f"revert conflicts in {', '.join(files)}"))


def _conflict(files: tuple[str, ...]) -> JobResult:
    words = (
        f"Somebody else changed the same lines{_in(files)} while I was working, so I left your change out and "
        "nothing was lost. Please look at the site as it is now and send your wish again if you still want it."
    )
    return JobResult(words, error=f"conflict with main in {', '.join(files)}")


def _in(files: tuple[str, ...]) -> str:
    return f" of {', '.join(files[:5])}" if files else ""
