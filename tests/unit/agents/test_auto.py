"""The agent `auto`: who works is decided for each job, and said afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.agents.claude_agent import AutoAgent
from webordinary.jobs.ports import AgentResult, AgentTask, Answered
from webordinary.model.claims import CancelToken


class Saying:
    def __init__(self, words: str) -> None:
        self._words = words

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        return Answered(self._words)


@pytest.mark.parametrize(("ready", "who"), [(True, "claude"), (False, "builtin")])
def test_it_says_who_it_was(ready: bool, who: str) -> None:
    agent = AutoAgent(Saying("I am claude"), Saying("I am builtin"), lambda: ready)
    result = agent.run(AgentTask("Who are you?", Path("/site")), FakeCancelToken())
    assert result == Answered(f"I am {who}", agent=who)
