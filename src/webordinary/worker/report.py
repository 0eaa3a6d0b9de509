"""Stage: what became of the job, in words for the customer and for the operator."""

from __future__ import annotations

from collections.abc import Sequence

from webordinary.model.jobs import JobResult, Outcome, Settlement
from webordinary.model.mail import Attachment
from webordinary.site.publish import Published
from webordinary.site.releases import Release, Stage
from webordinary.site.sources import BuildFailed, Conflicted, PastChange, Unfit
from webordinary.site.task import Answered, Asked, Changed, NotUnderstood
from webordinary.worker.run import JobRun

LISTED_FILES = 50
LOG_CHARACTERS = 8000
_CHOICES = 10
_DIGITS = 8
STILL_PUBLIC = "Your public site still shows it. Reply “publish” to take it back there, too."


def of_agent(result: Answered | Asked | NotUnderstood) -> Settlement:
    """The agent ended without a change."""
    match result:
        case Answered(text=text):
            return Settlement(Outcome.SUCCEEDED, JobResult(text))
        case Asked(question=question):
            return Settlement(Outcome.SUCCEEDED, JobResult(question, question=question))
        case NotUnderstood(text=text):
            return Settlement(Outcome.FAILED, JobResult(text, error="the agent did not understand the instruction"))


def of_no_words(files: Sequence[Attachment]) -> Settlement:
    """A mail that says nothing: no agent has to guess, and none is paid for it."""
    if files:
        names = ", ".join(file.name for file in files[:5])
        words = f"I got {names}, but no words with it. What shall I do with it? Please reply and attach it once more."
    else:
        words = (
            "Your mail came without words, so I do not know what to change. Reply with what you wish, as you would say "
            "it to a person, for example: change the title of the homepage to Spring Sale."
        )
    return Settlement(Outcome.SUCCEEDED, JobResult(words, question=words))


def of_no_difference(result: Changed) -> Settlement:
    """The agent was content, yet no file differs."""
    words = f"Nothing needed to change: the site is already as you asked. {result.summary}".strip()
    return Settlement(Outcome.SUCCEEDED, JobResult(words))


def of_edit(run: JobRun, outcome: Settlement | Published | Conflicted | BuildFailed | Unfit) -> Settlement:
    """An edit ended: without a publication, or with one."""
    return outcome if isinstance(outcome, Settlement) else of_publication(run, outcome)


def note_on(outcome: Conflicted | BuildFailed | Unfit) -> str:
    """What the agent is told before it tries once more, from the site as it is now."""
    if isinstance(outcome, Conflicted):
        return (
            f"Your first try could not be published: somebody else changed the same lines{_in(outcome.files)} "
            "meanwhile. The workspace now holds the newest state, without your change. Follow the instruction again, "
            "on top of it."
        )
    if isinstance(outcome, Unfit):
        return (
            f"Your first try could not be published: {outcome.reason} The workspace holds the state before your "
            "change. Follow the instruction again, without that."
        )
    log = (outcome.log or outcome.reason)[-LOG_CHARACTERS:]
    return (
        "Your first try could not be published: the site did not build with it. The workspace holds the state before "
        f"your change. Follow the instruction again, and avoid this:\n{log}"
    )


def of_publication(
    run: JobRun, outcome: Published | Conflicted | BuildFailed | Unfit, *, still_public: bool = False
) -> Settlement:
    """The change is live, or it is not and the site is as it was."""
    match outcome:
        case Published(stands=False, change=change):
            words = (
                "The site was taken back to an earlier state meanwhile; your change is not on it. "
                "Write again if you still want it."
            )
            return Settlement(Outcome.FAILED, JobResult(words, error=f"{change.commit} was rolled back or undone"))
        case Published(change=change, page=page, pictures=pictures):
            files = change.changed_files[:LISTED_FILES]
            words = f"{change.summary}\n\n{STILL_PUBLIC}" if still_public else change.summary
            result = JobResult(words, change.commit, run.edit_url(page), None, files, pictures=pictures)
            return Settlement(Outcome.SUCCEEDED, result)
        case Conflicted(files=files):
            return Settlement(Outcome.FAILED, _conflict(files))
        case Unfit(reason=reason):
            words = f"Your change was left out, and the site is as it was: {reason}"
            return Settlement(Outcome.FAILED, JobResult(words, error=reason))
        case BuildFailed(reason=reason, log=log):
            words = f"The site could not be built with your change, so it stays as it was. {reason}"
            return Settlement(Outcome.FAILED, JobResult(words, error=(log or reason)[-LOG_CHARACTERS:]))


def of_promotion(run: JobRun, release: Release | None) -> Settlement:
    """The public site shows what the edit site shows."""
    if release is None:
        return Settlement(
            Outcome.FAILED,
            JobResult(
                "There is nothing to show on your public site yet: ask for a change first.",
                error="the edit site has no release",
            ),
        )
    url = run.kit.site_url(run.project.project_id, Stage.PUBLIC)
    return Settlement(
        Outcome.SUCCEEDED,
        JobResult("Your public site now shows what the edit site shows.", release.name, url),
    )


def of_nothing_to_undo() -> Settlement:
    """There was nothing to take back."""
    words = (
        "There is nothing to undo: no change that was asked for in this conversation is on the site. To take back one "
        "of another conversation, reply “undo” to the mail that told you of it."
    )
    return Settlement(Outcome.SUCCEEDED, JobResult(words))


def of_undecided_undo(named: str, choices: Sequence[PastChange]) -> Settlement:
    """Ask back which change to take back; without a name, the one that was answered is gone already."""
    if not choices:
        return of_nothing_to_undo()
    why = f"I cannot tell which change you mean by “{named}”" if named else "That change is not on the site any more"
    lines = "\n\n".join(f"undo {one.change.commit[:_DIGITS]}\n({one.title})" for one in choices[:_CHOICES])
    words = f"{why}, so nothing was changed. Reply with one of these lines to take that change back:\n\n{lines}"
    return Settlement(Outcome.SUCCEEDED, JobResult(words, question=words))


def of_undo_in_the_way(files: tuple[str, ...]) -> Settlement:
    """Later changes stand on the one to be undone."""
    words = (
        f"I could not undo it: later changes touched the same lines{_in(files)}. Nothing was changed. "
        "Please write in words how it should look."
    )
    return Settlement(Outcome.FAILED, JobResult(words, error=f"revert conflicts in {', '.join(files)}"))


def _conflict(files: tuple[str, ...]) -> JobResult:
    words = (
        f"Somebody else changed the same lines{_in(files)} while I was working, so I left your change out and "
        "nothing was lost. Please look at the site as it is now and send your wish again if you still want it."
    )
    return JobResult(words, error=f"conflict with main in {', '.join(files)}")


def _in(files: tuple[str, ...]) -> str:
    return f" of {', '.join(files[:5])}" if files else ""
