"""Which page a customer means."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from webordinary.adapters.agents.builtin.draft import EditContext, Unclear

_HOME = re.compile(
    r"(?:home|index|front|main|landing|start|first|welcome)(?:[\s-]*page)?|(?:web)?site|index\.(?:html?|md|astro)",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\A(?:the|my|our|this|your|a)\s+|['\u2019]s?\Z", re.IGNORECASE)
LISTED = 8
_LONGEST_NAME = 500


def resolve(words: str | None, desk: EditContext) -> str | Unclear:
    """The page that these words name; without words, the page spoken of last, else the home page."""
    pages = desk.draft.pages()
    if not pages:
        return Unclear("I found no page on your site that I could change. Please ask your web person to look at it.")
    if not words or re.fullmatch(r"(?:the\s+)?(?:same\s+)?page", words.strip(), re.IGNORECASE):
        return _spoken_of(desk.page if desk.page in pages else pages[0], desk)
    bare = desk.quotes.literal(_ARTICLE.sub("", _ARTICLE.sub("", words.strip())))
    if _HOME.fullmatch(bare):
        return _spoken_of(pages[0], desk)
    found = _named(re.sub(r"(?<!\s)\s*+page\Z", "", bare, flags=re.IGNORECASE), pages, desk)
    if len(found) == 1:
        return _spoken_of(found[0], desk)
    if not found:
        return Unclear(
            f"I did not find a page called “{bare}”. Your site has: {_listed(pages, desk)}. Which one do you mean?"
        )
    return Unclear(f"“{bare}” could be {_listed(found, desk)}. Which one do you mean?")


def label(page: str, desk: EditContext) -> str:
    """How to call a page, or a part of pages, when speaking to its owner."""
    layout = desk.draft.layout
    slug = layout.slug(page)
    part = any(PurePosixPath(page).is_relative_to(folder) for folder in layout.parts)
    if not slug:
        return "the homepage"
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", PurePosixPath(slug).name) if part else PurePosixPath(slug).name
    return f"the {name.replace('-', ' ').replace('_', ' ')} {'part' if part else 'page'}"


def _named(words: str, pages: list[str], desk: EditContext) -> list[str]:
    slug = _slug(words)
    if words.lower() in (page.lower() for page in pages):
        return [page for page in pages if page.lower() == words.lower()]
    by_name = [page for page in pages if slug and slug == _slug(PurePosixPath(desk.draft.layout.slug(page)).name)]
    if by_name:
        return by_name
    return [page for page in pages if slug and _titled(words, page, desk)]


def _titled(words: str, page: str, desk: EditContext) -> bool:
    parsed = desk.draft.page(page)
    heads = [parsed.words(element).lower() for element in (parsed.title, parsed.first("h1")) if element]
    return any(re.search(rf"\b{re.escape(words.lower())}\b", head[:_LONGEST_NAME]) for head in heads)


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _spoken_of(page: str, desk: EditContext) -> str:
    desk.page = page
    return page


def _listed(pages: list[str], desk: EditContext) -> str:
    names = [label(page, desk) for page in pages[:LISTED]]
    return ", ".join(names) + (" and more" if len(pages) > LISTED else "")
