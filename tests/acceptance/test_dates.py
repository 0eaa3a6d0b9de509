"""“On Monday …” and “until Sunday”: the whole system, killed and started again in between."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.acceptance.killing import kill_tree
from tests.acceptance.test_money import webordinary
from tests.acceptance.waiting import Customer, get, replies, text_of, wait_until
from tests.conftest import Up

pytestmark = pytest.mark.needs("bwrap")

AGENT = """
import datetime, json, os, pathlib, sys
wish = sys.stdin.read()
now = datetime.datetime.now(datetime.timezone.utc)
soon = (now + datetime.timedelta(seconds={seconds})).isoformat()
if "later" in wish and os.environ["WEBORDINARY_IS_DUE"] != "yes":
    print(json.dumps({{"answered": "The banner comes then.", "later": soon}}))
else:
    page = pathlib.Path("index.html")
    page.write_text(page.read_text().replace("</main>", f"<p>Closed today.</p><!-- {{now.isoformat()}} --></main>"))
    print(json.dumps({{"changed": "The banner is up."}} | ({{"until": soon}} if "until" in wish else {{}})))
"""
CLOSED = "<p>Closed today.</p>"


def start(start_up: Callable[..., Up], folder: Path, seconds: int) -> Up:
    program = folder / "agent.py"
    program.write_text(AGENT.format(seconds=seconds))
    return start_up(
        "--agent", "command", "--agent-command", f"{sys.executable} {program}",
        "--jail-readable", f"{Path(sys.prefix)} {Path(sys.base_prefix)} {program}",
    )  # fmt: skip


def is_told(up: Up, message_id: str, words: str) -> bool:
    """Whether one of the answers says so; one that was cut off by the kill comes twice."""
    return any(words in " ".join(text_of(reply).split()) for reply in replies(up.data).get(message_id, ()))


def test_a_wish_with_a_date_is_done_on_it_though_everything_was_killed_meanwhile(
    start_up: Callable[..., Up], tmp_path: Path
) -> None:
    up, sent = start(start_up, tmp_path, 5), datetime.now(UTC)
    webordinary(up, "project", "set", "amelia", "--time-zone", "Europe/Berlin")
    asked = Customer().write(up, "put up the banner later")
    wait_until(up.data, lambda: is_told(up, asked, "I will do this on"), "the notice")
    assert is_told(up, asked, "(Europe/Berlin)")
    kill_tree(up.process.pid)
    up = start(start_up, tmp_path, 5)
    wait_until(up.data, lambda: is_told(up, asked, "Done on your edit site"), "the answer")
    done_at = re.search(f"{CLOSED}<!-- (.*?) -->", get(up))
    assert done_at
    assert datetime.fromisoformat(done_at[1]) >= sent + timedelta(seconds=5)
    assert up.stop() == 0


def test_a_change_until_a_date_is_taken_back_by_itself_though_everything_was_killed_meanwhile(
    start_up: Callable[..., Up], tmp_path: Path
) -> None:
    up = start(start_up, tmp_path, 8)
    asked = Customer().write(up, "put up the banner until Sunday")
    wait_until(up.data, lambda: is_told(up, asked, "This stays until"), "the first answer")
    kill_tree(up.process.pid)
    up = start(start_up, tmp_path, 8)
    wait_until(up.data, lambda: CLOSED not in get(up), "the page without the banner")
    wait_until(up.data, lambda: is_told(up, asked, "Taken back on your edit site"), "the answer")
    assert up.stop() == 0
