"""BuiltinAgent: follows every wish of a mail or none, and says plainly which."""

from __future__ import annotations

import re
from dataclasses import dataclass

from webordinary.adapters.agents.builtin.colours import change_colour
from webordinary.adapters.agents.builtin.draft import AlreadySo, Done, Draft, Edit, EditContext, Outcome, Unclear
from webordinary.adapters.agents.builtin.edits import (
    add_item,
    add_paragraph,
    add_photo,
    remove_text,
    replace_photo,
    replace_text,
    set_heading,
    set_title,
)
from webordinary.adapters.agents.builtin.new_pages import add_page
from webordinary.adapters.agents.builtin.page import Overlap, shown
from webordinary.adapters.agents.builtin.sentences import MARK, MAX_WISH_LENGTH, MAX_WISHES, Quotes, wishes_of
from webordinary.jobs.agent_task import AgentResult, AgentTask, Answered, Asked, Changed, NotUnderstood
from webordinary.model.claims import CancelToken


@dataclass(frozen=True, slots=True)
class EditPattern:
    """One kind of edit."""

    pattern: re.Pattern[str]
    edit: Edit
    example: str = ""


_CHANGE = r"(?:change|set|update|make|rename|replace)"
_THE = r"(?:(?:the|my|our|this)\s+)?"
_PICTURE = r"(?:photo|picture|image|pic|drawing)s?"
_ATTACHED = r"(?:attached|enclosed|new|following)"
_PAGE = r"[\w\s.'\u2019-]{1,40}"
_TO = rf"(?:\s+(?:to\s+say|to\s+read|to\s+be|to|into|as|with|by)\s+|\s*:\s*|\s+(?={MARK}))"
_SAYING = rf"(?:\s*:\s*|,?\s+(?:saying|that\s+says|with\s+the\s+text)\s*:?\s*|\s+(?={MARK}))"

_CALLED = r"(?:called|named|titled|with\s+the\s+title)"
_LIST = (
    rf"(?:the|my|our)\s+(?:(?P<about>[\w\s'\u2019-]{{1,40}}?)\s+)?list"
    rf"(?:\s+(?:of|under|below|called|with|that\s+(?:begins|starts)\s+with)\s+(?P<called>{MARK}|{_PAGE}?))?"
)
_TINT = rf"(?:#\w{{1,20}}|[a-z]+(?:[\s-][a-z]+){{0,3}}|{MARK})"
_PART = r"[\w\s.#:,>-]{1,60}?"


def _kind(pattern: str, edit: Edit, example: str = "") -> EditPattern:
    return EditPattern(re.compile(pattern, re.IGNORECASE | re.DOTALL), edit, example)


def _named_part(part: str) -> str:
    return (
        rf"{_CHANGE}\s+{_THE}(?:(?P<page>{_PAGE}?)\s+)?{part}(?:\s+(?:of|on|for|in)\s+(?P<of>{_PAGE}?))?"
        rf"(?:\s+from\s+{MARK}|\s+(?P<old>{MARK}))?{_TO}(?P<new>.+)"
    )


KINDS: tuple[EditPattern, ...] = (
    _kind(
        rf"(?:add|create|make)\s+(?:a|another|one)\s+(?:new\s+)?page\s+(?:{_CALLED}\s+)?(?P<title>{MARK}|[^:]{{1,80}}?)"
        rf"(?:(?:{_SAYING}|,?\s+with\s+(?:the\s+)?(?:text\s+)?)(?P<text>{MARK}))?",
        add_page,
        "add a page called Workshops with the text “Every Friday.”",
    ),
    _kind(
        rf"{_CHANGE}\s+{_THE}(?:(?P<part>{_PART})(?:['\u2019]s?)?\s+colou?rs?|colou?r\s+of\s+{_THE}(?P<part2>{_PART}))"
        rf"(?:\s+(?:to|into)\s+|\s*:\s*|\s+)(?P<colour>{_TINT})",
        change_colour,
        "change the background colour to dark green",
    ),
    _kind(
        rf"(?:change|set)\s+(?:the\s+)?(?P<part>--[\w-]+(?:\s+in\s+\S{{1,60}})?|{_PART}\s+background)"
        rf"\s+to\s+(?P<colour>{_TINT})"
        rf"|(?:make|paint|colou?r)\s+(?:the|my|our)\s+(?P<part2>{_PART})\s+(?P<colour2>{_TINT})",
        change_colour,
    ),
    _kind(
        rf"(?:replace|change|swap|update)\s+{_THE}{_PICTURE}\s+(?:of|showing|with)\s+(?P<of>.+?)"
        rf"(?:\s+(?:on|in)\s+(?P<page>{_PAGE}?))?"
        rf"(?:\s+(?:with|by|for|to)\s+(?:this|the|my)\s*(?:{_ATTACHED}\s*)?(?:one|{_PICTURE})?(?:\s+(?:i\s+)?attached)?)?",
        replace_photo,
        "replace the photo of the kiln (and attach the new one)",
    ),
    _kind(
        _named_part("title"),
        set_title,
        "change the homepage title to Spring Sale",
    ),
    _kind(
        _named_part(r"(?:main\s+|big\s+)?(?:heading|headline)"),
        set_heading,
        "set the heading on the about page to Who we are",
    ),
    _kind(
        rf"(?:add|put|place|insert|use|include|show|post)\s+(?:this|the|these|my|our|a|an)?\s*(?:{_ATTACHED}\s+)?{_PICTURE}"
        rf"(?:\s+of\s+(?P<of>.+?))?(?:\s+(?:i(?:\s+have|'ve|\u2019ve)?\s+)?(?:attached|enclosed))?"
        rf"(?:\s+(?:to|on|onto|in|into|at)\s+(?P<page>{_PAGE}?|{MARK}))?",
        add_photo,
        "add this photo to the about page (and attach it)",
    ),
    _kind(
        rf"(?:with\s+)?{_THE}(?:a\s+)?{_PICTURE}\s+(?:is\s+|are\s+)?attached|(?:see\s+)?(?:the\s+)?attached\s+{_PICTURE}",
        add_photo,
    ),
    _kind(
        rf"add\s+(?:a|another|one|this|the\s+following)\s+(?:new\s+)?paragraph"
        rf"(?:\s+(?P<new>{MARK})(?:\s+(?:to|on|in)\s+(?P<page>{_PAGE}))?"
        rf"|\s+(?:to|on|in)\s+(?P<page2>{_PAGE}?){_SAYING}(?P<new2>.+)"
        rf"|{_SAYING}(?P<new3>.+))",
        add_paragraph,
        "add a paragraph “We are closed in May.” to the contact page",
    ),
    _kind(
        rf"(?:add|put|include)\s+(?:(?:a|an|another|the)\s+(?:new\s+)?(?:list\s+)?(?:item|entry|point)\s+)?(?P<new>{MARK}|.{{1,300}}?)"
        rf"\s+(?:to|on|in|onto|into)\s+{_LIST}(?:\s+(?:on|of|in)\s+(?P<page>{_PAGE}))?",
        add_item,
        "add “Blue bowl, 30 €” to the list on the pots page",
    ),
    _kind(
        rf"add\s+(?:a|an|another|the)\s+(?:new\s+)?(?:list\s+item|item|bullet(?:\s+point)?)\s+(?P<new>{MARK})"
        rf"(?:\s+(?:to|on|in)\s+(?P<page>{_PAGE}))?",
        add_item,
    ),
    _kind(
        rf"(?:remove|delete|take\s+out)\s+(?:the\s+)?(?P<what>(?:list\s+|bullet\s+)?(?:paragraph|item|text|words?|sentence|heading|line)\s+)?"
        rf"(?P<old>{MARK})(?:\s+(?:on|from|in)\s+(?P<page>{_PAGE}))?",
        remove_text,
        "remove the paragraph “We are closed in May.”",
    ),
    _kind(
        r"(?:change|replace|update|correct|fix|rename|swap)\s+(?P<wish>.+)",
        replace_text,
        "change “open on Mondays” to “open every day”",
    ),
)


MAX_LENGTH = 50_000
_SHOWN = 200
_ABOUT_US = re.compile(r"(?:please\s+)?(?:help(?:\s+me)?|what\s+can\s+(?:i|we|you)\b.{0,100})", re.I | re.S)
"""What can I ask you to change? A first mail may say that."""
ABILITIES = "I can do exact, simple changes. For example:\n" + "\n".join(f"- {k.example}" for k in KINDS if k.example)


class BuiltinAgent:
    """Deterministic, and content with no key and no network."""

    is_free = True

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
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
        desk = EditContext(Draft(task.workspace, token), quotes, task.attachments)
        outcomes: list[Outcome] = []
        for wish in wishes:
            token.check()
            if len(wish) > MAX_WISH_LENGTH:
                return NotUnderstood(_too_long(quotes.shown(wish)))
            outcome = _follow(wish, desk)
            if outcome is None:
                return NotUnderstood(_not_understood(quotes.shown(wish), alone=len(wishes) == 1))
            outcomes.append(outcome)
        token.check()
        return _concluded(outcomes, desk.draft)


def _follow(wish: str, desk: EditContext) -> Outcome | None:
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
