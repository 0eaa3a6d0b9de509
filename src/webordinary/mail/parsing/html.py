"""HTML mail to lines of text: lines where a reader sees lines, `>` where a reader sees a quote.

What an instruction may consist of stays visible: targets of links, places of pictures, numbers of lists and
struck-through text. Elements by which mail programs mark history and signatures give their lines a kind (`Line.kind`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Set
from html import unescape
from itertools import islice
from string import ascii_lowercase
from urllib.parse import parse_qs, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webordinary.mail.parsing.reply_lines import Line, introduces, may_introduce

MAX_HTML = 1_000_000
MAX_TAGS = 50_000
MAX_DEPTH = 500
MAX_QUOTES = 20
"""Deeper quotes are marked as if they were this deep."""
MAX_LINK = 2000
MAX_ALT = 100

_SKIPPED = {"script", "style", "head", "title", "meta", "link", "template", "noscript", "object", "svg"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "center", "dd", "div", "dl", "dt", "fieldset", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p",
    "pre", "section", "table", "tbody", "tr", "ul",
}  # fmt: skip
_SPACED = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "pre"}
_CLOSE_THEMSELVES = {
    "area", "base", "br", "col", "dd", "dt", "hr", "img", "input", "li", "link", "meta", "option", "p",
    "source", "td", "th", "tr", "wbr",
}  # fmt: skip
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_ANY_TAG = re.compile(r"<[^<>]{0,2000}>")
_SPACES = re.compile(r"[ \t\r\n\f]+")

# How mail programs mark what they wrote themselves, by class, id, name or style. Webmail puts `x_` before foreign ids.
_INTRODUCTIONS = {"gmail_attr", "moz-cite-prefix", "reply-intro"}
_HISTORIES = {"divrplyfwdmsg", "appendonsend", "olk_src_body_section", "zwchr", "stopspelling", "outlookmessageheader"}
"""All that follows is history: Outlook on the web, on phones and on the Mac, Hotmail, Zimbra."""
_WORD_RULE = re.compile(
    r"border-top:\s*solid\s+#(?:b5c4df|e1e1e1)\s+1\.0pt|border-top-color:\s*rgb\(229,\s*229,\s*229\)", re.I
)
"""The same in Outlook on the desktop and in Windows Mail."""
_QUOTES = {
    "gmail_quote", "gmail_quote_container", "yahoo_quoted", "protonmail_quote", "__quoted_text__",
    "messagereplysection",
}  # fmt: skip
"""Elements around a quote."""
_NAMED_QUOTE = "quote"
"""The `name` that GMX and Web.de give to them; as a class, web pages have it too."""
_SIGNATURES = {
    "gmail_signature", "moz-signature", "signature", "ms-outlook-mobile-signature", "applemailsignature", "_rc_sig",
    "linebreakatbeginningofsignature", "protonmail_signature_block", "yahoo_signature", "composer_signature",
    "__sig_pre__", "mobile_signature", "msg-signature", "messagesignaturesection",
}  # fmt: skip
_STRUCK_TAGS = {"s", "strike", "del"}
_STRUCK = re.compile(r"text-decoration[^;]{0,30}line-through", re.I)
_HIDDEN = re.compile(r"display:\s*none|visibility:\s*hidden|mso-hide:\s*all", re.I)
_INDENTED = re.compile(r"border(?:-left)?:\s*(?:none|0|medium none)", re.I)
_NAMING = ("class", "id", "name", "data-marker", "data-smartmail")
_NO_NAMES: Set[str] = frozenset()
_TINY = {"0", "1", "2", "0px", "1px", "2px"}
"""Width or height of a picture that counts readers."""
_REDIRECTS = re.compile(
    r"https?://(?:[a-z0-9-]+\.safelinks\.protection\.outlook\.com/|(?:www\.)?google\.[a-z.]{2,6}/url\?)", re.I
)


def html_to_lines(html: str, pictures: Mapping[str, str] | None = None, *, max_tags: int = MAX_TAGS) -> list[Line]:
    """The lines of an HTML mail; a document too wild to walk loses only its layout.

    `pictures` names the files that came with the mail by their Content-ID.
    """
    html = html[:MAX_HTML]
    if _too_wild(html, max_tags):
        return [Line(_SPACES.sub(" ", _ANY_TAG.sub(" ", html)).strip())]
    root = LexborHTMLParser(html).body
    if root is None:
        return []
    walk = _TextWalk(pictures or {})
    walk.over(root)
    return walk.writer.lines()


def _too_wild(html: str, max_tags: int) -> bool:
    """The parser's time grows with the square of the depth, so depth is estimated before it starts."""
    opened: Counter[str] = Counter()
    depth = 0
    for tags, match in enumerate(_TAG.finditer(html)):
        closing, tag = match.group(1), match.group(2).lower()
        if tag not in _CLOSE_THEMSELVES and not (closing and not opened[tag]):
            change = -1 if closing else 1
            opened[tag] += change
            depth += change
        if tags >= max_tags or depth > MAX_DEPTH:
            return True
    return False


class _TextWriter:
    """Collects lines; knows how deep in quotes it is, and which kind the markup gives to a line."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._line: list[str] = []  # pieces: adding to one long string takes the square of its length
        self._quotes = 0
        self.kinds: list[str] = []
        """The kinds of the elements around; the innermost counts."""
        self.next_kind = ""
        """For the next line with words alone."""
        self.cited = 0
        """How deep in quotes that a mail program marks as such, beside their indentation."""

    def words(self, text: str, *, verbatim: bool) -> None:
        if verbatim:
            *whole, last = text.split("\n")
            for line in whole:
                self._add(line)
                self.end_line(force=True)
            self._add(last)
            return
        flat = _SPACES.sub(" ", text)
        self._add(flat.lstrip(" ") if not self._line or self._line[-1].endswith(" ") else flat)

    def _add(self, piece: str) -> None:
        if piece:
            self._line.append(piece)

    def end_line(self, *, force: bool = False) -> None:
        line = "".join(self._line).replace("\u00a0", " ").replace("\u200b", "").rstrip()
        if line or force:
            self._lines.append(Line((self._mark() + line).rstrip(), self._kind() if line.strip() else ""))
        self._line = []

    def _kind(self) -> str:
        kind, self.next_kind = self.next_kind or (self.kinds[-1] if self.kinds else ""), ""
        return kind or ("q" if self.cited else "")

    def _mark(self) -> str:
        return "> " * min(self._quotes, MAX_QUOTES)

    def blank_line(self) -> None:
        self.end_line()
        if self._lines and self._lines[-1].text.strip("> "):
            self._lines.append(Line(self._mark().rstrip()))

    def quote(self, change: int) -> None:
        """Begin a quote, or end one; the empty line around it is no part of it."""
        if change > 0:
            self.blank_line()
        self.end_line()
        while change < 0 and self._lines and self._lines[-1].text == self._mark().rstrip():
            self._lines.pop()
        self._quotes = max(0, self._quotes + change)
        self.blank_line()

    @property
    def in_quote(self) -> bool:
        return self._quotes > 0

    @property
    def place(self) -> tuple[int, int]:
        """Where the next words go: number of the line, and of the piece in it."""
        return len(self._lines), len(self._line)

    def since(self, place: tuple[int, int]) -> str:
        """The words of this line since then; nothing where a line ended between."""
        return "".join(self._line[place[1] :]).strip() if place[0] == len(self._lines) else ""

    def last_words(self) -> str:
        """The last line that has words."""
        return next((line.text for line in reversed(self._lines[-3:]) if line.text.strip("> ")), "")

    def lines(self) -> list[Line]:
        self.end_line()
        first = next((n for n, line in enumerate(self._lines) if line.text), len(self._lines))
        found = self._lines[first:]
        if all(line.text.startswith(">") for line in found if line.text):  # no quote: its writer indented all of it
            return [Line(line.text.removeprefix(">").removeprefix(" "), "i") for line in found]
        return found


class _TextWalk:
    """Goes over a document; iterative, so that depth costs no stack."""

    def __init__(self, pictures: Mapping[str, str]) -> None:
        self.writer = _TextWriter()
        self._pictures = pictures
        self._verbatim = 0
        self._lists: list[tuple[int, str]] = []
        """Of each open list its next number, 0 where it has none, and how it is written."""

    def over(self, root: LexborNode) -> None:
        stack: list[tuple[LexborNode, _Element | None]] = [(root, None)]
        while stack:
            node, left = stack.pop()
            if left is not None:
                self._left(left)
                continue
            tag = node.tag or ""
            if tag == "-text":
                self.writer.words(node.text_content or "", verbatim=self._verbatim > 0)
                continue
            if tag in _SKIPPED or tag.startswith(("-", "_", "!")):
                continue
            element = _Element(tag, node.attributes)
            if element.hidden:
                continue
            self._entered(element)
            stack.append((node, element))
            stack.extend(reversed(_children(node)))

    def _entered(self, element: _Element) -> None:
        tag, writer = element.tag, self.writer
        if tag == "br":
            writer.end_line(force=True)
        elif tag in _SPACED:
            writer.blank_line()
        elif tag in _BLOCKS:
            writer.end_line()
        if tag == "blockquote" or element.names or element.style:
            self._mark(element)
        if tag in ("ol", "ul"):
            self._lists.append((element.number("start", 1) if tag == "ol" else 0, element.get("type")))
        elif tag == "li":
            writer.words(self._bullet(element), verbatim=True)
        elif tag == "hr":
            writer.next_kind = writer.next_kind or ("" if writer.in_quote or writer.kinds else "r")
            writer.words("________________________________", verbatim=True)
            writer.end_line()
        elif tag == "img":
            writer.words(self._picture(element), verbatim=False)
        if element.struck:
            writer.words("~~", verbatim=False)
        element.place = writer.place
        self._verbatim += tag == "pre"

    def _mark(self, element: _Element) -> None:
        """Apply what the mail program says about the element."""
        writer, names = self.writer, element.names
        if names & _HISTORIES or (element.style and _WORD_RULE.search(element.style)):
            writer.next_kind = "d"
        if element.tag == "blockquote":
            element.quotes = self._is_quote(element)
            element.kind = "i" if element.quotes and self._may_be_indented(element) else ""
            element.quotes = element.quotes and not element.kind
            if element.quotes and writer.kinds:
                writer.end_line()
                writer.kinds[-1] = ""  # what follows the quote in the element around both may be an answer
        elif (names & _QUOTES or element.has("name", _NAMED_QUOTE)) and not writer.in_quote:
            element.kind, writer.next_kind = "q", "b"
        elif names & _INTRODUCTIONS:
            element.kind = "b"
        elif names & _SIGNATURES and not writer.in_quote:
            element.kind = "S"
        if element.quotes:
            element.cited = element.has("type", "cite") or bool(element.names)
            writer.quote(1)
            writer.cited += element.cited
        if element.kind:
            writer.end_line()
            writer.kinds.append(element.kind)

    def _is_quote(self, element: _Element) -> bool:
        """No quote: text that its writer indented, or quoted with Gmail's button, which makes no `div` around it."""
        if element.names == {"gmail_quote"} and not self.writer.kinds:
            return introduces(self.writer.last_words())
        cited = element.has("type", "cite") or element.names
        return bool(cited) or not _INDENTED.search(element.style)

    def _may_be_indented(self, element: _Element) -> bool:
        """A blockquote without any mark of a mail program, which no introduction precedes."""
        writer = self.writer
        if element.plain and not writer.in_quote and not writer.kinds:
            above = writer.last_words()
            return bool(above) and not introduces(above) and not may_introduce(above)
        return False

    def _left(self, element: _Element) -> None:
        tag, writer = element.tag, self.writer
        if tag == "a" and not writer.in_quote:
            writer.words(_target(element.get("href"), writer.since(element.place)), verbatim=False)
        if element.struck:
            writer.words("~~", verbatim=False)
        self._verbatim -= tag == "pre"
        if tag in ("ol", "ul") and self._lists:
            self._lists.pop()
        if element.quotes:
            writer.quote(-1)
            writer.cited -= element.cited
        elif tag in _SPACED:
            writer.blank_line()
        elif tag in _BLOCKS or element.kind:
            writer.end_line()
        elif tag in ("td", "th"):
            writer.words(" ", verbatim=False)
        if element.kind:
            writer.kinds.pop()

    def _bullet(self, item: _Element) -> str:
        indent = "  " * min(max(0, len(self._lists) - 1), MAX_QUOTES)
        following, style = self._lists[-1] if self._lists else (0, "")
        if not following:
            return indent + "- "
        number = item.number("value", following)
        self._lists[-1] = number + 1, style
        return f"{indent}{_numeral(number, style)}. "

    def _picture(self, image: _Element) -> str:
        """The place of a picture: the name of the file that came with the mail, or where it is."""
        source, alt = image.get("src"), _SPACES.sub(" ", image.get("alt")).strip()[:MAX_ALT]
        if self.writer.in_quote or _TINY & {image.get("width"), image.get("height")}:
            return ""
        if source.lower().startswith("cid:"):
            name = self._pictures.get(source[4:].strip("<>"), "")
            return f"[picture: {name or alt}]" if name or alt else "[picture]"
        if source.lower().startswith(("http:", "https:")) and len(source) <= MAX_LINK:
            return f"[picture: {alt} <{source}>]" if alt else f"[picture: {source}]"
        return f"[picture: {alt}]" if alt else "[picture]" if source else ""


class _Element:
    """An open element: what its attributes say, and what was done on entering it."""

    __slots__ = ("_attributes", "cited", "hidden", "kind", "names", "place", "quotes", "struck", "style", "tag")

    def __init__(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        self.tag, self._attributes = tag, attributes
        self.kind, self.quotes, self.cited, self.place = "", False, False, (0, 0)
        self.style, self.names, self.hidden, self.struck = "", _NO_NAMES, False, tag in _STRUCK_TAGS
        if attributes:
            self._read()

    def _read(self) -> None:
        self.style, self.hidden = self.get("style"), "hidden" in self._attributes
        named = [name for key in _NAMING if (name := self._attributes.get(key))]
        if named:
            self.names = {name.removeprefix("x_") for name in " ".join(named).lower().split()}
        if self.style:
            self.hidden = self.hidden or _HIDDEN.search(self.style) is not None
            self.struck = self.struck or _STRUCK.search(self.style) is not None

    @property
    def plain(self) -> bool:
        """Whether an element has no attributes."""
        return not self._attributes

    def get(self, name: str) -> str:
        return self._attributes.get(name) or ""

    def has(self, name: str, value: str) -> bool:
        return self.get(name).lower() == value

    def number(self, name: str, otherwise: int) -> int:
        value = self.get(name)
        return int(value) if value.isascii() and value.isdigit() and len(value) < 7 else otherwise


def _numeral(number: int, style: str) -> str:
    """An item's number, or its letter where the list has these (`type="a"`)."""
    lettered = style in ("a", "A") and number <= len(ascii_lowercase)
    return chr(ord(style) + number - 1) if lettered else str(number)


def _children(node: LexborNode) -> list[tuple[LexborNode, None]]:
    found: list[tuple[LexborNode, None]] = []
    child = node.child
    while child is not None:
        found.append((child, None))
        child = child.next
    return found


_STRUCK_MARKUP = re.compile(r"(?i)<(?:s|strike|del)[\s>]|style=[\"'][^\"'<>]{0,500}line-through")
_LINK_MARKUP = re.compile(r"(?i)<a\s[^<>]{0,500}?href=[\"']?(https?:[^\"'\s<>]{1,2000})")
_NOT_WRITTEN_NOW = re.compile(
    r"(?i)<blockquote|=[\"']?(?:[\w-]{1,30} ){0,3}(?:x_)?"
    rf"(?:{'|'.join(map(re.escape, _HISTORIES | _QUOTES | _SIGNATURES))})\b"
)
MAX_LINKS = 200
MAX_ABOVE = 100_000
"""So much of an HTML part is compared with the plain text beside it."""


def says_more(html: str, plain: str) -> bool:
    """Has it, above all history, words struck out or the target of a link that the plain text beside it lacks?"""
    history = _NOT_WRITTEN_NOW.search(html, 0, MAX_ABOVE)
    end = history.start() if history else MAX_ABOVE
    if _STRUCK_MARKUP.search(html, 0, end):
        return True
    links = islice(_LINK_MARKUP.finditer(html, 0, end), MAX_LINKS)
    shown = "".join(plain.split()).lower()
    return any(_bare(_unwrapped(unescape(link[1]))) not in shown for link in links)


def _target(link: str, shown: str) -> str:
    """Where a link leads, if its words do not say so."""
    link = _unwrapped(link.strip())
    scheme = link.partition(":")[0].lower()
    if not link or len(link) > MAX_LINK or scheme not in ("http", "https", "mailto", "tel", "ftp"):
        return ""
    if _bare(link) in _bare(shown):
        return ""
    return f" <{link.removeprefix('mailto:')}>" if shown else f"<{link}>"


def _unwrapped(link: str) -> str:
    """The target behind a redirect that a mail service put around it."""
    if len(link) > MAX_LINK or not _REDIRECTS.match(link):
        return link
    try:
        query = parse_qs(urlsplit(link).query)
    except ValueError:
        return link
    return next((query[key][0] for key in ("url", "q") if key in query), link)


def _bare(link: str) -> str:
    bare = link.lower().partition("?")[0] if link.lower().startswith("mailto:") else link.lower()
    for prefix in ("mailto:", "tel:", "https://", "http://", "www."):
        bare = bare.removeprefix(prefix)
    return bare.rstrip("/")
