"""A machine without disk space, memory or file descriptors: mails wait, however long it takes, and none is given up.

Each test waits until work has failed more often than a mail may fail. Judged by git history, Maildir and dead letters.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.forgetful_disk import PROGRAMS, ForgetfulDisk, forgetful_disk
from tests.acceptance.soak_kinds import take_all_space
from tests.acceptance.waiting import replies, text_of
from tests.harness.chaos import ChaosCustomer, ChaosHarness, opened, until
from webordinary.model.claims import MAX_ATTEMPTS
from webordinary.model.errors import Transient

NOTES = ("one", "two", "three")
MORE_THAN_A_MAIL_MAY_FAIL = MAX_ATTEMPTS + 1
LACKING_GIT = """\
#!/bin/sh
# The real git, on a machine that has run out of descriptors, or of memory: the kernel kills then.
{limit}
exec {git} "$@"
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[ForgetfulDisk]:
    with forgetful_disk(tmp_path, megabytes=64) as disk:
        yield disk


def waits(harness: ChaosHarness) -> Counter[str]:
    """How often each job was put back because the machine failed it."""
    told = (logged.event for logged in harness.events("JobWaits"))
    return Counter(event.job_id or "" for event in told if event.data.get("machine_fault"))


def have_failed_often(harness: ChaosHarness) -> bool:
    """All failed, and those that came later often; the one under way ran for long, and waits longer for that."""
    found = waits(harness)
    return len(found) == len(NOTES) and sorted(found.values())[1] >= MORE_THAN_A_MAIL_MAY_FAIL


def has_no_space(harness: ChaosHarness) -> bool:
    log = (harness.folder / f"{harness.hands[-1].name}.log").read_text()
    return "disk is full" in log or "No space left" in log


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """All space of this disk is taken, until the block ends."""
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        take_all_space(file.fileno())
        try:
            yield
        finally:
            ballast.unlink()


def judge(harness: ChaosHarness, asked: dict[str, str]) -> None:
    """Every mail is done once and answered once."""
    until(lambda: asked.keys() <= replies(harness.data).keys(), "all answers")
    answers = {message_id: [text_of(reply) for reply in replies(harness.data)[message_id]] for message_id in asked}
    assert {message_id: len(texts) for message_id, texts in answers.items()} == dict.fromkeys(asked, 1)
    assert [mark for message_id, mark in asked.items() if f"Wrote note {mark}." not in answers[message_id][0]] == []
    log = harness.git("amelia", "log", "--format=%B", "main")
    assert {mark: log.count(f"> note={mark} ") for mark in asked.values()} == dict.fromkeys(asked.values(), 1)


def gated(writer: ChaosCustomer, marks: Sequence[str]) -> dict[str, str]:
    """Mails whose agents wait at a gate; their Message-IDs, with what they ask for."""
    return {writer.note(mark, gate=1): mark for mark in marks}


@pytest.mark.needs(*PROGRAMS)
def test_mails_on_a_full_disk_wait_and_are_done_when_there_is_space(tmp_path: Path, disk: ForgetfulDisk) -> None:
    """One is under way, two wait, and what comes then is refused for now. One worker lives on, others are killed."""
    with opened(ChaosHarness(tmp_path / "house", disk=disk.path), workers=2) as harness:
        writer = ChaosCustomer(harness)
        asked = gated(writer, NOTES[:1])
        harness.await_journal("waits", NOTES[0])
        asked |= gated(writer, NOTES[1:])
        with filled(disk.path):
            with pytest.raises(Transient, match="452"):
                writer.note("refused")
            for mark in NOTES:
                harness.open_gate(mark)
            for _ in range(MORE_THAN_A_MAIL_MAY_FAIL):
                until(partial(has_no_space, harness), "the worker to fail")
                harness.hands[-1].kill()
                harness.hire()
        asked[writer.note("later")] = "later"
        judge(harness, asked)


@pytest.mark.needs(*PROGRAMS)
def test_mails_that_come_while_only_the_repositories_disk_is_full_are_done_when_there_is_space(
    tmp_path: Path, disk: ForgetfulDisk
) -> None:
    harness = ChaosHarness(tmp_path / "house")
    (harness.data / "origins").symlink_to(disk.path)
    with opened(harness):
        writer = ChaosCustomer(harness)
        asked = gated(writer, NOTES[:1])
        harness.await_journal("waits", NOTES[0])
        with filled(disk.path):
            harness.open_gate(NOTES[0])
            asked |= {writer.note(mark): mark for mark in NOTES[1:]}
            until(partial(have_failed_often, harness), "work to fail more often than a mail may")
        judge(harness, asked)


@pytest.mark.parametrize("limit", ["kill -9 $$", "ulimit -n 4"], ids=["memory", "descriptors"])
def test_mails_wait_while_there_is_no_memory_or_no_file_descriptor(tmp_path: Path, limit: str) -> None:
    with opened(ChaosHarness(tmp_path / "house")) as harness:
        writer = ChaosCustomer(harness)
        asked = gated(writer, NOTES[:1])
        harness.await_journal("waits", NOTES[0])
        git, real = harness.path / "git", shutil.which("git")
        wrapper = harness.folder / "lacking-git"
        wrapper.write_text(LACKING_GIT.format(limit=limit, git=real))
        wrapper.chmod(0o755)
        wrapper.replace(git)
        harness.open_gate(NOTES[0])
        asked |= {writer.note(mark): mark for mark in NOTES[1:]}
        until(partial(have_failed_often, harness), "work to fail more often than a mail may")
        git.unlink()
        git.symlink_to(real or "git")
        judge(harness, asked)
