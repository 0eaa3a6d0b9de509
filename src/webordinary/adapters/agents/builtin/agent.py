"""BuiltinAgent: does every wish of a mail or none, and says plainly which one stopped it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from webordinary.adapters.agents.builtin.draft import Draft
from webordinary.adapters.agents.builtin.edits import AlreadySo, Desk, Unclear, follow
from webordinary.adapters.agents.builtin.grammar import EXAMPLES, Grammar, Misunderstood, Wish
from webordinary.adapters.agents.builtin.page import Overlap, shown
from webordinary.jobs.agent_task import AgentResult, AgentTask, Answered, Asked, Changed, NotUnderstood
from webordinary.mail.parsing.small_talk import MARK, Quotations, clauses_of, words_in
from webordinary.model.claims import CancelToken

MAX_LENGTH = 50_000
MAX_WISHES = 30
_SHOWN = 200
ABILITIES = "I can do exact, simple changes. For example:\n" + "\n".join(f"- {example}" for example in EXAMPLES)
_ABOUT_US = re.compile(r"(?:please )?(?:help(?: me)?|what can (?:i|we|you)\b.{0,100})", re.I | re.S)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_NTH = re.compile(rf"(?:the |number |no |#)*(?P<n>\d|{'|'.join(_ORDINALS)})(?:st|nd|rd|th)?(?: one| place)?", re.I)
_ALL = re.compile(r"(?:everywhere|all|all of them|both|both of them|on all pages|on every page|in all places)", re.I)
_FORGOTTEN = "{}"


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for its answer: the mail, the wish that was unclear, and the places to choose from.

    Without a wish it asks whether the parts `aside`, which were not understood, may be left aside.
    """

    mail: str
    wish: int | None
    choices: tuple[tuple[str, int], ...] = ()
    aside: tuple[str, ...] = ()

    def session(self) -> str:
        """The question as the session of a thread keeps it."""
        return json.dumps({"mail": self.mail, "wish": self.wish, "choices": self.choices[:100], "aside": self.aside})

    @classmethod
    def of(cls, session: str) -> OpenQuestion | None:
        """The question of a session; None if it holds none."""
        try:
            told: Any = json.loads(session or _FORGOTTEN)
            wish, choices = told["wish"], tuple((str(page), int(n)) for page, n in told["choices"])
            return cls(str(told["mail"]), None if wish is None else int(wish), choices, tuple(map(str, told["aside"])))
        except (ValueError, KeyError, TypeError):
            return None

    def answered(self, wish: Wish, answer: str, grammar: Grammar) -> Wish | None:
        """The unclear wish with what the customer answered; None if the mail is no answer to this question."""
        quotes = Quotations()
        clauses = clauses_of(quotes.set_aside(answer))
        if not clauses:
            return replace(wish, doubt="") if wish.doubt and _agrees(answer) else None
        said = re.sub(r"(?i)\A(?:please|in|on|i mean|it's|just) |,? (?:please|only)\Z", "", clauses[0].text).strip()
        if len(clauses) > 1:
            return None
        if wish.doubt and re.fullmatch(MARK, said):
            return replace(wish, doubt="", slots={**wish.slots, wish.doubt: quotes.text(said)})
        if _ALL.fullmatch(said) and wish.kind == "text":
            return replace(wish, everywhere=True)
        if (nth := _NTH.fullmatch(said)) and self.choices:
            return self._chosen(wish, nth["n"].lower())
        page = grammar.page_of(said)
        return replace(wish, page=page) if page else None

    def _chosen(self, wish: Wish, number: str) -> Wish | None:
        n = int(number) if number.isdigit() else _ORDINALS.index(number) + 1
        if not 1 <= n <= len(self.choices):
            return None
        page, pick = self.choices[n - 1]
        return replace(wish, page=page, pick=pick)


class BuiltinAgent:
    """Deterministic: it needs no key and no network."""

    is_free = True

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        """Follow the instruction on a draft; the workspace changes only when all of it was clear."""
        result = self._run(task, token)
        return replace(result, session=_FORGOTTEN) if task.session and not result.session else result

    def _run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        if len(task.instruction) > MAX_LENGTH:
            return NotUnderstood(
                f"Your mail is longer than the {MAX_LENGTH:,} characters that I read, so nothing was changed. "
                "Please send what is to be changed in a shorter mail, or in several."
            )
        desk = Desk(Draft(task.workspace, token), task.attachments)
        grammar = Grammar(desk.page_names())
        mail, aside, wishes = _wishes(task, grammar)
        if isinstance(wishes, Misunderstood):
            if question := _without(wishes, task.instruction, grammar):
                return question
            if _ABOUT_US.fullmatch(wishes.said):
                return Answered(ABILITIES)
            return NotUnderstood(_not_understood(wishes.said, grammar, desk))
        if not wishes:
            return NotUnderstood(f"Your mail does not say what to change, so nothing was changed.\n\n{ABILITIES}")
        if len(wishes) > MAX_WISHES:
            return NotUnderstood(
                f"That is more than {MAX_WISHES} wishes in one mail. Please send them in smaller parts."
            )
        return _follow_all(OpenQuestion(mail, None, aside=aside), wishes, desk, token)


def _agrees(answer: str) -> bool:
    return bool(set(words_in(answer)) & {"yes", "ok", "okay", "yep", "yeah", "ja", "oui", "sí", "sì"})


MAX_ASIDE = 3


def _without(unclear: Misunderstood, mail: str, grammar: Grammar) -> Asked | None:
    """The question whether the rest of a mail shall be done; None if too little of it is understood."""
    aside = [unclear.said]
    while isinstance(rest := grammar.read(mail, Quotations(), aside), Misunderstood):
        aside.append(rest.said)
        if len(aside) > MAX_ASIDE:
            return None
    if not rest or len(rest) < len(aside):
        return None
    said = " and ".join(f"“{_begin(one)}”" for one in aside)
    if rest[0].kind in ("publish", "undo"):  # a “yes” would not name the command, and only the customer's words do
        return Asked(f"I did not understand {said}, so nothing was done yet. If you mean it, reply “{rest[0].kind}”.")
    return Asked(
        f"I did not understand {said}, so nothing was changed yet. Shall I do the rest of your mail without it? "
        "Reply “yes”, or write it again in other words.",
        OpenQuestion(mail, None, aside=tuple(aside)).session(),
    )


def _wishes(task: AgentTask, grammar: Grammar) -> tuple[str, tuple[str, ...], list[Wish] | Misunderstood]:
    """The mail and its wishes; an answer is joined with the mail that the question was about."""
    question = OpenQuestion.of(task.session)
    if question is not None:
        asked = grammar.read(question.mail, Quotations(), question.aside)
        if isinstance(asked, Misunderstood):
            pass  # the pages have other names by now
        elif question.wish is None:
            if _agrees(task.instruction) and not clauses_of(task.instruction):
                return question.mail, question.aside, asked
        elif question.wish < len(asked):
            answered = question.answered(asked[question.wish], task.instruction, grammar)
            if answered is not None:
                asked[question.wish] = answered
                return question.mail, question.aside, asked
    return task.instruction, (), grammar.read(task.instruction, Quotations())


def _follow_all(mail: OpenQuestion, wishes: list[Wish], desk: Desk, token: CancelToken) -> AgentResult:
    """Do all wishes on the draft, then write it; the first one that is unclear stops all of them."""
    words, differs, then = [], False, ""
    for number, wish in enumerate(wishes):
        token.check()
        if wish.kind in ("publish", "undo"):
            if number < len(wishes) - 1 or (wish.kind == "undo" and number):
                return NotUnderstood(f"Please send “{wish.said}” in a mail of its own. Nothing was changed.")
            then = wish.kind
            break
        try:
            outcome = follow(wish, desk)
        except Overlap:
            outcome = Unclear(f"I could not do “{_begin(wish.said)}”: it would change the same place twice.")
        if isinstance(outcome, Unclear):
            rest = f"\n\nThis is about “{_begin(wish.said)}”. Nothing was changed yet." if len(wishes) > 1 else ""
            return Asked(shown(outcome.question) + rest, replace(mail, wish=number, choices=outcome.choices).session())
        words.append(outcome.summary)
        differs = differs or not isinstance(outcome, AlreadySo)
    summary = shown("\n".join(words))
    if not desk.draft.differs or not differs:
        return Answered(summary, then=then)
    desk.draft.write()
    return Changed(summary, then=then)


def _not_understood(part: str, grammar: Grammar, desk: Desk) -> str:
    unknown = grammar.unknown_page(part)
    if unknown:
        return (
            f"I did not find a page called “{unknown}”, so nothing was changed. "
            f"Your site has {desk.labels(desk.draft.pages())}."
        )
    return f"I did not understand “{_begin(part)}”, so nothing was changed.\n\n{ABILITIES}"


def _begin(part: str) -> str:
    return part if len(part) <= _SHOWN else part[: _SHOWN - 1] + "…"
