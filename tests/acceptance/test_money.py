"""A paused site and a used-up budget make mails wait, with words; nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.acceptance.waiting import Customer, get, replies, text_of, wait_until
from tests.conftest import Up

COSTLY_AGENT = """
import json, pathlib, sys
wish = sys.stdin.read().strip()
page = pathlib.Path("index.html")
page.write_text(page.read_text().replace("</main>", f"<p>{wish}</p></main>"))
print(json.dumps({"changed": f"Added {wish}.", "cost_usd": 0.6}))
"""


def webordinary(up: Up, *args: str) -> str:
    command = [sys.executable, "-m", "webordinary", *args, "--data", str(up.data)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def wait_for_answers(up: Up, message_id: str, count: int) -> list[EmailMessage]:
    wait_until(up.data, lambda: len(replies(up.data).get(message_id, [])) >= count, f"{count} answers to {message_id}")
    return replies(up.data)[message_id]


def test_mails_of_a_paused_site_wait_and_are_done_when_it_goes_on(start_up: Callable[..., Up]) -> None:
    up = start_up()
    before = get(up)
    webordinary(up, "pause", "amelia")
    asked = Customer().write(up, "Change the homepage title to After The Break")
    [notice] = wait_for_answers(up, asked, 1)
    assert "paused" in text_of(notice)
    assert get(up) == before
    [mail] = json.loads(webordinary(up, "status", "--json"))["recent"]
    assert mail["answered_at"] is None, "a notice is no answer"
    assert "paused: amelia" in webordinary(up, "status")
    webordinary(up, "resume")
    answers = wait_for_answers(up, asked, 2)
    assert len(answers) == 2
    assert "<title>After The Break" in get(up)
    assert up.stop() == 0


@pytest.mark.needs("bwrap")
def test_a_used_up_day_holds_the_next_mail_with_words_and_costs_are_shown(
    start_up: Callable[..., Up], tmp_path: Path
) -> None:
    program = tmp_path / "agent.py"
    program.write_text(COSTLY_AGENT)
    up = start_up(
        "--agent", "command", "--agent-command", f"{sys.executable} {program}", "--daily-cap-usd", "0.5",
        "--show-cost", "true",
        "--jail-readable", f"{Path(sys.prefix)} {Path(sys.base_prefix)} {program}",
    )  # fmt: skip
    customer = Customer()
    first = customer.write(up, "one")
    [answer] = wait_for_answers(up, first, 1)
    assert "$0.60" in text_of(answer)
    second = customer.write(up, "two")
    [notice] = wait_for_answers(up, second, 1)
    assert "budget" in text_of(notice)
    assert "<p>two</p>" not in get(up)
    [spent] = json.loads(webordinary(up, "costs", "amelia", "--json"))
    assert (spent["jobs"], spent["usd"]) == (1, 0.6)
    assert up.stop() == 0
