"""The log of a process: no loop fills the disk with one complaint."""

from __future__ import annotations

import errno
import json
import logging
import os

import pytest

from webordinary.entrypoints.cli.main import QuietRepeats, _message_of
from webordinary.entrypoints.cli.output import JsonLines


class Seconds:
    """A clock that stands still unless told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def record(words: str, problem: Exception | None = None) -> logging.LogRecord:
    about = (type(problem), problem, None) if problem else None
    return logging.LogRecord("asyncio", logging.ERROR, "", 0, words, None, about)


def test_a_loop_that_fails_at_once_for_want_of_descriptors_logs_one_line_without_a_traceback() -> None:
    quiet = QuietRepeats(Seconds())
    failures = [record("accept failed", OSError(errno.EMFILE, os.strerror(errno.EMFILE))) for _ in range(1000)]
    [logged] = [one for one in failures if quiet.filter(one)]
    assert logged.exc_info is None
    assert logged.getMessage() == "accept failed: OSError: [Errno 24] Too many open files"


def test_a_line_that_changes_is_logged_and_one_that_comes_again_after_a_quiet_minute_counts_what_was_left_out() -> None:
    clock = Seconds()
    quiet = QuietRepeats(clock)
    assert [quiet.filter(record(words)) for words in ("full", "full", "full", "read-only")] == [
        True,
        False,
        False,
        True,
    ]
    clock.now = 61.0
    again = record("full")
    assert quiet.filter(again)
    assert again.getMessage() == "full (2 more like it were not logged)"


def test_a_mistake_of_ours_keeps_its_traceback() -> None:
    told = record("failed", ValueError("a mistake"))
    assert QuietRepeats(Seconds()).filter(told)
    assert told.exc_info


@pytest.mark.parametrize("problem", [MemoryError(), RuntimeError("can't start new thread")])
def test_too_little_memory_is_told_with_what_to_do(problem: Exception) -> None:
    words, _ = _message_of(problem)
    assert "too little memory" in words
    assert "--workers" in words
    assert "unexpected" not in words


def test_lines_of_json_carry_level_logger_message_and_traceback() -> None:
    line = json.loads(JsonLines().format(record("a mail “ü”\nwas refused", ValueError("no"))))
    assert (line["level"], line["logger"], line["message"]) == ("error", "asyncio", "a mail “ü”\nwas refused")
    assert "ValueError: no" in line["traceback"]
    assert line["at"].endswith("+00:00")
