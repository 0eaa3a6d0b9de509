"""Which reader a page wants, by the ending of its name."""

from __future__ import annotations

from pathlib import PurePosixPath

from webordinary.site.agents.builtin.astro import parse_astro
from webordinary.site.agents.builtin.front_matter import read_front_matter
from webordinary.site.agents.builtin.html import parse_page
from webordinary.site.agents.builtin.markdown import parse_markdown
from webordinary.site.agents.builtin.page import Page, hidden


def read_page(name: str, source: str) -> Page:
    """A page of any kind."""
    match PurePosixPath(name).suffix:
        case ".astro":
            return parse_astro(source)
        case ".md" | ".markdown":
            return parse_markdown(source)
        case ".mdx":
            return parse_markdown(source, mdx=True)
        case _:
            return _with_front_matter(source)


def _with_front_matter(source: str) -> Page:
    front = read_front_matter(source)
    if not front.end:
        return parse_page(source)
    page = parse_page(source, hidden(source[: front.end]) + source[front.end :])
    page.texts = [text for text in page.texts if text.start >= front.end]
    if front.title is not None and page.first("title") is None:
        page.add_value(front.title)
        page.elements.sort(key=lambda element: element.start)
    return page
