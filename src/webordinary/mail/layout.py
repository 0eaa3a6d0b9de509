"""An Answer laid out as plain text and as HTML."""

from __future__ import annotations

from html import escape
from textwrap import fill, indent

from webordinary.mail.answers import Answer, Block, Excerpt, Link, Listing, Paragraph

_WIDTH = 76
_BODY = "margin:0;background:#f6f2ec;font:16px/1.5 system-ui,Helvetica,Arial,sans-serif;color:#2b2723"
_CARD = "max-width:560px;margin:0 auto;padding:28px 24px;background:#fff"
_HEADLINE = "margin:0 0 16px;font-size:22px;line-height:1.25"
_P = "margin:0 0 14px"
_SMALL = "margin:0 0 6px;font-size:13px;color:#6b6258"
_LIST = "margin:0 0 14px;padding-left:20px"
_QUOTED = "margin:0 0 14px;padding:8px 14px;border-left:3px solid #d9c7b3;background:#faf7f3"
_BUTTON = "display:inline-block;padding:9px 16px;background:#9a4a2f;color:#fff;text-decoration:none"
_SIGNED = "margin:24px 0 0;padding-top:14px;border-top:1px solid #e6dfd5;font-size:13px;color:#8a8177"


def as_text(answer: Answer) -> str:
    """For readers of plain text."""
    parts = [answer.headline, *(_text(block) for block in answer.blocks), f"-- \nWebOrdinary · {answer.closing}"]
    return "\n\n".join(part for part in parts if part)


def _text(block: Block) -> str:
    match block:
        case Paragraph(text):
            return "\n".join(
                fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False) for line in text.splitlines()
            )
        case Link(label, url):
            return f"{label}:\n{url}"
        case Listing(title, items):
            return "\n".join([f"{title}:", *(f"  - {item}" for item in items)])
        case Excerpt(title, text):
            return f"{title}:\n{indent(text, '> ', lambda _: True)}"


def as_html(answer: Answer) -> str:
    """For everybody else: no pictures, no scripts, nothing loaded from anywhere."""
    blocks = "\n".join(_html(block) for block in answer.blocks)
    return f"""<!doctype html>
<html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"></head>
<body style="{_BODY}">
<div style="{_CARD}">
<h1 style="{_HEADLINE}">{escape(answer.headline)}</h1>
{blocks}
<p style="{_SIGNED}">WebOrdinary · {escape(answer.closing)}</p>
</div></body></html>
"""


def _html(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f'<p style="{_P}">{_lines(text)}</p>'
        case Link(label, url):
            shown = f'<a href="{escape(url)}" style="{_BUTTON}">{escape(label)}</a>'
            return f'<p style="{_P}">{shown}</p>' if url.startswith(("http://", "https://")) else ""
        case Listing(title, items):
            rows = "".join(f"<li>{escape(item)}</li>" for item in items)
            return f'{_title(title)}<ul style="{_LIST}">{rows}</ul>'
        case Excerpt(title, text):
            return f'{_title(title)}<blockquote style="{_QUOTED}">{_lines(text)}</blockquote>'


def _title(title: str) -> str:
    return f'<p style="{_SMALL}">{escape(title)}</p>\n'


def _lines(text: str) -> str:
    return escape(text.strip()).replace("\n", "<br>\n")
