"""Where things stand in an HTML page's source."""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import dataclass

from webordinary.adapters.agents.builtin.page import Element, Markup, Page, Patch, Picture, Span, unescaped
from webordinary.mail.parsing.small_talk import word_set

_VALUE = r"(?:\"[^\"]*+\"|'[^']*+'|[^\s>]++)"


@dataclass(frozen=True, slots=True)
class Html:
    """The language of HTML pages."""

    references: bool = False
    """Whether what is not ASCII becomes a character reference: right in whichever charset the page is read."""
    backslashes: bool = False

    def escape(self, words: str, element: Element | None = None) -> str:
        """Words made safe to stand in a page."""
        del element  # all elements that may be filled follow the same rules
        safe = html.escape(words).replace("&#x27;", "'")
        return safe.encode("ascii", "xmlcharrefreplace").decode() if self.references else safe

    def read(self, fragment: str, element: Element | None = None) -> str:
        """A fragment without its tags, entities read and white space squeezed."""
        tagged = fragment.rfind(">") + 1  # no tag ends after this, so none is looked for
        return " ".join(unescaped(re.sub(r"<[^>]*+>", " ", fragment[:tagged]) + fragment[tagged:]).split())

    def block(self, page: Page, after: Element | None, content: str | Picture) -> Patch:
        """On a line of its own behind the element, else at the end of the main part."""
        new = f"<p>{self.escape(content)}</p>" if isinstance(content, str) else self._figure(content)
        if after is not None:
            return Patch(after.end, after.end, f"\n{_indent(page, after)}{new}")
        end = next(iter(page.all("main") or page.all("body")), None)
        place = end.inner_end if end else len(page.source)
        return Patch(place, place, f"{new}\n")

    def item(self, page: Page, items: list[Element], words: str) -> Patch:
        """With the class of the last item, if it has one."""
        last = items[-1]
        tag = last.tag if last.attributes.keys() <= {"class"} else "<li>"
        place = last.start + len(page.source[last.start : last.end].rstrip())
        own_line = page.source[page.source.rfind("\n", 0, last.start) + 1 : last.start].strip() == ""
        lead = f"\n{_indent(page, last)}" if own_line else ""
        return Patch(place, place, f"{lead}{tag}{self.escape(words)}</li>")

    def other_picture(self, page: Page, image: Element, picture: Picture) -> Patch:
        """Change address, words and size; a srcset or the sources of a `<picture>` would still show the old photo."""
        tag, is_other = image.tag, picture.address != image.attributes.get("src")
        for name in ("srcset", "sizes", "width", "height", "alt") if is_other else ("width", "height", "alt"):
            tag = re.sub(rf"(?<!\s)\s++{name}\s*+=\s*+{_VALUE}", "", tag, flags=re.I)
        new = f'src="{html.escape(picture.address)}"{self._described(picture)}'
        tag = re.sub(rf"(?<=\s)src\s*+=\s*+{_VALUE}", lambda _: new, tag, count=1, flags=re.I)
        around = image.parent if image.parent is not None and image.parent.name == "picture" else None
        if around is None or not is_other:
            return Patch(image.start, image.end, self._with_copy(tag, picture) if is_other else tag)
        return Patch(around.start, around.end, self._with_copy(tag, picture, around.tag))

    def _described(self, picture: Picture) -> str:
        size = f' width="{picture.width}" height="{picture.height}"' if picture.width else ""
        return f' alt="{self.escape(picture.shows)}"{size}'

    def _figure(self, picture: Picture) -> str:
        tag = (
            f'<img src="{self.escape(picture.address)}"{self._described(picture)} loading="lazy" '
            'style="max-width:100%;height:auto">'
        )
        return f'<figure class="photo">{self._with_copy(tag, picture)}</figure>'

    def _with_copy(self, tag: str, picture: Picture, around: str = '<picture style="display:contents">') -> str:
        """A photo with its WebP copy. The `<picture>` makes no box, so that the photo keeps its place in the layout."""
        if not picture.webp:
            return tag
        return f'{around}<source type="image/webp" srcset="{self.escape(picture.webp)}">{tag}</picture>'


def _indent(page: Page, element: Element) -> str:
    """The white space before an element that begins its line."""
    line = page.source[max(page.source.rfind("\n", 0, element.start) + 1, element.start - 200) : element.start]
    return line if not line.strip() else ""


_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<[!?][^>]*+(?:>|\Z)|<(?P<end>/?)(?P<name>[a-z][^\s/>]*+)"
    r"(?:=\s*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))|[^>=]++|=)*+(?:>|\Z)",
    re.S | re.I,
)
"""What is not closed reaches to the end, so that no character is read from two beginnings."""
_RAW = {name: re.compile(rf"</{name}(?=[\s/>])", re.I) for name in ("script", "style")}
_VOID = word_set("area base br col embed hr img input link meta source track wbr")
_UNSEEN = ("script", "style", "template", "noscript", "svg")
_ROWS = frozenset(("td", "th", "tr"))
_CLOSES = {
    "p": frozenset("p"), "li": frozenset(("li",)), "option": frozenset(("option",)), "tr": _ROWS, "td": _ROWS - {"tr"},
    "th": _ROWS - {"tr"}, "tbody": _ROWS | {"thead"}, **dict.fromkeys(("dt", "dd"), frozenset(("dt", "dd"))),
}  # fmt: skip
"""Which open elements end where one of this name begins, without an end tag …"""
_BARRIERS = word_set("table ul ol dl div section article main body template aside blockquote")
"""… as far as none of these stands between."""
_DEEPEST = 200
"""Browsers stop near 500. What is deeper is text of the element at this depth."""


def parse_page(source: str, markup: Markup | None = None, start: int = 0) -> Page:
    """Read a page; whatever is wrong with it, every offset is a real one."""
    return _Parser(Page(source, markup or Html())).read(start)


class _Parser:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: list[Element] = []
        self._left_out: Counter[str] = Counter()
        self._names: Counter[str] = Counter()

    def read(self, start: int) -> Page:
        source, position = self._page.source, start
        while (tag := _TAG.search(source, position)) is not None:
            self._text(position, tag.start())
            position = tag.end()
            name = (tag["name"] or "").lower()
            if name and tag["end"]:
                self._end(name, *tag.span())
            elif name:
                self._begin(name, tag)
            if name in _RAW and not tag["end"]:
                raw = _RAW[name].search(source, position)
                position = raw.start() if raw else len(source)
        self._text(position, len(source))
        while self._open:
            self._close(len(source), len(source))
        return self._page

    def _begin(self, name: str, tag: re.Match[str]) -> None:
        for _ in range(self._ended_by(name)):
            self._close(tag.start(), tag.start())
        parent = self._open[-1] if self._open else None
        outer = (
            parent.outer | {parent.name}
            if parent and parent.name not in parent.outer
            else parent.outer
            if parent
            else frozenset()
        )
        element = Element(name, tag[0], tag.start(), tag.end(), parent, tag.end(), tag.end(), outer)
        void = name in _VOID or tag[0].endswith("/>")
        if len(self._open) >= _DEEPEST:
            self._left_out[name] += not void
            return
        self._page.elements.append(element)
        if not void:
            self._open.append(element)
            self._names[name] += 1

    def _ended_by(self, name: str) -> int:
        """How many open elements end where one of this name begins, as in browsers: a row ends the row before it."""
        count = 0
        for up, element in enumerate(reversed(self._open) if name in _CLOSES else (), start=1):
            if element.name in _BARRIERS:
                break
            count = up if element.name in _CLOSES[name] else count
        return count

    def _end(self, name: str, start: int, end: int) -> None:
        if self._left_out[name]:
            self._left_out[name] -= 1
        elif self._names[name]:
            while self._open[-1].name != name:
                self._close(start, start)
            self._close(start, end)

    def _close(self, inner_end: int, end: int) -> None:
        element = self._open.pop()
        self._names[element.name] -= 1
        element.inner_end, element.end = inner_end, end

    def _text(self, start: int, end: int) -> None:
        if self._page.source[start:end].strip() and not any(self._names[name] for name in _UNSEEN):
            self._page.texts.append(Span(start, end, self._open[-1] if self._open else None))
