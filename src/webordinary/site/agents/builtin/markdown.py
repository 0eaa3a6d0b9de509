"""Where things stand in a Markdown page: headings, paragraphs, lists, images; code is left alone."""

from __future__ import annotations

import re

from webordinary.site.agents.builtin.braces import without_expressions
from webordinary.site.agents.builtin.front_matter import read_front_matter
from webordinary.site.agents.builtin.markdown_inline import images_of, texts_of
from webordinary.site.agents.builtin.markdown_writing import MARKDOWN, MDX
from webordinary.site.agents.builtin.page import HIDDEN, Element, Page, hidden

_NO_TEXT = re.compile(
    r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n(?:.*?^[ \t]*(?P=fence)[`~]*[ \t]*\r?$|.*\Z)"
    r"|<!--.*?(?:-->|\Z)|<(?P<tag>script|style|pre|textarea)\b.*?(?:</(?P=tag)\s*>|\Z)"
    r"|\{\{[<%](?:(?!\{\{[<%]).){0,2000}?[%>]\}\}"
    r"|(?<!`)(?P<ticks>`++)(?:(?!\n[ \t]*\r?\n).){1,500}?(?<!`)(?P=ticks)(?!`)",
    re.S | re.M | re.I,
)
_MODULE = re.compile(r"^(?:import|export)\b.*?(?:\n[ \t]*(?=\r?\n)|\Z)", re.S | re.M)
_HEADING = re.compile(r" {0,3}(?P<level>#{1,6})[ \t]+(?=\S)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<mark>[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)")
_DIRECTIVE = re.compile(r"(?:!!!|\?\?\?\+?|===)[ \t]|:::")
_REFERENCE = re.compile(r" {0,3}\[[^\]]+\]:")
_TAG = re.compile(r" {0,3}</?[A-Za-z][^<>]*(?:>|$)")


def parse_markdown(source: str, mdx: bool = False) -> Page:
    """Read a page; its front matter gives the title."""
    front = read_front_matter(source)
    body = _NO_TEXT.sub(lambda found: hidden(found[0]), source[front.end :])
    if mdx:
        body = without_expressions(_MODULE.sub(lambda found: hidden(found[0]), body))
    page = Page(source, MDX if mdx else MARKDOWN)
    if front.title is not None:
        page.add_value(front.title)
    _Blocks(page, hidden(source[: front.end]) + body).read(front.end)
    return page


class _Blocks:
    """Reads a page line by line; at any time one paragraph and one list may be open."""

    def __init__(self, page: Page, readable: str) -> None:
        self._page = page
        self._readable = readable
        self._block: Element | None = None
        self._list: Element | None = None
        self._item: Element | None = None
        self._mark = ""
        self._after_blank = True
        self._in_directive = False

    def read(self, start: int) -> None:
        for line in re.compile(r"[^\n]*\n|[^\n]+\Z").finditer(self._readable, start):
            text = line[0].rstrip("\r\n")
            if text.strip(f" \t{HIDDEN}"):
                self._line(text, line.start())
                self._after_blank = False
            else:
                self._end_block()
                self._after_blank = True
        self._end_block()

    def _line(self, text: str, start: int) -> None:
        indented = text[:1] == "\t" or text[:2] == "  "
        if not indented and (self._after_blank or _HEADING.match(text)):
            self._in_directive = self._in_directive and indented
            if not _ITEM.match(text):
                self._list = self._item = None
        if heading := _HEADING.match(text):
            self._end_block()
            inner_end = heading.end() + len(_heading_words(text[heading.end() :]))
            self._heading(
                f"h{len(heading['level'])}", start, start + len(text), start + heading.end(), start + inner_end
            )
        elif self._block and self._block.name == "p" and not self._list and _UNDERLINE.fullmatch(text):
            self._underlined("h1" if "=" in text else "h2", start + len(text))
        elif _RULE.fullmatch(text) or _REFERENCE.match(text):
            self._end_block()
        elif _DIRECTIVE.match(text):
            self._end_block()
            self._in_directive = True
        elif item := _ITEM.match(text):
            self._begin_item(item, text, start)
        elif self._block is None and not self._list and not self._in_directive and re.match(r"\t| {4}", text):
            pass  # code, by its indentation
        else:
            self._text(text, start)

    def _heading(self, name: str, start: int, end: int, inner_start: int, inner_end: int) -> None:
        element = Element(name, {}, start, inner_start, None, inner_end, end)
        element.computed = "\ue000" in self._readable[inner_start:inner_end]
        self._add(element)

    def _underlined(self, name: str, end: int) -> None:
        block, self._block = self._block, None
        assert block is not None
        self._heading(name, block.start, end, block.inner_start, block.inner_end)

    def _begin_item(self, item: re.Match[str], text: str, start: int) -> None:
        self._end_block()
        kind, depth = item["mark"][-1], len(item["indent"].expandtabs(4))
        base = self._list.attributes["depth"] if self._list else ""
        nested = self._list is not None and depth >= int(base) + 2
        if not nested and (self._list is None or kind != self._mark):
            name = "ol" if item["mark"][0].isdigit() else "ul"
            self._list = Element(name, {"depth": str(depth)}, start, start, None, start, start)
            self._page.elements.append(self._list)
            self._mark = kind
        parent = self._item if nested else self._list
        inner = start + item.end()
        element = Element("li", {"mark": text[: item.end()]}, start, inner, parent, inner, inner)
        if not nested:
            self._item = element
        self._block = element
        self._page.elements.append(element)
        self._reach(start + len(text.rstrip()))

    def _text(self, text: str, start: int) -> None:
        content = start + len(text) - len(text.lstrip(" \t"))
        if self._block is None:
            name = "html" if _TAG.match(text) else "p"
            self._block = Element(name, {}, content, content, self._item if self._list else None)
            self._page.elements.append(self._block)
        self._reach(start + len(text.rstrip(" \t")))

    def _reach(self, end: int) -> None:
        for element in (self._block, self._item if self._list else None, self._list):
            if element is not None:
                element.end = end
        if self._block is not None:
            self._block.inner_end = end

    def _end_block(self) -> None:
        block, self._block = self._block, None
        if block is not None:
            self._spread(block)

    def _add(self, element: Element) -> None:
        self._page.elements.append(element)
        self._spread(element)

    def _spread(self, element: Element) -> None:
        start, end = element.inner_start, element.inner_end
        self._page.texts += texts_of(self._readable, start, end, element)
        self._page.elements += images_of(self._readable, start, end, element)


def _heading_words(rest: str) -> str:
    """A heading's line without the attributes and the closing `##` that may stand at its end."""
    words = rest.rstrip(" \t")
    bare = words.rstrip(HIDDEN)
    if bare == words and words.endswith("}"):
        inner = words[words.rfind("{") + 1 : -1]
        bare = words[: words.rfind("{")] if "{" in words and "}" not in inner else words
    bare = bare.rstrip(" \t")
    unclosed = bare.rstrip("#")
    if unclosed != bare and unclosed[-1:] in (" ", "\t"):
        bare = unclosed.rstrip(" \t")
    return bare or words
