"""Where things stand in a Markdown page: title, headings, paragraphs, lists, images; code is left alone."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from webordinary.adapters.agents.builtin.page import (
    HEADINGS,
    Element,
    Page,
    Patch,
    Picture,
    Span,
    front_matter,
    unescaped,
)

_HIDDEN = re.compile(
    r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n(?:.*?^[ \t]*(?P=fence)[`~]*[ \t]*\r?$|.*\Z)"
    r"|<!--.*?(?:-->|\Z)|<(?P<tag>script|style|pre|textarea)\b.*?(?:</(?P=tag)\s*>|\Z)|(?<!`)(`++)[^`]{1,500}+\3(?!`)",
    re.S | re.M | re.I,
)
_MARKS = re.compile(
    r"!\[[^\[\]]{0,500}\]\([^)\n\[]{0,500}\)"
    r"|(?<!\\)\]\((?:[^)\n\]]|\n(?![ \t]*\r?\n)){0,500}\)"
    r"|(?<!\\)\]\[[^\]\n]{0,500}\]|(?<!\\)!?[\[\]]|(?<!\\)[*~|]+|(?<![\w\\])_++|(?<![\\_])_++(?!\w)"
    r"|<[^<>\n]{1,500}>|(?<!\\)\{[^{}\n]{0,500}\}+|(?<!\\)[{}]|\ue000+|^[ \t]*(?:>[ \t]?)+",
    re.M,
)
"""What stands between the texts of a paragraph."""
_IMAGE = re.compile(r"!\[(?P<alt>[^\[\]]{0,500})\]\((?P<src>[^\s()<>]{1,500}+)(?P<rest>[^()\n]{0,500})\)")
_HEADING = re.compile(r" {0,3}(?P<level>#{1,6})[ \t]++(?=\S)")
_HEADING_END = re.compile(r"(?<![ \t])[ \t]++(?:#+|\{[^{}]*\})\Z")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<mark>[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)")
_NO_TEXT = re.compile(r" {0,3}(?:(?:[*_-][ \t]*){3,}$|\[[^\]]+\]:|</?[a-z]|:::|(?:!!!|\?\?\?\+?|===)[ \t])", re.I)
_AT_START = re.compile(r"\A(?:(\d{1,9})([.)])(?=\s|\Z)|[-+#!:=])")
_WRITTEN = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "~": "&#126;"}


@dataclass(frozen=True, slots=True)
class Markdown:
    """The language of Markdown pages."""

    backslashes: bool = True

    def escape(self, words: str, element: Element | None = None) -> str:
        """Words that stay words; in front matter, a text in quotation marks, which is right in YAML and in TOML."""
        words = " ".join(words.split())
        if element is not None and element.name == "title":
            return json.dumps(words, ensure_ascii=False)
        safe = re.sub(r"[\\`*_\[\]{}&<>|~]", lambda mark: _WRITTEN.get(mark[0], "\\" + mark[0]), words)
        return _AT_START.sub(lambda mark: f"{mark[1]}\\{mark[2]}" if mark[1] else f"&#{ord(mark[0])};", safe)

    def read(self, fragment: str, element: Element | None = None) -> str:
        """A fragment without its marks; in front matter, a text without its quotation marks."""
        quoted = element and element.name == "title" and re.fullmatch(r"(['\"])(.*)\1", fragment)
        text = re.sub(r"(?<!\\)`", "", _MARKS.sub("", quoted[2].replace("''", "'") if quoted else fragment))
        return " ".join(unescaped(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)).split())

    def block(self, page: Page, after: Element | None, content: str | Picture) -> Patch:
        """Between empty lines behind the element, else at the end of the page."""
        block = (
            self.escape(content) if isinstance(content, str) else f"![{self.escape(content.shows)}]({content.address})"
        )
        place, line = after.end if after else len(page.source.rstrip()), _line_end(page)
        rest = page.source[place:].lstrip(" \t")
        between = "" if not rest or re.match(r"\r?\n[ \t]*(?:\r?\n|\Z)", rest) else line
        return Patch(place, place, (line * 2 if place else "") + block + (between if rest else line))

    def item(self, page: Page, items: list[Element], words: str) -> Patch:
        """Marked and spaced as the others are, and counted on where they count."""
        last, mark = items[-1], re.sub(r"\[[xX]\]", "[ ]", items[-1].tag)
        number = re.search(r"\d+", mark)
        if number and items[0].tag != last.tag:
            mark = mark.replace(number[0], str(int(number[0]) + 1), 1)
        gap = page.source[items[-2].end : last.start].count("\n") if len(items) > 1 else 1
        return Patch(last.end, last.end, _line_end(page) * max(1, gap) + mark + self.escape(words))

    def other_picture(self, page: Page, image: Element, picture: Picture) -> Patch:
        """Its address and its words; Markdown has no sizes."""
        rest = _IMAGE.fullmatch(page.source[image.start : image.end])
        new = f"![{self.escape(picture.shows)}]({picture.address}{rest['rest'] if rest else ''})"
        return Patch(image.start, image.end, new)


def _line_end(page: Page) -> str:
    return "\r\n" if "\r\n" in page.source else "\n"


def parse_markdown(source: str) -> Page:
    """Read a page line by line; what is code or a template is hidden from the reader."""
    page, (start, title) = Page(source, Markdown()), front_matter(source)
    page.elements += [title] if title else []
    hidden = _HIDDEN.sub(lambda found: re.sub(r"[^\n]", "\ue000", found[0]), source[start:])
    readable = source[:start] + hidden
    block = items = top = None
    for line in re.compile(r"[^\n]*\n|[^\n]+\Z").finditer(readable, start):
        text = line[0].rstrip()
        begin, end, indented = line.start(), line.start() + len(text), text[:1] == "\t" or text[:2] == "  "
        if not text.strip("\ue000"):
            block = None
        elif heading := _HEADING.match(text):
            block = items = None
            inner_end = begin + max(heading.end(), len(_HEADING_END.sub("", text)))  # `# #` has no text
            page.elements.append(
                Element(f"h{len(heading['level'])}", "", begin, begin + heading.end(), None, inner_end, end)
            )
        elif block and block.name == "p" and block.parent is None and _UNDERLINE.match(text):
            block.name, block.end, block = ("h1" if "=" in text else "h2"), end, None
        elif _NO_TEXT.match(text):
            block = Element("", "", begin, begin, None, end, end)  # also what follows without an empty line
        elif item := _ITEM.match(text):
            if items is None or (not indented and items.tag != item["mark"][-1]):
                name = "ol" if item["mark"][0].isdigit() else "ul"
                items = Element(name, item["mark"][-1], begin, begin, None, end, end)
                page.elements.append(items)
            block = Element("li", item[0], begin, begin + item.end(), None if indented else items, end, end)
            top = top if indented else block
            page.elements.append(block)
        elif block is not None:
            block.inner_end = block.end = end
        elif indented and items is None and re.match(r"\t| {4}", text):
            continue  # code, by its indentation
        else:
            items = items if indented else None
            begin += len(text) - len(text.lstrip())
            block = Element("p", "", begin, begin, items, end, end)
            page.elements.append(block)
        if indented and items and top:
            top.end = end
    for element in [one for one in page.elements if one.name in ("p", "li", *HEADINGS)]:
        _read_text(page, element, readable)
    page.elements.sort(key=lambda one: one.start)
    return page


def _read_text(page: Page, element: Element, readable: str) -> None:
    """The texts between the marks of a block, and its images."""
    position = element.inner_start
    inner = readable[element.inner_start : element.inner_end]
    element.fixed = "\ue000" in inner and element.name in HEADINGS
    marks = [mark.span() for mark in _MARKS.finditer(readable, element.inner_start, element.inner_end)]
    for begin, end in (*marks, (element.inner_end, element.inner_end)):
        if readable[position:begin].strip():
            page.texts.append(Span(position, begin, element))
        position = end
    for image in _IMAGE.finditer(readable, element.inner_start, element.inner_end):
        tag = f'<img src="{image["src"]}" alt="{image["alt"]}">'
        page.elements.append(
            Element("img", tag, image.start(), image.start("src"), element, image.end("src"), image.end())
        )
