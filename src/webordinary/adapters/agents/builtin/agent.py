"""BuiltinAgent: does every wish of a mail or none, and says plainly which one stopped it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from webordinary.adapters.agents.builtin.draft import Draft
from webordinary.adapters.agents.builtin.edits import EditContext, Unclear, follow
from webordinary.adapters.agents.builtin.grammar import EXAMPLES, Grammar, Misunderstood, Wish
from webordinary.adapters.agents.builtin.page import Overlap
from webordinary.jobs.ports import AgentResult, AgentTask, Answered, Asked, Changed, NotUnderstood
from webordinary.mail.parsing.small_talk import MARK, Quotations, clauses_of, words_in
from webordinary.model.claims import CancelToken

MAX_LENGTH, MAX_WISHES, MAX_ASIDE = 50_000, 30, 3
_SHOWN, _MAX_SHOWN, _MAX_CHOICES = 200, 8_000, 100
ABILITIES = "I can do exact, simple changes. For example:\n" + "\n".join(f"- {example}" for example in EXAMPLES)
_ABOUT_US = re.compile(r"(?:please )?(?:help(?: me)?|what can (?:i|we|you)\b.{0,100})", re.I | re.S)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_NTH = re.compile(rf"(?:the |number |no |#)*(?P<n>\d|{'|'.join(_ORDINALS)})(?:st|nd|rd|th)?(?: one| place)?", re.I)
_ALL = re.compile(r"(?:everywhere|all|all of them|both|both of them|on all pages|on every page|in all places)", re.I)
_AROUND_ANSWER = re.compile(r"(?i)\A(?:please|in|on|i mean|it's|just) |,? (?:please|only)\Z")
_YES = {"yes", "ok", "okay", "yep", "yeah", "ja", "oui", "sí", "sì"}
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
        choices = self.choices[:_MAX_CHOICES]
        return json.dumps({"mail": self.mail, "wish": self.wish, "choices": choices, "aside": self.aside})

    @classmethod
    def of(cls, session: str) -> OpenQuestion | None:
        """The question of a session; None if it holds none."""
        try:
            told: Any = json.loads(session or _FORGOTTEN)
            wish, choices = told["wish"], tuple((str(page), int(n)) for page, n in told["choices"])
            return cls(str(told["mail"]), None if wish is None else int(wish), choices, tuple(map(str, told["aside"])))
        except (ValueError, KeyError, TypeError):
            return None

    def answered(self, answer: str, grammar: Grammar) -> list[Wish] | None:
        """All wishes with what the customer answered; None if the mail is no answer to this question."""
        wishes, quotes = grammar.read(self.mail, Quotations(), self.aside), Quotations()
        clauses = [replace(one, text=grammar.in_english(one.text)) for one in clauses_of(quotes.set_aside(answer))]
        if isinstance(wishes, Misunderstood) or len(clauses) > 1:
            return None  # the pages have other names by now, or it says more than an answer does
        agrees = not clauses and bool(set(words_in(answer)) & _YES)
        if self.wish is None:
            return wishes if agrees else None
        if self.wish >= len(wishes):
            return None
        said = _AROUND_ANSWER.sub("", clauses[0].text).strip() if clauses else ""
        wish = self._completed(wishes[self.wish], said, agrees, grammar, quotes)
        return [*wishes[: self.wish], wish, *wishes[self.wish + 1 :]] if wish else None

    def _completed(self, wish: Wish, said: str, agrees: bool, grammar: Grammar, quotes: Quotations) -> Wish | None:
        if wish.doubt and agrees:
            return replace(wish, doubt=False)
        if wish.doubt and re.fullmatch(MARK, said):
            return replace(wish, doubt=False, slots={**wish.slots, "new": quotes.text(said)})
        if _ALL.fullmatch(said) and wish.kind == "text":
            return replace(wish, everywhere=True)
        if nth := _NTH.fullmatch(said):
            n = int(nth["n"]) if nth["n"].isdigit() else _ORDINALS.index(nth["n"].lower()) + 1
            page, pick = self.choices[n - 1] if 1 <= n <= len(self.choices) else ("", 0)
            return replace(wish, page=page, pick=pick) if page else None
        page = grammar.page_of(said)
        return replace(wish, page=page) if page else None


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
        context = EditContext(Draft(task.workspace, token), task.attachments)
        grammar, asked = Grammar(context.page_names()), OpenQuestion.of(task.session)
        if asked is not None and (answered := asked.answered(task.instruction, grammar)) is not None:
            return _follow_all(asked, answered, context, token)
        wishes = grammar.read(task.instruction, Quotations())
        if isinstance(wishes, Misunderstood):
            if _ABOUT_US.fullmatch(wishes.said):
                return Answered(ABILITIES)
            if unknown := grammar.unknown_page(wishes.said):
                pages = context.labels(context.draft.pages())
                return Asked(
                    f"I did not find a page called “{unknown}”, so nothing was changed. Your site has {pages}."
                )
            said = f"I did not understand “{_begin(wishes.said)}”, so nothing was changed.\n\n{ABILITIES}"
            return _without(wishes, task.instruction, grammar) or NotUnderstood(said)
        if not wishes and task.instruction.strip() and not task.attachments:
            return Answered("Thank you for your mail. It does not ask for a change.")
        if not wishes:
            return NotUnderstood(f"Your mail does not say what to change, so nothing was changed.\n\n{ABILITIES}")
        if len(wishes) > MAX_WISHES:
            return NotUnderstood(
                f"That is more than {MAX_WISHES} wishes in one mail. Please send them in smaller parts."
            )
        return _follow_all(OpenQuestion(task.instruction, None), wishes, context, token)


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


def _follow_all(mail: OpenQuestion, wishes: list[Wish], context: EditContext, token: CancelToken) -> AgentResult:
    """Do all wishes on the draft, then write it; the first one that is unclear stops all of them."""
    words, then = [], ""
    settled: dict[str, Wish] = {}
    for number, wish in enumerate(wishes):
        token.check()
        if settled.setdefault(wish.target, wish).slots != wish.slots:
            return Asked(
                f"“{_begin(settled[wish.target].said)}” and “{_begin(wish.said)}” are about the same thing, so nothing "
                "was changed. Which of them shall I do?"
            )
        if wish.kind in ("publish", "undo"):
            if number < len(wishes) - 1 or (wish.kind == "undo" and number):
                return NotUnderstood(f"Please send “{wish.said}” in a mail of its own. Nothing was changed.")
            then = wish.kind
            break
        before = context.draft.changes()
        try:
            summary = follow(wish, context)
        except Unclear as unclear:
            rest = f"\n\nThis is about “{_begin(wish.said)}”. Nothing was changed yet." if len(wishes) > 1 else ""
            question = replace(mail, wish=number, choices=unclear.choices)
            return Asked(_shown(unclear.question) + rest, question.session())
        except Overlap:
            return Asked(f"I could not do “{_begin(wish.said)}”: it would change the same place twice.")
        words.append(summary if context.draft.changes() != before else f"That is so already: {wish.said}")
    summary = _shown("\n".join(words))
    if not context.draft.changes():
        return Answered(summary, then=then)
    context.draft.write()
    return Changed(summary, then=then)


def _begin(part: str) -> str:
    return part if len(part) <= _SHOWN else part[: _SHOWN - 1] + "…"


def _shown(text: str) -> str:
    """A text for people: stray bytes of a page as the letters that they most likely are, and not without end."""
    text = re.sub("[\udc80-\udcff]", lambda byte: bytes([ord(byte[0]) - 0xDC00]).decode("cp1252", "replace"), text)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
