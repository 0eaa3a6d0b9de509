"""BuiltinAgent: does every wish of a mail or none, and says plainly which one stopped it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from webordinary.adapters.agents.builtin.answers import agrees, choice_in, declines, thanks
from webordinary.adapters.agents.builtin.draft import Draft
from webordinary.adapters.agents.builtin.edits import EditContext, Unclear, follow
from webordinary.adapters.agents.builtin.grammar import EXAMPLES, Grammar, Misunderstood, Wish
from webordinary.adapters.agents.builtin.page import Overlap
from webordinary.jobs.ports import AgentResult, AgentTask, Answered, Asked, Changed, NotUnderstood
from webordinary.mail.parsing.small_talk import MARK, Quotations, clauses_of
from webordinary.model.claims import CancelToken

MAX_LENGTH, MAX_WISHES, MAX_ASIDE = 50_000, 30, 3
_SHOWN, _MAX_SHOWN, _MAX_CHOICES = 200, 8_000, 100
ABILITIES = "I can do exact, simple changes. For example:\n" + "\n".join(f"- {example}" for example in EXAMPLES)
_ABOUT_US = re.compile(r"(?:please )?(?:help(?: me)?|what can (?:i|we|you)\b.{0,100})", re.I | re.S)
_AROUND_ANSWER = re.compile(
    r"(?i)\A(?:(?:please|i mean|it's|just|only|(?:the|that)(?: one| place)?(?= (?:on|in|at)\b)"
    r"|(?:celle|celui|el|la|quello|quella|degene)(?= (?:de|del|della|dell|en|op|sur|su)\b))[ ,]+)+"
    r"|,? (?:please|only)\Z"
)
_END = re.compile(r"(?i)(?:at )?the (?:very )?(?:end|bottom)(?: of (?:the|that) page)?|at the end(?: on the page)?")
_BELOW = re.compile(
    rf"(?i)(?:below|under|after|beneath) (?:the )?(?:heading |text |paragraph )?(?P<under>{MARK}|.{{1,60}})"
)
_MOST_REPEATS = 2
"""How often a question is put again after answers that were not understood."""
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
    question: str = ""
    repeats: int = 0

    def session(self) -> str:
        """The question as the session of a thread keeps it."""
        told = {"mail": self.mail, "wish": self.wish, "choices": self.choices[:_MAX_CHOICES], "aside": self.aside}
        return json.dumps({**told, "question": self.question, "repeats": self.repeats})

    def asked(self) -> Asked:
        """The question, to which an answer may come."""
        return Asked(self.question, self.session())

    def again(self, answer: str) -> Asked | None:
        """The same question after an answer that was not understood; None if it was put often enough."""
        if not self.question or self.repeats >= _MOST_REPEATS:
            return None
        session = replace(self, repeats=self.repeats + 1).session()
        return Asked(f"I did not understand “{_begin(answer)}”, so nothing was changed.\n\n{self.question}", session)

    @classmethod
    def of(cls, session: str) -> OpenQuestion | None:
        """The question of a session; None if it holds none."""
        try:
            told: Any = json.loads(session or _FORGOTTEN)
            wish, choices = told["wish"], tuple((str(page), int(n)) for page, n in told["choices"])
            question, repeats = str(told.get("question", "")), int(told.get("repeats", 0))
            number = None if wish is None else int(wish)
            return cls(str(told["mail"]), number, choices, tuple(map(str, told["aside"])), question, repeats)
        except (ValueError, KeyError, TypeError):
            return None

    def answered(self, answer: str, grammar: Grammar) -> list[Wish] | None:
        """All wishes with what the customer answered; None if the mail is no answer to this question."""
        wishes, quotes = grammar.read(self.mail, Quotations(), self.aside), Quotations()
        clauses = clauses_of(quotes.set_aside(answer), name_below=True)
        if isinstance(wishes, Misunderstood):
            return None  # the pages have other names by now
        if self.wish is None:
            names_command = wishes[:1] and wishes[0].kind in ("publish", "undo")  # it needs the customer's own word
            return wishes if agrees(answer) and not names_command else None
        if self.wish >= len(wishes):
            return None
        wish, found = wishes[self.wish], None
        if wish.doubt and agrees(answer):
            found = [replace(wish, doubt=False)]
        elif len(clauses) == 1:  # else it says more than an answer does
            found = self._completed(wish, clauses[0].text, grammar, quotes)
        return [*wishes[: self.wish], *found, *wishes[self.wish + 1 :]] if found else None

    def _completed(self, wish: Wish, said: str, grammar: Grammar, quotes: Quotations) -> list[Wish] | None:
        if wish.doubt and re.fullmatch(MARK, said):
            return [replace(wish, doubt=False, slots={**wish.slots, "new": quotes.text(said)})]
        chosen = choice_in(said, len(self.choices))
        if chosen and len(chosen) == len(self.choices) and wish.kind == "text":
            return [replace(wish, everywhere=True)]
        if chosen:  # the later place of a page first: an edit moves those behind it
            places = sorted((self.choices[n - 1] for n in chosen), reverse=True)
            return [replace(wish, page=page, pick=pick) for page, pick in places]
        said = _AROUND_ANSWER.sub("", _AROUND_ANSWER.sub("", grammar.in_english(_AROUND_ANSWER.sub("", said)))).strip()
        if wish.get("under") and (spot := _spot(said, quotes)):
            kept = {name: text for name, text in wish.slots.items() if name not in ("under", "heading", "nth")}
            return [replace(wish, slots={**kept, **spot})]
        page = grammar.page_of(said)
        return [replace(wish, page=page)] if page else None


def _spot(said: str, quotes: Quotations) -> dict[str, str]:
    """The slots of a place on a page that an answer names: its end, or the words to stand below."""
    if _END.fullmatch(said):
        return {"end": "at the end"}
    below = _BELOW.fullmatch(said)
    under = below["under"] if below else said if re.fullmatch(MARK, said) else ""
    return {"under": quotes.text(under) if re.fullmatch(MARK, under) else under} if under else {}


_TOPIC_WORDS = 2
"""A subject of so few words names a topic (`Our website`); a longer one that is not understood may be a wish."""


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
        if asked is not None and declines(task.instruction):
            return Answered("All right.")
        if asked is not None and (answered := asked.answered(task.instruction, grammar)) is not None:
            return _follow_all(replace(asked, repeats=0), answered, context, token)
        wishes = grammar.read(task.instruction, Quotations())
        above = [] if wishes else grammar.read(task.subject, Quotations())
        if not wishes and above and (isinstance(above, list) or len(task.subject.split()) > _TOPIC_WORDS):
            # only greetings and thanks stand below the wish
            return self._run(replace(task, instruction=task.subject, subject=""), token)
        if isinstance(wishes, Misunderstood):
            if _ABOUT_US.fullmatch(wishes.said):
                return Answered(ABILITIES)
            if unknown := grammar.unknown_page(wishes.said):
                pages = context.labels(context.draft.pages())
                return Asked(
                    f"I did not find a page called “{unknown}”, so nothing was changed. Your site has {pages}."
                )
            said = f"I did not understand “{_begin(wishes.said)}”, so nothing was changed.\n\n{ABILITIES}"
            rest = _without(wishes, task.instruction, grammar)
            return rest or (asked and asked.again(wishes.said)) or NotUnderstood(said)
        if not wishes and task.instruction.strip() and not task.attachments:
            if thanks(task.instruction):
                return Answered("You are welcome!", asked.session() if asked else "")
            again = asked.again(task.instruction.strip()) if asked else None
            return again or Answered("Thank you for your mail. It does not ask for a change.")
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
        question = f"I did not understand {said}, so nothing was done yet. If you mean it, reply “{rest[0].kind}”."
    else:
        question = (
            f"I did not understand {said}, so nothing was changed yet. Shall I do the rest of your mail without it? "
            "Reply “yes”, or write it again in other words."
        )
    return OpenQuestion(mail, None, aside=tuple(aside), question=question).asked()


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
            question = _shown(unclear.question) + rest
            return replace(mail, wish=number, choices=unclear.choices, question=question).asked()
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
