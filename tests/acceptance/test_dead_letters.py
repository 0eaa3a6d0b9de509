"""A mail that cannot be done: the customer is told, the operator is told once, and a redrive does it after all."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.acceptance.killing import kill_tree
from tests.acceptance.waiting import Customer, get, replies, text_of, wait_for_reply, wait_until
from tests.conftest import Up


def dlq(up: Up, *args: object) -> str:
    command = [sys.executable, "-m", "webordinary", "dlq", *map(str, args), "--json", "--data", str(up.data)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def page(up: Up) -> str:
    with urllib.request.urlopen(up.page, timeout=30) as answer:
        return str(answer.read().decode())


def to_operator(data: Path) -> list[str]:
    """What lies in the Maildir that answers nobody."""
    mails = replies(data).get("None", [])
    assert {str(mail["To"]) for mail in mails} <= {"ops@example.com"}
    return [str(mail.get_content()) for mail in mails]


def test_what_was_given_up_is_told_honestly_and_done_after_a_redrive(start_up: Callable[..., Up]) -> None:
    flags = ("--operator", "ops@example.com", "--workers", "1")
    up = start_up(*flags)
    origin, hidden = up.data / "origins" / "amelia.git", up.data / "origins" / "hidden"
    origin.rename(hidden)
    asked = Customer().write(up, "Change the homepage title to Spring Sale")
    given_up = wait_for_reply(up, asked)
    assert "We could not do this" in text_of(given_up)
    assert "a person will look at it" in " ".join(text_of(given_up).split())

    wait_until(up.data, lambda: len(to_operator(up.data)) == 1, "the mail to the operator")
    [letter] = json.loads(dlq(up, "list"))
    assert f"webordinary dlq show {letter['letter_id']}" in to_operator(up.data)[0]
    shown = json.loads(dlq(up, "show", letter["letter_id"]))
    assert (shown["job"]["outcome"], shown["mail"]["sender"]) == ("dead", "scott@example.com")
    red = page(up)
    assert 'role="alert"' in red
    assert f"webordinary dlq redrive {letter['letter_id']}" in red

    kill_tree(up.process.pid)
    up.process.communicate(timeout=60)
    up = start_up(*flags, data=up.data)

    hidden.rename(origin)
    dlq(up, "redrive", letter["letter_id"])
    wait_until(up.data, lambda: len(replies(up.data)[asked]) == 2, "the second answer")
    texts = [text_of(reply) for reply in replies(up.data)[asked]]
    assert any("Spring Sale" in text and "We could not do this" not in text for text in texts)
    assert "<title>Spring Sale" in get(up)
    log = ["git", f"--git-dir={origin}", "log", "--format=%B", "main"]
    assert subprocess.run(log, capture_output=True, text=True, check=True).stdout.count("Job-Id:") == 1
    assert json.loads(dlq(up, "list")) == []
    assert 'role="alert"' not in page(up)
    assert len(to_operator(up.data)) == 1
    assert up.stop() == 0
