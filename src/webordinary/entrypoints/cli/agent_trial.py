"""The trial of an agent: one page, one wish, one look at the page afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from webordinary.site.ports import Agent
from webordinary.site.task import AgentLimits, AgentTask, Answered, Asked, Changed, NotUnderstood
from webordinary.testing.scripted_api import Turn, Use

PAGE = "<!doctype html>\n<title>Trial</title>\n<main>\n<h1>Before</h1>\n</main>\n"
WISH = "Set the heading of the homepage to “It works”."
WANTED = "<h1>It works</h1>"
SCRIPT_KEY = "scripted"


@dataclass(frozen=True, slots=True)
class Trial:
    """How it went; `result` is changed, answered, asked or not understood."""

    agent: str
    ok: bool
    result: str
    words: str
    cost_usd: float
    seconds: float


class Unbound:
    """A hold that nobody ends: the operator has Ctrl-C."""

    worker, fence, job_id = "agent-test", 0, "agent-test"

    def check(self) -> None:
        """It may always go on."""

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """It is never told to stop."""
        yield


def try_out(
    name: str, agent: Agent, site: Path, limits: AgentLimits, tell: Callable[[str], None], seconds: Callable[[], float]
) -> Trial:
    """Run the agent on the page; its own failures come through with their words."""
    result = agent.run(AgentTask(WISH, site, limits=limits, tell=tell), Unbound())
    ok = isinstance(result, Changed) and WANTED in (site / "index.html").read_text(encoding="utf-8")
    match result:
        case Changed(summary=words):
            kind = "changed"
        case Answered(text=words):
            kind = "answered"
        case Asked(question=words):
            kind = "asked"
        case NotUnderstood(text=words):
            kind = "not understood"
    return Trial(result.agent or name, ok, kind, words, result.cost_usd, round(seconds(), 2))


def scripted(page: str) -> list[Turn]:
    """What the scripted model does about the wish."""
    return [
        Use("Read", {"file_path": page}, "I look at the page first."),
        Use("Edit", {"file_path": page, "old_string": "Before", "new_string": "It works"}),
        Use("StructuredOutput", {"outcome": "changed", "message": "The heading says “It works” now."}),
    ]
