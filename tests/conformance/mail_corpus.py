"""Mails of other people with what their source expects of a parser, field by field."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from webordinary.mail.parsing.attachments import FileType, extract
from webordinary.mail.parsing.headers import with_crlf
from webordinary.mail.parsing.message import parse
from webordinary.mail.parsing.parts import take_apart
from webordinary.mail.ports import ExtractedFile, Unparseable
from webordinary.model.mail import AttachmentKind, ParsedMail

Row = dict[str, Any]
GIVEN_NAMES = frozenset({"mail.eml"})
"""Of files that have none in the mail."""


def raw(row: Row) -> bytes:
    """As `webordinary send` would hand it over; some of the corpus are files with LF line ends."""
    return with_crlf(base64.b64decode(row["eml_b64"]))


def as_it_came(data: bytes, found: FileType) -> bytes:
    """Instead of preparing a picture: many of the corpus are no real ones."""
    return data


def squeezed(text: str) -> str:
    return "".join(text.split())


def is_lost(mail: ParsedMail, expect: Row) -> bool:
    """Is some text of the customer missing or damaged, by the taste of the source?"""
    return squeezed(expect.get("text") or expect.get("text_nows") or "") not in squeezed(mail.text)


FIELDS: dict[str, Callable[[ParsedMail, Any], bool]] = {
    "from": lambda mail, value: mail.sender == value.lower(),
    "from_display_name": lambda mail, value: mail.sender_name == value,
    "subject": lambda mail, value: mail.subject.split() == value.split(),
    "text": lambda mail, value: mail.text.split() == value.split(),
    "text_nows": lambda mail, value: squeezed(mail.text) == squeezed(value),
    "text_contains": lambda mail, value: all(squeezed(part) in squeezed(mail.text) for part in _listed(value)),
    "text_not_contains": lambda mail, value: not any(squeezed(part) in squeezed(mail.text) for part in _listed(value)),
    "auto_reply": lambda mail, value: mail.automatic == value,
    "bounce": lambda mail, value: mail.automatic or not value,
    "in_reply_to": lambda mail, value: {_bare(part) for part in _listed(value)} <= set(map(_bare, mail.in_reply_to)),
    "references": lambda mail, value: {_bare(part) for part in _listed(value)} <= set(map(_bare, mail.references)),
    "empty_body": lambda mail, value: (not mail.text.strip()) == value,
}
"""How a field of `expect` is compared; a source states some of them."""


def judged(row: Row) -> dict[str, bool]:
    """Of each field that the source states and we compare, whether we say the same; `lost` beside the text."""
    expect = row.get("expect", {})
    try:
        mail = parse(raw(row))
    except Unparseable:
        return {"read": False}
    found = {name: compare(mail, expect[name]) for name, compare in FIELDS.items() if name in expect}
    if {"text", "text_nows"} & expect.keys():
        found["not lost"] = not is_lost(mail, expect)
    if "n_images" in expect:
        files = [file for file in extract(raw(row), as_it_came) if isinstance(file, ExtractedFile)]
        found["n_images"] = sum(file.kind is AttachmentKind.IMAGE for file in files) == expect["n_images"]
    return {"read": True} | found | _files_compared(raw(row), expect)


def _files_compared(mail: bytes, expect: Row) -> dict[str, bool]:
    """The names as the mail writes them; we also name files that have none there, such as an attached mail."""
    files = take_apart(mail).files if expect.keys() & {"attachments", "attachments_include", "n_attachments"} else []
    named = [file.name for file in files if file.name and file.name not in GIVEN_NAMES]
    compared = {
        "attachments": named == [name for name in _listed(expect.get("attachments")) if name],
        "attachments_include": set(_listed(expect.get("attachments_include"))) <= {file.name for file in files},
        "n_attachments": len(files) == expect.get("n_attachments"),
    }
    return {name: same for name, same in compared.items() if name in expect}


def _listed(value: Any) -> list[str]:  # noqa: ANN401
    return list(value) if isinstance(value, list) else [value] if value else []


def _bare(message_id: str) -> str:
    return message_id.strip().strip("<>")
