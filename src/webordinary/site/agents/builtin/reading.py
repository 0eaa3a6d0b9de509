"""Which reader a page wants, by the ending of its name."""

from __future__ import annotations

from pathlib import PurePosixPath

from webordinary.site.agents.builtin.astro import parse_astro
from webordinary.site.agents.builtin.front_matter import read_front_matter
from webordinary.site.agents.builtin.html import parse_page
from webordinary.site.agents.builtin.html_writing import HTML, HTML_IN_ASCII
from webordinary.site.agents.builtin.markdown import parse_markdown
from webordinary.site.agents.builtin.page import Page, Writing, hidden


def read_page(name: str, source: str, utf8: bool = True) -> Page:
    """A page of any kind; into HTML that is not in UTF-8, new words are written as character references."""
    match PurePosixPath(name).suffix:
        case ".astro":
            return parse_astro(source)
        case ".md" | ".markdown":
            return parse_markdown(source)
        case ".mdx":
            return parse_markdown(source, mdx=True)
        case _:
            return _with_front_matter(source, HTML if utf8 else HTML_IN_ASCII)


def _with_front_matter(source: str, writing: Writing) -> Page:
    front = read_front_matter(source)
    if not front.end:
        return parse_page(source, writing=writing)
    page = parse_page(source, hidden(source[: front.end]) + source[front.end :], writing)
    page.texts = [text for text in page.texts if text.start >= front.end]
    if front.title is not None and page.title is None:
        page.add_value(front.title)
        page.elements.sort(key=lambda element: element.start)
    return page
