"""What must be true after any chaos, judged by git history, release folders, Maildir and the agents' journal."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.acceptance.chaos import Promise
from tests.acceptance.waiting import get
from tests.harness.chaos import ChaosHarness

DONE = "Wrote note {}."
GAVE_UP = "We could not do this"
_STEP = re.compile(r"<p>note (\S+) step (\d+) of (\d+)</p>")
_NOTE = re.compile(r"^> note=(\S+) ", re.MULTILINE)
_JOB = re.compile(r"^Job-Id: (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class MainCommit:
    """One change on main."""

    sha: str
    parents: int
    mark: str
    jobs: tuple[str, ...]
    saved: bool


@dataclass(frozen=True)
class Faults:
    """How many mails were treated badly: by origins, release folders and Maildir."""

    lost: int = 0
    twice: int = 0
    given_up: int = 0
    """Although no mail is at fault in a soak."""


def faults(
    harness: ChaosHarness, promises: Sequence[Promise], answers: Mapping[str, list[str]], excused: Collection[str] = ()
) -> Faults:
    """Counts; `excused` are mails that may be given up."""
    shown = Counter[str]()
    for project in sorted({promise.project for promise in promises}):
        shown += Counter(commit.mark for commit in _commits(harness, project))
    texts = {promise.mark: answers.get(promise.message_id, []) for promise in promises}
    done = {mark for mark, said in texts.items() if DONE.format(mark) in "".join(said)}
    kept = {mark for mark, said in texts.items() if GAVE_UP in "".join(said)}
    return Faults(
        lost=len(texts.keys() - done - kept | done - shown.keys()),
        twice=sum(shown[mark] > 1 or len(said) > 1 for mark, said in texts.items()),
        given_up=len(kept - set(excused)),
    )


MOST_STARTS = 3


def lost_workers_of(harness: ChaosHarness) -> Counter[str]:
    """How many workers each mail's job was started by; more than one only if the one before was lost."""
    started = {(logged.event.email_id or "", logged.event.worker) for logged in harness.events("JobStarted")}
    return Counter(email_id for email_id, _ in started)


def problems(harness: ChaosHarness, promises: Sequence[Promise], answers: Mapping[str, list[str]]) -> list[str]:
    """Everything that is wrong, in words; empty when all is well."""
    found = [*_answers(promises, answers)]
    for project in sorted({promise.project for promise in promises}):
        ours = [promise for promise in promises if promise.project == project]
        commits = _commits(harness, project)
        found += [f"{project}: {problem}" for problem in _history(commits)]
        found += [f"{project}: {problem}" for problem in _changes(ours, answers, commits)]
        found += [f"{project}: {problem}" for problem in _pages(harness, project, ours, commits)]
        found += [f"{project}: {problem}" for problem in _releases(harness, project, commits)]
    found += [f"two agents at a time: {line}" for line in harness.journal("overlapped")]
    return found


def given_up(promises: Sequence[Promise], answers: Mapping[str, list[str]]) -> int:
    """Mails that took three workers down with them: answered, and kept for a person."""
    return sum(GAVE_UP in "".join(answers.get(promise.message_id, ())) for promise in promises)


def _answers(promises: Sequence[Promise], answers: Mapping[str, list[str]]) -> Iterator[str]:
    for message_id, texts in answers.items():
        if len(texts) != 1:
            yield f"{message_id} was answered {len(texts)} times"
    for promise in promises:
        text = "".join(answers.get(promise.message_id, ()))
        if DONE.format(promise.mark) not in text and GAVE_UP not in text:
            yield f"{promise.mark} ({promise.message_id}) was answered with {text!r}"


def _history(commits: Sequence[MainCommit]) -> Iterator[str]:
    if any(commit.parents > 1 for commit in commits):
        yield "its history is not linear"
    if any(commit.saved for commit in commits):
        yield "unfinished work is on main"
    for job, times in Counter(job for commit in commits for job in commit.jobs).items():
        if times != 1:
            yield f"{job} was published {times} times"


def _changes(
    promises: Sequence[Promise], answers: Mapping[str, list[str]], commits: Sequence[MainCommit]
) -> Iterator[str]:
    """Said to be done is done; said to be given up is not there; in the order of each thread."""
    place = {commit.mark: number for number, commit in enumerate(commits)}
    by_file: dict[str, list[Promise]] = defaultdict(list)
    for promise in promises:
        done = DONE.format(promise.mark) in "".join(answers.get(promise.message_id, ()))
        if done != (promise.mark in place):
            yield f"{promise.mark} is {'said to be done but not' if done else 'not said to be done but'} on main"
        if promise.mark in place:
            by_file[promise.file].append(promise)
    for file, thread in by_file.items():
        for earlier, later in pairwise(thread):
            if place[earlier.mark] > place[later.mark]:
                yield f"{file}: {later.mark} overtook {earlier.mark}"


def _pages(
    harness: ChaosHarness, project: str, promises: Sequence[Promise], commits: Sequence[MainCommit]
) -> Iterator[str]:
    """Each change shows once, whole, and in order; read as a visitor reads it."""
    assert harness.up
    published = [commit.mark for commit in commits]
    steps = {promise.mark: promise.steps for promise in promises}
    for file in sorted({promise.file for promise in promises if promise.mark in published}):
        shown = _STEP.findall(get(harness.up, f"/{file}", project))
        order = list(dict.fromkeys(mark for mark, _, _ in shown))
        wanted = [(mark, str(n), of) for mark in order for of in [_of(shown, mark)] for n in range(1, int(of) + 1)]
        if shown != wanted:
            yield f"{file} shows {shown}"
        expected = [promise.mark for promise in promises if promise.file == file and promise.mark in published]
        if [mark for mark in order if mark in steps] != expected:
            yield f"{file} shows {order}, not {expected}"


def _of(shown: Sequence[tuple[str, str, str]], mark: str) -> str:
    return next(of for found, _, of in shown if found == mark)


def _releases(harness: ChaosHarness, project: str, commits: Sequence[MainCommit]) -> Iterator[str]:
    place = harness.data / "sites" / project / "edit"
    for release in (place / "releases").iterdir():
        if not any(commit.sha.startswith(release.name) for commit in commits):
            yield f"release {release.name} belongs to no commit of main"
    shown = (place / "current").resolve().name
    if not commits[-1].sha.startswith(shown):
        yield f"visitors see {shown}, main is at {commits[-1].sha}"


def _commits(harness: ChaosHarness, project: str) -> list[MainCommit]:
    """Main, oldest first."""
    log = harness.git(project, "log", "--reverse", "--format=%x00%H %P%n%B", "main")
    return [_commit(text) for text in log.split("\0")[1:]]


def _commit(text: str) -> MainCommit:
    shas, _, message = text.partition("\n")
    note = _NOTE.search(message)
    sha, *parents = shas.split()
    jobs = tuple(_JOB.findall(message))
    return MainCommit(sha, len(parents), note[1] if note else "", jobs, "\nSaved-For: " in message)
