"""Which page a customer means."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from webordinary.site.agents.builtin.outcomes import Desk, Unclear

_HOME = re.compile(
    r"(?:home|index|front|main|landing|start|first|welcome)(?:[\s-]*page)?|(?:web)?site|index\.html?",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\A(?:the|my|our|this|your|a)\s+|['\u2019]s?\Z", re.IGNORECASE)
LISTED = 8


def resolve(words: str | None, desk: Desk) -> str | Unclear:
    """The page that these words name; without words, the page spoken of last, else the home page."""
    pages = desk.draft.pages()
    if not pages:
        return Unclear(
            "I found no HTML page on your site that I could change. Please ask your web person to look at it."
        )
    if not words or re.fullmatch(r"(?:the\s+)?(?:same\s+)?page", words.strip(), re.IGNORECASE):
        return _spoken_of(desk.page if desk.page in pages else pages[0], desk)
    bare = desk.quotes.literal(_ARTICLE.sub("", _ARTICLE.sub("", words.strip())))
    if _HOME.fullmatch(bare):
        return _spoken_of(pages[0], desk)
    found = _named(re.sub(r"\s*page\Z", "", bare, flags=re.IGNORECASE), pages, desk)
    if len(found) == 1:
        return _spoken_of(found[0], desk)
    if not found:
        return Unclear(
            f"I did not find a page called “{bare}”. Your site has: {_listed(pages)}. Which one do you mean?"
        )
    return Unclear(f"“{bare}” could be {_listed(found)}. Which one do you mean?")


def label(page: str) -> str:
    """How to call a page when speaking to its owner."""
    if page == "index.html":
        return "the homepage"
    path = PurePosixPath(page)
    name = path.parent.name if path.stem == "index" else path.stem
    return f"the {name.replace('-', ' ').replace('_', ' ')} page"


def _named(words: str, pages: list[str], desk: Desk) -> list[str]:
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    if words.lower() in (page.lower() for page in pages):
        return [page for page in pages if page.lower() == words.lower()]
    by_name = [page for page in pages if slug == re.sub(r"[^a-z0-9]+", "-", _stem(page).lower())]
    if by_name:
        return by_name
    return [page for page in pages if slug and _titled(words, page, desk)]


def _titled(words: str, page: str, desk: Desk) -> bool:
    parsed = desk.draft.page(page)
    heads = [parsed.words(element).lower() for element in (parsed.first("title"), parsed.first("h1")) if element]
    return any(re.search(rf"\b{re.escape(words.lower())}\b", head) for head in heads)


def _stem(page: str) -> str:
    path = PurePosixPath(page)
    return path.parent.name if path.stem == "index" and path.parent.name else path.stem


def _spoken_of(page: str, desk: Desk) -> str:
    desk.page = page
    return page


def _listed(pages: list[str]) -> str:
    names = [label(page) for page in pages[:LISTED]]
    return ", ".join(names) + (" and more" if len(pages) > LISTED else "")
