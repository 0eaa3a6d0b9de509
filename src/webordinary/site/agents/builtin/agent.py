"""BuiltinAgent: follows every wish of a mail or none, and says plainly which."""

from __future__ import annotations

import re

from webordinary.model.hold import Hold
from webordinary.site.agents.builtin.charsets import shown
from webordinary.site.agents.builtin.draft import Draft
from webordinary.site.agents.builtin.outcomes import AlreadySo, Desk, Done, Outcome, Unclear
from webordinary.site.agents.builtin.page import Overlap
from webordinary.site.agents.builtin.patterns import KINDS
from webordinary.site.agents.builtin.quotes import Quotes
from webordinary.site.agents.builtin.sentences import MAX_WISH_LENGTH, MAX_WISHES, wishes_of
from webordinary.site.task import AgentResult, AgentTask, Answered, Asked, Changed, NotUnderstood

MAX_LENGTH = 50_000
_SHOWN = 200
_ABOUT_US = re.compile(r"(?:please\s+)?(?:help(?:\s+me)?|what\s+can\s+(?:i|we|you)\b.{0,100})", re.I | re.S)
"""What can I ask you to change? A first mail may say that."""
ABILITIES = "I can do exact, simple changes. For example:\n" + "\n".join(f"- {k.example}" for k in KINDS if k.example)


class BuiltinAgent:
    """Deterministic, and content with no key and no network."""

    def run(self, task: AgentTask, hold: Hold) -> AgentResult:
        """Follow the instruction on a draft; the workspace changes only when all of it was clear."""
        quotes = Quotes()
        if len(task.instruction) > MAX_LENGTH:
            return NotUnderstood(
                f"Your mail is longer than the {MAX_LENGTH:,} characters that I read, so nothing was changed. "
                "Please send what is to be changed in a shorter mail, or in several."
            )
        wishes = wishes_of(quotes.set_aside(task.instruction))
        if not wishes:
            return NotUnderstood(f"Your mail does not say what to change, so nothing was changed.\n\n{ABILITIES}")
        if len(wishes) == 1 and _ABOUT_US.fullmatch(wishes[0]):
            return Answered(ABILITIES)
        if len(wishes) > MAX_WISHES:
            return NotUnderstood(
                f"That is more than {MAX_WISHES} wishes in one mail. Please send them in smaller parts."
            )
        desk = Desk(Draft(task.workspace, hold), quotes, task.attachments)
        outcomes: list[Outcome] = []
        for wish in wishes:
            hold.check()
            if len(wish) > MAX_WISH_LENGTH:
                return NotUnderstood(_too_long(quotes.shown(wish)))
            outcome = _follow(wish, desk)
            if outcome is None:
                return NotUnderstood(_not_understood(quotes.shown(wish), alone=len(wishes) == 1))
            outcomes.append(outcome)
        hold.check()
        return _concluded(outcomes, desk.draft)


def _follow(wish: str, desk: Desk) -> Outcome | None:
    for kind in KINDS:
        match = kind.pattern.fullmatch(wish)
        try:
            outcome = kind.edit(match, desk) if match else None
        except Overlap:
            return Unclear(_no_way(desk.quotes.shown(wish)))
        if outcome is not None:
            return outcome
    return None


def _concluded(outcomes: list[Outcome], draft: Draft) -> AgentResult:
    questions = [outcome.question for outcome in outcomes if isinstance(outcome, Unclear)]
    if questions:
        return Asked(shown("\n\n".join(questions)) + ("\n\nNothing was changed yet." if len(outcomes) > 1 else ""))
    words = [
        outcome.summary if isinstance(outcome, Done) else outcome.text
        for outcome in outcomes
        if not isinstance(outcome, Unclear)
    ]
    if not draft.differs or all(isinstance(outcome, AlreadySo) for outcome in outcomes):
        return Answered(shown("\n".join(words)))
    draft.write()
    return Changed(shown("\n".join(words)))


def _not_understood(part: str, alone: bool) -> str:
    rest = "" if alone else " The rest of your mail waits for this too."
    return f"I did not understand “{_begin(part)}”, so nothing was changed.{rest}\n\n{ABILITIES}"


def _too_long(part: str) -> str:
    return (
        f"The part of your mail that begins with “{_begin(part)}” is longer than the {MAX_WISH_LENGTH:,} characters "
        "that I follow at once, so nothing was changed. Please send a long text in several paragraphs, each after "
        "“add a paragraph:” and with an empty line between them."
    )


def _no_way(part: str) -> str:
    return (
        f"I could not do “{_begin(part)}”: the page is built so that it would have to change twice at the same place. "
        "Please ask your web person, or say it in other words."
    )


def _begin(part: str) -> str:
    return part if len(part) <= _SHOWN else part[: _SHOWN - 1] + "…"
