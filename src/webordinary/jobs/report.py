"""The Settlement of each outcome, with texts for the customer and the operator."""

from __future__ import annotations

from collections.abc import Sequence

from webordinary.jobs.agent_task import Answered, Asked, Changed, NotUnderstood
from webordinary.jobs.deploy import EditDeployment
from webordinary.jobs.run import JobRun
from webordinary.jobs.site_files import Release, Stage
from webordinary.jobs.source import BuildFailed, InvalidChange, MergeConflict, PastChange
from webordinary.model.jobs import JobOutcome, JobResult, Settlement
from webordinary.model.mail import Attachment

LISTED_FILES = 50
LOG_CHARACTERS = 8000
_CHOICES = 10
_DIGITS = 8
STILL_PUBLIC = "Your public site still shows it. Reply “publish” to take it back there, too."


def of_agent(result: Answered | Asked | NotUnderstood) -> Settlement:
    """The agent ended without a change."""
    match result:
        case Answered(text=text):
            return Settlement(JobOutcome.SUCCEEDED, JobResult(text))
        case Asked(question=question):
            return Settlement(JobOutcome.SUCCEEDED, JobResult(question, question=question))
        case NotUnderstood(text=text):
            return Settlement(JobOutcome.FAILED, JobResult(text, error="the agent did not understand the instruction"))


def of_no_words(files: Sequence[Attachment]) -> Settlement:
    """A mail without text: asks back instead of running an agent."""
    if files:
        names = ", ".join(file.name for file in files[:5])
        words = f"I got {names}, but no words with it. What shall I do with it? Please reply and attach it once more."
    else:
        words = (
            "Your mail came without words, so I do not know what to change. Reply with what you wish, as you would say "
            "it to a person, for example: change the title of the homepage to Spring Sale."
        )
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words, question=words))


def of_no_difference(result: Changed) -> Settlement:
    """The agent reports a change, but no file differs."""
    words = f"Nothing needed to change: the site is already as you asked. {result.summary}".strip()
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words))


def note_on(outcome: MergeConflict | BuildFailed | InvalidChange) -> str:
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
    log = (outcome.log or outcome.reason)[-LOG_CHARACTERS:]
    return (
        "Your first try could not be published: the site did not build with it. The workspace holds the state before "
        f"your change. Follow the instruction again, and avoid this:\n{log}"
    )


def of_deployment(
    run: JobRun, outcome: EditDeployment | MergeConflict | BuildFailed | InvalidChange, *, still_public: bool = False
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
            files = change.changed_files[:LISTED_FILES]
            words = f"{change.summary}\n\n{STILL_PUBLIC}" if still_public else change.summary
            result = JobResult(words, change.commit, run.edit_url(page), None, files, pictures=pictures)
            return Settlement(JobOutcome.SUCCEEDED, result)
        case MergeConflict(files=files):
            return Settlement(JobOutcome.FAILED, _conflict(files))
        case InvalidChange(reason=reason):
            words = f"Your change was left out, and the site is as it was: {reason}"
            return Settlement(JobOutcome.FAILED, JobResult(words, error=reason))
        case BuildFailed(reason=reason, log=log):
            words = f"The site could not be built with your change, so it stays as it was. {reason}"
            return Settlement(JobOutcome.FAILED, JobResult(words, error=(log or reason)[-LOG_CHARACTERS:]))


def of_publication(run: JobRun, release: Release | None) -> Settlement:
    """The public site shows what the edit site shows."""
    if release is None:
        return Settlement(
            JobOutcome.FAILED,
            JobResult(
                "There is nothing to show on your public site yet: ask for a change first.",
                error="the edit site has no release",
            ),
        )
    url = run.deps.site_url(run.project.project_id, Stage.PUBLIC)
    return Settlement(
        JobOutcome.SUCCEEDED,
        JobResult("Your public site now shows what the edit site shows.", release.name, url),
    )


def of_nothing_to_undo() -> Settlement:
    """No change to undo."""
    words = (
        "There is nothing to undo: no change that was asked for in this conversation is on the site. To take back one "
        "of another conversation, reply “undo” to the mail that told you of it."
    )
    return Settlement(JobOutcome.SUCCEEDED, JobResult(words))


def of_ambiguous_undo(named: str, choices: Sequence[PastChange]) -> Settlement:
    """Ask back which change to undo; without a name, the answered change is not on the site any more."""
    if not choices:
        return of_nothing_to_undo()
    why = f"I cannot tell which change you mean by “{named}”" if named else "That change is not on the site any more"
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
