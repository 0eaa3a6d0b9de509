"""What the built-in agent understands: a pattern, the edit it means, an example for the customer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from webordinary.site.agents.builtin.colours import change_colour
from webordinary.site.agents.builtin.lists import add_item
from webordinary.site.agents.builtin.new_pages import add_page
from webordinary.site.agents.builtin.outcomes import Edit
from webordinary.site.agents.builtin.paragraphs import add_paragraph
from webordinary.site.agents.builtin.photos import add_photo, replace_photo
from webordinary.site.agents.builtin.quotes import MARK
from webordinary.site.agents.builtin.removals import remove_text
from webordinary.site.agents.builtin.texts import replace_text
from webordinary.site.agents.builtin.titles import set_heading, set_title


@dataclass(frozen=True, slots=True)
class Kind:
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


def _kind(pattern: str, edit: Edit, example: str = "") -> Kind:
    return Kind(re.compile(pattern, re.IGNORECASE | re.DOTALL), edit, example)


def _named_part(part: str) -> str:
    return (
        rf"{_CHANGE}\s+{_THE}(?:(?P<page>{_PAGE}?)\s+)?{part}(?:\s+(?:of|on|for|in)\s+(?P<of>{_PAGE}?))?"
        rf"(?:\s+from\s+{MARK}|\s+(?P<old>{MARK}))?{_TO}(?P<new>.+)"
    )


KINDS: tuple[Kind, ...] = (
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
