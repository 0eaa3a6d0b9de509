"""Where things stand in a Markdown page: headings, paragraphs, lists, images; code is left alone."""

from __future__ import annotations

import re

from webordinary.adapters.agents.builtin.page import (
    HIDDEN,
    Element,
    Page,
    Patch,
    Picture,
    Span,
    hidden,
    without_expressions,
)
from webordinary.adapters.agents.builtin.values import read_front_matter, unescaped

IMAGE = re.compile(
    r"!\[(?P<alt>(?:[^\[\]\\]|\\.){0,500})\]\([ ]?(?P<src><[^<>\n]{0,500}>|[^\s()]{0,500}+)(?P<rest>[^()\n]{0,500})\)"
)
_MARKUP = re.compile(
    rf"{re.sub('[?]P<[a-z]+>', '?:', IMAGE.pattern)}"
    r"|(?<!\\)\]\((?:(?!\]\(|\n[ \t]*\r?\n)[^)]){0,500}\)|(?<!\\)\]\[[^\]\n]{0,500}\]|(?<!\\)[\[\]]"
    r"|(?<!\\)[*~|]+|(?<![\w\\])_++(?=\S)|(?:(?<=[^\s\\_])|(?<=\\_))_++(?!\w)"
    r"|</?[A-Za-z][^<>]*>|<[a-z][a-z0-9+.-]*:[^<>\s]*>"
    rf"|{HIDDEN}+|(?<!\\)\{{[^{{}}\n]*\}}"
    r"|^[ \t]*(?:>[ \t]?)+|(?<![ ])[ ]{2,}+\r?\n|\\\r?\n",
    re.MULTILINE,
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SET_ASIDE = 0xF0000  # where an escaped mark waits, as a private character, until the others are read
_CODE = re.compile(r"(?<!`)(`++)(.{1,500}?)(?<!`)\1(?!`)", re.DOTALL)


def texts_of(readable: str, start: int, end: int, element: Element) -> list[Span]:
    """The stretches of text between the marks of Markdown."""
    spans, position = [], start
    for mark in _MARKUP.finditer(readable, start, end):
        spans.append(Span(position, mark.start(), element))
        position = mark.end()
    spans.append(Span(position, end, element))
    return [span for span in spans if span.start < span.end and readable[span.start : span.end].strip()]


def read_inline(fragment: str) -> str:
    """A fragment without its marks."""
    text = _ESCAPED.sub(lambda mark: chr(_SET_ASIDE + ord(mark[1])), fragment)
    text = _CODE.sub(lambda code: code[2], text)
    text = unescaped(_MARKUP.sub("", text))
    return " ".join(re.sub("[\U000f0021-\U000f007e]", lambda mark: chr(ord(mark[0]) - _SET_ASIDE), text).split())


def images_of(readable: str, start: int, end: int, parent: Element) -> list[Element]:
    """The images; the inner part of each is its address."""
    return [
        Element(
            "img",
            {"src": image["src"].strip("<>"), "alt": read_inline(image["alt"])},
            image.start(),
            image.start("src"),
            parent,
            image.end("src"),
            image.end(),
        )
        for image in IMAGE.finditer(readable, start, end)
    ]


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

    def paragraph_after(self, page: Page, heading: Element, words: str) -> Patch:
        """Right behind the heading."""
        return self._block_after(page, heading.end, self.escape(words))

    def pictures(self, page: Page, pictures: list[Picture], heading: Element | None) -> Patch:
        """Right behind the heading; else after the first paragraph, below the first heading, or at the end."""
        tops = [heading] if heading else [one for one in page.all("p") if one.parent is None] or page.all("h1")
        place = tops[0].end if tops else len(page.source.rstrip())
        lines = [f"![{self.escape(one.shows)}]({one.address})" for one in pictures]
        return self._block_after(page, place, (_line_end(page.source) * 2).join(lines))

    def other_picture(self, page: Page, image: Element, picture: Picture) -> Patch:
        """Its address and its words; Markdown has no sizes."""
        rest = page.source[image.inner_end : image.end]
        return Patch(image.start, image.end, f"![{self.escape(picture.shows)}]({picture.address}{rest}")

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
