"""A mail, the real Claude Code with a scripted model, a published site and a reply."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.acceptance.waiting import Customer, get, text_of, wait_for_reply
from tests.conftest import Up
from tests.extras import needs_extra
from webordinary.adapters.agents.scripted_model import Received, ScriptedApi, Turn, Use

needs_extra("claude_agent_sdk", "claude")
pytestmark = pytest.mark.needs("bwrap", "git")


def page_of(request: Received) -> str:
    """Where the agent works, as it was told."""
    found = re.search(r"Primary working directory: (\S+)", request.text())
    assert found
    return f"{found[1]}/index.html"


def read(request: Received) -> Turn:
    return Use("Read", {"file_path": page_of(request)})


def edit(request: Received) -> Turn:
    changes = {"old_string": "<h1>Pots for every day</h1>", "new_string": "<h1>Spring Sale</h1>"}
    return Use("Edit", {"file_path": page_of(request), **changes})


def says(outcome: str, message: str) -> Turn:
    return Use("StructuredOutput", {"outcome": outcome, "message": message})


def test_a_customer_writes_claude_edits_and_the_conversation_goes_on(start_up: Callable[..., Up]) -> None:
    script = [read, edit, says("changed", "The homepage now says “Spring Sale”."), says("question", "Which colour?")]
    with ScriptedApi(script) as api:
        up = start_up(env={"ANTHROPIC_API_KEY": "sk-ours", "ANTHROPIC_BASE_URL": api.url})
        customer = Customer()
        reply = wait_for_reply(up, customer.write(up, "Please announce our spring sale on the homepage"))
        assert "The homepage now says “Spring Sale”." in text_of(reply)
        assert "<h1>Spring Sale</h1>" in get(up)
        again = wait_for_reply(up, customer.write(up, "And make it colourful", reply_to=reply))
        assert "Which colour?" in text_of(again)
        assert up.stop() == 0
    assert {request.headers["x-api-key"] for request in api.requests} == {"sk-ours"}
    heard = api.requests[-1].text()
    assert heard.index("announce our spring sale") < heard.index("make it colourful")
