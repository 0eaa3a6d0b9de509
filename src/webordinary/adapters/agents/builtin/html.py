"""Where things stand in an HTML page's source, so that an edit touches only its own characters."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections import Counter

from webordinary.adapters.agents.builtin.page import (
    HIDDEN,
    Element,
    MarkupWriter,
    Page,
    Patch,
    Picture,
    Span,
    as_references,
    hidden,
    without_expressions,
)
from webordinary.adapters.agents.builtin.values import Tag, Value, attribute_value, script_value, tags_of, unescaped

_WIDEST_INDENT = 200


class HtmlWriting:
    """The language of HTML pages, and of the template part of Astro's, where braces have a meaning too."""

    backslashes = False

    def __init__(self, braces: bool = False, ascii_only: bool = False) -> None:
        self._braces = braces
        self._ascii_only = ascii_only

    def escape(self, words: str, element: Element | None = None) -> str:
        """Words made safe to stand in a page."""
        del element  # all elements that may be filled follow the same rules
        safe = html.escape(words, quote=True).replace("&#x27;", "'")
        safe = as_references(safe) if self._ascii_only else safe
        return safe.replace("{", "&#123;").replace("}", "&#125;") if self._braces else safe

    def read(self, fragment: str) -> str:
        """A fragment without its tags, entities read and white space squeezed."""
        return visible_text(fragment)

    def paragraph(self, page: Page, words: str) -> Patch:
        """Below the last paragraph of the running text, else at the end of the main part."""
        text, new = page.running_text(), f"<p>{self.escape(words)}</p>"
        if text:
            return Patch(text[-1].end, text[-1].end, f"\n{indent(page, text[-1])}{new}")
        end = page.first("main") or page.first("body")
        place = end.inner_end if end else len(page.source)
        return Patch(place, place, f"{new}\n")

    def item(self, page: Page, within: Element, words: str) -> Patch:
        """After the last item, with its class if it has one."""
        items = [item for item in page.all("li") if item.parent is within]
        if not items:
            return Patch(within.inner_end, within.inner_end, f"<li>{self.escape(words)}</li>")
        last = items[-1]
        tag = page.source[last.start : last.inner_start] if last.attributes.keys() <= {"class"} else "<li>"
        place = last.start + len(page.source[last.start : last.end].rstrip())
        own_line = page.source[page.source.rfind("\n", 0, last.start) + 1 : last.start].strip() == ""
        lead = f"\n{indent(page, last)}" if own_line else ""
        return Patch(place, place, f"{lead}{tag}{self.escape(words)}</li>")

    def paragraph_after(self, page: Page, heading: Element, words: str) -> Patch:
        """Right behind the heading."""
        return Patch(heading.end, heading.end, f"\n{indent(page, heading)}<p>{self.escape(words)}</p>")

    def pictures(self, page: Page, pictures: list[Picture], heading: Element | None) -> Patch:
        """Right behind the heading, or after the first section of the main part."""
        place, lead = (heading.end, indent(page, heading)) if heading else _picture_place(page)
        figures = map(self._figure, pictures)
        lines = (f"\n{lead}{figure}" if lead is not None else f"{figure}\n" for figure in figures)
        return Patch(place, place, "".join(lines))

    def other_picture(self, page: Page, image: Element, picture: Picture) -> Patch:
        """Change address, words and size; a srcset or the sources of a `<picture>` would still show the old photo."""
        tag = page.source[image.start : image.inner_start]
        for name in ("srcset", "width", "height", "alt"):
            tag = re.sub(rf"(?<!\s)\s++{name}\s*+=\s*+{_ATTRIBUTE_VALUE}", "", tag, flags=re.IGNORECASE)
        new = f'src="{html.escape(picture.address)}"{self._described(picture)}'
        tag = re.sub(rf"(?<=\s)src\s*=\s*{_ATTRIBUTE_VALUE}", lambda _: new, tag, count=1, flags=re.IGNORECASE)
        outer = image.parent if image.parent is not None and image.parent.name == "picture" else None
        return Patch(outer.start, outer.end, tag) if outer else Patch(image.start, image.inner_start, tag)

    def _described(self, picture: Picture) -> str:
        size = f' width="{picture.width}" height="{picture.height}"' if picture.width else ""
        return f' alt="{self.escape(picture.shows)}"{size}'

    def _figure(self, picture: Picture) -> str:
        return (
            f'<figure class="photo"><img src="{self.escape(picture.address)}"{self._described(picture)} loading="lazy" '
            'style="max-width:100%;height:auto"></figure>'
        )


_ATTRIBUTE_VALUE = r"""(?:"[^"]*+"|'[^']*+'|[^\s>]++)"""


def visible_text(fragment: str) -> str:
    """A fragment without its tags, entities read and white space squeezed."""
    tagged = fragment.rfind(">") + 1  # no tag ends after this, so none is looked for
    return " ".join(unescaped(re.sub(r"<[^>]*+>", " ", fragment[:tagged]) + fragment[tagged:]).split())


def indent(page: Page, element: Element) -> str:
    """The white space before an element that begins its line."""
    near = page.source[max(0, element.start - _WIDEST_INDENT) : element.start]
    lead = near[len(near.rstrip(" \t")) :]
    return lead if len(lead) == element.start or near[: -len(lead) or None].endswith("\n") else ""


def _picture_place(page: Page) -> tuple[int, str | None]:
    """After the first section of the main part, or at the end of its article; else at the end of the page."""
    main = page.first("main") or page.first("article") or page.first("body")
    if main is None:
        return len(page.source), None
    sections = [e for e in page.all("section", "header", "div") if e.parent is main and e.end > 0]
    if main.name != "body" and sections:
        return sections[0].end, indent(page, sections[0])
    articles = [e for e in page.all("article") if e.parent is main]
    if len(articles) == 1:
        return articles[0].inner_end, None
    footer = page.first("footer")
    if footer is not None and footer.parent is main:
        return footer.start, None
    return main.inner_end, None


HTML = HtmlWriting()
HTML_IN_ASCII = HtmlWriting(ascii_only=True)
ASTRO = HtmlWriting(braces=True)


_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
_CLOSED_BY_SIBLING = frozenset(("p", "li", "option"))
_CELLS, _TERMS = frozenset(("td", "th")), frozenset(("dt", "dd"))
_ROWS = _CELLS | {"tr"}
_SECTIONS = frozenset(("thead", "tbody", "tfoot"))
_CLOSES = {
    **dict.fromkeys(_CELLS, (_CELLS, frozenset(("tr", "table", "template")))),
    "tr": (_ROWS, frozenset(("table", "template"))),
    **dict.fromkeys(_SECTIONS, (_ROWS | _SECTIONS, frozenset(("table", "template")))),
    **dict.fromkeys(_TERMS, (_TERMS, frozenset(("dl", "ul", "ol", "table", "template")))),
}
"""Which open elements end where one of this name begins, without an end tag; and where the search for them ends."""
_UNSEEN = frozenset(("script", "style", "template", "noscript", "svg"))
_DEEPEST = 200
"""Browsers stop near 500. What is deeper stands in the element at this depth; and if there are more elements in it,
it is left out, so that no character is within more than this many, and one more."""


def parse_page(source: str, readable: str | None = None, writing: MarkupWriter = HTML) -> Page:
    """Read a page; whatever is wrong with it, every offset is a real one.

    A `readable` copy of the source, as long as it, has what is no HTML hidden.
    """
    page = _HtmlParser(source if readable is None else readable, writing).read()
    page.source = source
    return page


class _HtmlParser:
    def __init__(self, source: str, writing: MarkupWriter) -> None:
        self._page = Page(source, writing)
        self._open: list[Element] = []
        self._names: Counter[str] = Counter()
        self._left_out: set[int] = set()
        self._text_from = 0

    def read(self) -> Page:
        for tag in tags_of(self._page.source):
            self._text_until(tag.start)
            self._text_from = tag.end
            if tag.closing:
                self._end(tag)
            elif tag.name:
                self._begin(tag)
        size = len(self._page.source)
        self._text_until(size)
        while self._open:
            self._close(size, size)
        self._page.elements = [element for element in self._page.elements if id(element) not in self._left_out]
        return self._page

    def _begin(self, tag: Tag) -> None:
        for _ in range(self._ended_by(tag.name)):
            self._close(tag.start, tag.start)
        parent = self._open[min(len(self._open), _DEEPEST) - 1] if self._open else None
        element = Element(tag.name, tag.attributes, tag.start, tag.end, parent, tag.end, tag.end)
        self._page.elements.append(element)
        if tag.empty or tag.name in _VOID:
            return
        if len(self._open) > _DEEPEST:
            self._left_out.add(id(self._open[-1]))
        self._open.append(element)
        self._names[tag.name] += 1

    def _ended_by(self, name: str) -> int:
        """How many open elements end where this one begins, as in browsers: a row ends the row before it."""
        if name not in _CLOSES:
            return int(name in _CLOSED_BY_SIBLING and bool(self._open) and self._open[-1].name == name)
        closed, within = _CLOSES[name]
        count = 0
        for up, element in enumerate(self._open[: -_DEEPEST - 1 : -1], start=1):
            if element.name in within:
                break
            count = up if element.name in closed else count
        return count

    def _end(self, tag: Tag) -> None:
        if self._names[tag.name]:
            while self._open[-1].name != tag.name:
                self._close(tag.start, tag.start)
            self._close(tag.start, tag.end)

    def _close(self, inner_end: int, end: int) -> None:
        element = self._open.pop()
        self._names[element.name] -= 1
        element.inner_end, element.end = inner_end, end

    def _text_until(self, end: int) -> None:
        if self._page.source[self._text_from : end].strip() and not any(self._names[name] for name in _UNSEEN):
            self._page.texts.append(Span(self._text_from, end, self._open[-1] if self._open else None))


_SCRIPT = re.compile(r"\A\s*---[ \t]*\r?\n(?P<body>.*?)^---[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_TITLE = re.compile(
    r"^(?:export\s+)?(?:const|let)\s+(?:title|pageTitle)(?:\s*:\s*string)?\s*=\s*(?P<value>[\"'`].*)", re.M
)
_ATTRIBUTE = re.compile(r"""\stitle\s*=\s*(?P<value>"[^"]*"|'[^']*')""")


def parse_astro(source: str) -> Page:
    """Read a page; expressions in braces are no text of it."""
    script = _SCRIPT.match(source)
    begin = script.end() if script else 0
    readable = hidden(source[:begin]) + without_expressions(source[begin:])
    page = parse_page(source, readable, ASTRO)
    page.texts = [part for text in page.texts for part in _readable_parts(text, readable)]
    _mark_computed(page, readable)
    title = _title_of_layout(page, source) or (script and _title_of_script(script))
    if title and page.title is None:
        page.add_value(title)
        page.elements.sort(key=lambda element: element.start)
    return page


def is_title(page: Page, element: Element) -> bool:
    """Whether an element shows the title of the script, and nothing else."""
    inner = page.source[element.inner_start : element.inner_end]
    return re.fullmatch(r"\s*\{\s*(?:title|pageTitle)\s*\}\s*", inner) is not None


def _title_of_layout(page: Page, source: str) -> Value | None:
    for element in page.elements:
        tag = source[element.start : element.inner_start]
        found = _ATTRIBUTE.search(tag) if tag[1:2].isupper() else None
        if found is not None:
            return attribute_value(found["value"], element.start + found.start("value"))
    return None


def _title_of_script(script: re.Match[str]) -> Value | None:
    found = _TITLE.search(script.string, script.start("body"), script.end("body"))
    return script_value(found["value"], found.start("value")) if found else None


def _mark_computed(page: Page, readable: str) -> None:
    """Elements that hold an expression; each is looked up, not read, because they stand in one another."""
    expressions = [found.span() for found in re.finditer(f"{HIDDEN}+", readable)]
    for element in page.elements:
        following = bisect_right(expressions, element.inner_start, key=lambda span: span[1])
        element.computed = following < len(expressions) and expressions[following][0] < element.inner_end


def _readable_parts(text: Span, readable: str) -> list[Span]:
    parts = re.compile(f"[^{HIDDEN}]+").finditer(readable, text.start, text.end)
    return [Span(part.start(), part.end(), text.element) for part in parts if part[0].strip()]
