"""Other people's mails: what is theirs to say is found, and nothing makes us fall over."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from webordinary.mail.parsing.attachments import extract
from webordinary.mail.parsing.headers import with_crlf
from webordinary.mail.parsing.message import outline, parse
from webordinary.mail.ports import Unparseable
from webordinary.model.mail import ParsedMail

SHARED = Path(__file__).resolve().parents[3] / "shared"
CORPUS = SHARED / "corpus" / "mail"
EXACT_FLOOR = 0.87
LOST_CEILING = 11
"""Mails of which some text of the customer is missing or damaged, by the taste of their source."""

pytestmark = pytest.mark.may_skip(not SHARED.exists(), reason="this repository does not contain the corpora")

Row = dict[str, Any]


def rows(file: str) -> list[Row]:
    path = CORPUS / file
    if not path.exists():
        pytest.skip("the corpus of mails is not beside this checkout (../shared/corpus/mail)")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def raw(row: Row) -> bytes:
    """As `webordinary send` would hand it over; some of the corpus are files with LF line ends."""
    return with_crlf(base64.b64decode(row["eml_b64"]))


def squeezed(text: str) -> str:
    return "".join(text.split())


def is_exact(mail: ParsedMail, expect: Row) -> bool:
    if "text" in expect:
        return mail.text.split() == expect["text"].split()
    return squeezed(mail.text) == squeezed(expect["text_nows"])


def is_lost(mail: ParsedMail, expect: Row) -> bool:
    return squeezed(expect.get("text") or expect.get("text_nows") or "") not in squeezed(mail.text)


def test_the_reply_is_found_in_most_mails_and_lost_in_few() -> None:
    expected = [row for row in rows("corpus_permissive.jsonl") if {"text", "text_nows"} & row["expect"].keys()]
    mails = [(row, parse(raw(row))) for row in expected]
    inexact = [row["id"] for row, mail in mails if not is_exact(mail, row["expect"])]
    lost = [row["id"] for row, mail in mails if is_lost(mail, row["expect"])]
    assert 1 - len(inexact) / len(mails) >= EXACT_FLOOR, "\n".join(inexact)
    assert len(lost) <= LOST_CEILING, "\n".join(lost)


def test_senders_replies_and_machines_are_told_as_the_corpus_tells_them() -> None:
    wrong = []
    for row in rows("corpus_permissive.jsonl"):
        mail, expect = parse(raw(row)), row["expect"]
        if "from" in expect and mail.sender != expect["from"].lower():
            wrong.append(f"{row['id']}: sender {mail.sender!r}, not {expect['from']!r}")
        if expect.get("auto_reply", mail.automatic) != mail.automatic:
            wrong.append(f"{row['id']}: automatic {mail.automatic}")
        if expect.get("bounce") and not mail.automatic:
            wrong.append(f"{row['id']}: a bounce taken for a person's mail")
    assert wrong == []


@pytest.mark.parametrize("file", ["torture_permissive.jsonl", "corpus_permissive.jsonl"])
def test_every_mail_is_read_or_refused_in_words(file: str) -> None:
    refused = []
    for row in rows(file):
        outline(raw(row))
        try:
            mail = parse(raw(row))
        except Unparseable as problem:
            refused.append(f"{row['id']}: {problem}")
            continue
        assert len(list(extract(raw(row)))) == mail.attachment_count
        json.dumps(mail.text + mail.subject + mail.sender_name).encode()
    assert refused == []


def test_half_a_mail_is_no_more_dangerous_than_a_whole_one() -> None:
    for row in rows("torture_permissive.jsonl"):
        whole = raw(row)
        for share in (3, 5, 8):
            try:
                parse(whole[: len(whole) * share // 10])
            except Unparseable:
                continue
