"""How a reply looks: as HTML for mail programs that show pictures and colours, and as plain text.

Mail programs differ: Outlook reads tables and `bgcolor` only, Gmail drops a style sheet that it does not like, Apple
Mail and Outlook on phones follow the dark mode of the device. So the layout is of tables with inline styles, and the
style sheet has only what may be missing: dark mode, and one column on narrow screens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import fill, indent
from urllib.parse import quote

from webordinary.mail.replies.answers import Answer, Block, Excerpt, Link, Listing, Paragraph
from webordinary.mail.replies.languages import Catalogue

_WIDTH = 76
SENDER_NAME = "WebOrdinary"


@dataclass(frozen=True, slots=True)
class Brand:
    """What an operator may set: the name in front, a colour, a logo and a last line."""

    name: str = SENDER_NAME
    colour: str = "#9a4a2f"
    logo: bytes = b""
    """A PNG or JPEG; it travels with each reply."""
    footer: str = ""
    shows_cost: bool = False
    catalogues: Sequence[Catalogue] = field(default=())


@dataclass(frozen=True, slots=True)
class Button:
    """A command that a click writes as a mail into the conversation."""

    label: str
    url: str


def mail_link(address: str, subject: str, body: str) -> str:
    """A mailto link that Gmail, Outlook and Apple Mail read alike: all but letters and digits is percent-encoded."""
    local, _, domain = address.rpartition("@")
    return f"mailto:{quote(local, safe='')}@{domain}?subject={quote(subject, safe='')}&body={quote(body, safe='')}"


def as_text(
    answer: Answer,
    brand: Brand = Brand(),  # noqa: B008  frozen
    buttons: Sequence[Button] = (),
    language: str = "en",
) -> str:
    """For readers of plain text; they answer with a word instead of a button."""
    del buttons  # the text says which words to reply
    colon = "\u00a0:" if language == "fr" else ":"
    last = "\n".join(part for part in (f"-- \n{brand.name} · {answer.closing}", brand.footer) if part)
    return "\n\n".join(
        part for part in (answer.headline, *(_text(block, colon) for block in answer.blocks), last) if part
    )


def _text(block: Block, colon: str) -> str:
    match block:
        case Paragraph(text):
            return "\n".join(_wrapped(line) for line in text.splitlines())
        case Link(label, url):
            return f"{label}{colon}\n{url}"
        case Listing(title, items):
            return "\n".join([f"{title}{colon}", *(_wrapped(item, "  - ") for item in items)])
        case Excerpt(title, text):
            return f"{title}{colon}\n{indent(text, '> ', lambda _: True)}"


def _wrapped(line: str, lead: str = "") -> str:
    further = " " * len(lead)
    return fill(
        line, _WIDTH, initial_indent=lead, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )


_FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
_HEADLINE = f"margin:0 0 18px;{_FONT};font-size:24px;line-height:1.25;font-weight:650;color:#2b2723"
_P = f"margin:0 0 16px;{_FONT};font-size:16px;line-height:1.55;color:#2b2723"
_SMALL = f"margin:0 0 6px;{_FONT};font-size:13px;line-height:1.5;color:#6b6258"
_LIST = f"margin:0 0 16px;padding-left:22px;{_FONT};font-size:16px;line-height:1.55;color:#2b2723"
_QUOTED = (
    f"margin:0 0 16px;padding:10px 14px;border-left:3px solid #d9c7b3;background:#faf7f3;{_FONT};font-size:14px;"
    "line-height:1.5;color:#4d453d"
)
_DARK = """
@media (max-width: 540px) {
  .pad { padding: 24px 20px !important; }
  .half { display: block !important; width: 100% !important; padding: 0 0 14px !important; }
}
@media (prefers-color-scheme: dark) {
  .page { background: #171412 !important; }
  .card { background: #211d1a !important; }
  .ink { color: #efe8e0 !important; }
  .soft { color: #b3a89c !important; }
  .quoted { background: #2a2521 !important; border-color: #5b4c3f !important; color: #d8cec3 !important; }
  .plain { border-color: #6d5f53 !important; }
  .plain a { color: #efe8e0 !important; }
  .line { border-color: #3a332d !important; }
  .shot { border-color: #3a332d !important; }
}
"""


def as_html(
    answer: Answer, brand: Brand = Brand(), buttons: Sequence[Button] = (), pictures: Sequence[tuple[str, str]] = (),  # noqa: B008
    logo: str = "", language: str = "en",
) -> str:  # fmt: skip
    """For mail programs: no scripts, nothing loaded from anywhere. Pictures are pairs of a label and a Content-ID."""
    first, *rest = answer.blocks or (Paragraph(""),)
    links = [Button(block.label, block.url) for block in answer.blocks if isinstance(block, Link) and block.is_web]
    row = "".join(_button(button, brand, filled=n == 0) for n, button in enumerate((*links, *buttons)))
    row = f'<div style="margin:2px 0 14px">{row}</div>' if row else ""
    shown = "\n".join([_html(first), _pictures(pictures), row, *map(_html, rest)])
    mark = f'<img src="cid:{logo}" alt="{escape(brand.name)}" height="36" style="height:36px;border:0;margin:0 0 20px">'
    last = f"<br>\n{_lines(brand.footer)}" if brand.footer else ""
    return f"""<!doctype html>
<html lang="{language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark">
<style>:root {{ color-scheme: light dark; }}{_DARK}</style></head>
<body class="page" style="margin:0;padding:0;background:#f3eee7">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" class="page" style="background:#f3eee7">
<tr><td align="center" style="padding:20px 8px">
<table role="presentation" width="600" cellpadding="0" cellspacing="0" class="card" bgcolor="#ffffff" \
style="width:100%;max-width:600px;background:#ffffff;border-top:4px solid {brand.colour};border-radius:6px">
<tr><td class="pad" align="left" style="padding:32px 36px">
{mark if logo else ""}<h1 class="ink" style="{_HEADLINE}">{escape(answer.headline)}</h1>
{shown}
<p class="soft line" style="margin:22px 0 0;padding-top:16px;border-top:1px solid #e6dfd5;{_FONT};font-size:13px;\
line-height:1.5;color:#7a7065">{escape(brand.name)} · {escape(answer.closing)}{last}</p>
</td></tr></table>
</td></tr></table>
</body></html>
"""


def _html(block: Block) -> str:
    match block:
        case Paragraph(text):
            return _paragraph(text)
        case Link():
            return ""  # one of the buttons
        case Listing(title, items):
            rows = "".join(f'<li style="margin:0 0 4px">{escape(item)}</li>' for item in items)
            return f'{_title(title)}<ul class="ink" style="{_LIST}">{rows}</ul>'
        case Excerpt(title, text):
            return f'{_title(title)}<blockquote class="quoted" style="{_QUOTED}">{_lines(text)}</blockquote>'


_ITEM = re.compile(r"- |\d{1,2}\. ")


def _paragraph(text: str) -> str:
    """Running text; lines that begin with a dash or a number are a list."""
    parts: list[str] = []
    plain: list[str] = []
    items: list[str] = []

    def flush() -> None:
        if plain:
            parts.append(f'<p class="ink" style="{_P}">{_lines(chr(10).join(plain))}</p>')
        if items:
            numbered = items[0][0].isdigit()
            rows = "".join(f"<li>{escape(_ITEM.sub('', item, count=1))}</li>" for item in items)
            kind = "ol" if numbered else "ul"
            parts.append(f'<{kind} class="ink" style="{_LIST}">{rows}</{kind}>')
        plain.clear()
        items.clear()

    for line in text.strip().splitlines():
        is_item = _ITEM.match(line) is not None
        if (is_item and plain) or (not is_item and items):
            flush()
        (items if is_item else plain).append(line)
    flush()
    return "\n".join(parts)


def _button(button: Button, brand: Brand, *, filled: bool) -> str:
    """A link in a cell of its own: Outlook paints the cell, the others the link."""
    colour, ink = (brand.colour, "#ffffff") if filled else ("transparent", "#4d453d")
    border = brand.colour if filled else "#cbbfb1"
    kind = "" if filled else ' class="plain"'
    fill_of = f' bgcolor="{brand.colour}"' if filled else ""
    return (
        f'<table role="presentation" cellpadding="0" cellspacing="0" style="display:inline-block;margin:0 10px 8px 0;'
        f'vertical-align:top"><tr><td{kind}{fill_of} style="padding:10px 20px;border:1px solid {border};'
        f'border-radius:6px;background:{colour}"><a href="{escape(button.url)}" style="{_FONT};font-size:15px;'
        f'font-weight:600;color:{ink};text-decoration:none">{escape(button.label)}</a></td></tr></table>'
    )


def _pictures(pictures: Sequence[tuple[str, str]]) -> str:
    """Before and after beside each other, one below the other on narrow screens."""
    if not pictures:
        return ""
    share = 100 // len(pictures)
    cells = "".join(
        f'<td class="half" width="{share}%" valign="top" style="padding:0 {8 if n < len(pictures) - 1 else 0}px 0 0">'
        f'<p class="soft" style="{_SMALL}">{escape(label)}</p><img class="shot" src="cid:{cid}" alt="{escape(label)}" '
        f'width="{520 // len(pictures)}" style="display:block;width:100%;height:auto;border:1px solid #e0d8cd;'
        'border-radius:4px"></td>'
        for n, (label, cid) in enumerate(pictures)
    )
    table = '<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="margin:4px 0 20px">'
    return f"{table}<tr>{cells}</tr></table>"


def _title(title: str) -> str:
    return f'<p class="soft" style="{_SMALL}">{escape(title)}</p>\n'


def _lines(text: str) -> str:
    return escape(text.strip()).replace("\n", "<br>\n")


def translated(answer: Answer, say: Callable[[str], str]) -> Answer:
    """The answer in another language; what the customer wrote stays as it is."""
    return Answer(
        say(answer.headline), tuple(_translated(block, say) for block in answer.blocks), answer.pictures,
        say(answer.closing), answer.actions,
    )  # fmt: skip


def _translated(block: Block, say: Callable[[str], str]) -> Block:
    match block:
        case Paragraph(text):
            return Paragraph(say(text))
        case Link(label, url):
            return Link(say(label), url)
        case Listing(title, items):
            return Listing(say(title), tuple(map(say, items)))
        case Excerpt(title, text):
            return Excerpt(say(title), text)
