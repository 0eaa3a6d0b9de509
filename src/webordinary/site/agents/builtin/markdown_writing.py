"""How paragraphs, list items and images are written in Markdown, for all dialects that generators speak."""

from __future__ import annotations

import re

from webordinary.site.agents.builtin.markdown_inline import read_inline
from webordinary.site.agents.builtin.page import Element, Page, Patch

_MARKS = re.compile(r"[\\`*_\[\]{}]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "~": "&#126;"}
_AT_START = re.compile(r"\A(?:(\d{1,9})([.)])(?=\s|\Z)|([-+#!])|([:=]))")


class MarkdownWriting:
    """The language of Markdown pages; in MDX, lines that begin like a module's have a meaning too."""

    backslashes = True

    def __init__(self, modules: bool = False) -> None:
        self._modules = modules

    def escape(self, words: str, element: Element | None = None) -> str:
        """Words that stay words; within HTML, where a backslash is one, by entities alone."""
        words = " ".join(words.split())
        if element is not None and element.inside("html"):
            return re.sub(r"[\\`*_\[\]{}&<>|~]", lambda mark: f"&#{ord(mark[0])};", words)
        safe = _MARKS.sub(lambda mark: "\\" + mark[0], words)
        safe = re.sub(r"[&<>|~]", lambda mark: _ENTITIES[mark[0]], safe)
        if self._modules:
            safe = re.sub(r"\A[ie](?=mport\b|xport\b)", lambda first: f"&#{ord(first[0])};", safe)
        return _AT_START.sub(_escaped_start, safe)

    def read(self, fragment: str) -> str:
        """A fragment without its marks."""
        return read_inline(fragment)

    def paragraph(self, page: Page, words: str) -> Patch:
        """At the end of the page."""
        return self._block_after(page, len(page.source.rstrip()), self.escape(words))

    def item(self, page: Page, within: Element, words: str) -> Patch:
        """After the last item, marked and spaced as the others are."""
        items = [item for item in page.all("li") if item.parent is within]
        last, line = items[-1], _line_end(page.source)
        gap = page.source[items[-2].end : last.start] if len(items) > 1 else line
        lead = line * max(1, gap.count("\n"))
        return Patch(last.end, last.end, lead + _next_mark(items) + self.escape(words))

    def pictures(self, page: Page, pictures: list[tuple[str, str]]) -> Patch:
        """After the first paragraph; else below the heading, or at the end."""
        tops = [element for element in page.all("p") if element.parent is None] or page.all("h1")
        place = tops[0].end if tops else len(page.source.rstrip())
        lines = [f"![{self.escape(shows)}]({address})" for address, shows in pictures]
        return self._block_after(page, place, (_line_end(page.source) * 2).join(lines))

    def picture_address(self, page: Page, picture: Element, address: str) -> Patch:
        """Only the address; what it shows stays."""
        del page
        return Patch(picture.inner_start, picture.inner_end, address)

    def _block_after(self, page: Page, place: int, block: str) -> Patch:
        line, rest = _line_end(page.source), page.source[place:]
        lead = line * 2 if page.source[:place].strip() else ""
        if lead and page.source[:place].rstrip(" \t").endswith("\n"):
            lead = line
        return Patch(place, place, lead + block + ("" if rest[:1] in ("\n", "\r") else line))


def _escaped_start(start: re.Match[str]) -> str:
    if start[1]:
        return f"{start[1]}\\{start[2]}"
    return f"\\{start[3]}" if start[3] else f"&#{ord(start[4])};"


def _line_end(source: str) -> str:
    return "\r\n" if "\r\n" in source else "\n"


def _next_mark(items: list[Element]) -> str:
    """The mark of the last item, counted on where the others count."""
    marks = [item.attributes["mark"] for item in items]
    number = re.search(r"\d+", marks[-1])
    bare = re.sub(r"\[[xX]\]", "[ ]", marks[-1])
    if number is None or (len(marks) > 1 and re.findall(r"\d+", marks[-2]) == [number[0]]):
        return bare
    return bare.replace(number[0], str(int(number[0]) + 1), 1)


MARKDOWN = MarkdownWriting()
MDX = MarkdownWriting(modules=True)
