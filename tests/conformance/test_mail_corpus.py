"""Other people's mails: what is theirs to say is found, and nothing makes us fall over."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.mail_corpus import FIELDS, Row, as_it_came, is_lost, judged, raw

from webordinary.mail.parsing.attachments import extract
from webordinary.mail.parsing.message import outline, parse
from webordinary.mail.ports import Unparseable

SHARED = Path(__file__).resolve().parents[3] / "shared"
CORPUS = SHARED / "corpus" / "mail"
OWN = Path(__file__).resolve().parents[1] / "data" / "mails"
EXACT_FLOOR = 0.94
FILES, FILES_FLOOR = {"attachments", "attachments_include", "n_attachments"}, 0.85
LOST_CEILING = 5
"""Mails of which some text of the customer is missing or damaged, by the taste of their source."""

needs_corpora = pytest.mark.may_skip(not SHARED.exists(), reason="this repository does not contain the corpora")


@pytest.mark.parametrize("file", ["clients.jsonl", "more_clients.jsonl", "kinds.jsonl"])
def test_what_mail_programs_write_is_told_from_what_people_write(file: str) -> None:
    """Mails as programs of many languages write them; written without a look at the rules."""
    found = [(row["id"], judged(row)) for row in map(json.loads, (OWN / file).read_text("utf-8").splitlines())]
    failed = [f"{name}: {[field for field, same in fields.items() if not same]}" for name, fields in found]
    failed = [line for line, (_, fields) in zip(failed, found, strict=True) if not all(fields.values())]
    assert len(failed) <= len(found) * 0.04, "\n".join(failed)
    assert [name for name, fields in found if not fields.get("not lost", True)] == []


def rows(file: str) -> list[Row]:
    path = CORPUS / file
    if not path.exists():
        pytest.skip("the corpus of mails is not beside this checkout (../shared/corpus/mail)")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@needs_corpora
def test_the_reply_is_found_in_most_mails_and_lost_in_few() -> None:
    expected = [row for row in rows("corpus_permissive.jsonl") if {"text", "text_nows"} & row["expect"].keys()]
    mails = [(row, parse(raw(row))) for row in expected]
    texts = [(row, mail, name) for row, mail in mails for name in ("text", "text_nows") if name in row["expect"]]
    inexact = [row["id"] for row, mail, name in texts if not FIELDS[name](mail, row["expect"][name])]
    lost = [row["id"] for row, mail in mails if is_lost(mail, row["expect"])]
    assert 1 - len(inexact) / len(mails) >= EXACT_FLOOR, "\n".join(inexact)
    assert len(lost) <= LOST_CEILING, "\n".join(lost)


@needs_corpora
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


@needs_corpora
def test_the_files_of_a_mail_are_those_that_the_corpus_names() -> None:
    stated = [(row["id"], judged(row)) for row in rows("corpus_permissive.jsonl") if FILES & row["expect"].keys()]
    wrong = [name for name, fields in stated if not all(fields.get(field, True) for field in FILES)]
    assert len(wrong) <= (1 - FILES_FLOOR) * len(stated), "\n".join(wrong)


@needs_corpora
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
        assert len(list(extract(raw(row), as_it_came))) == mail.attachment_count
        json.dumps(mail.text + mail.subject + mail.sender_name).encode()
    assert refused == []


@needs_corpora
def test_half_a_mail_is_no_more_dangerous_than_a_whole_one() -> None:
    for row in rows("torture_permissive.jsonl"):
        whole = raw(row)
        for share in (3, 5, 8):
            try:
                parse(whole[: len(whole) * share // 10])
            except Unparseable:
                continue


@needs_corpora
@pytest.mark.parametrize("kind", ["mail", "asl"])
def test_the_corpora_of_others_run_with_one_command(kind: str, tmp_path: Path) -> None:
    source = SHARED / "corpus" / kind / {"mail": "corpus_permissive.jsonl", "asl": "corpus.jsonl"}[kind]
    if not source.exists():
        pytest.skip("the corpora are not beside this checkout")
    lines = source.read_text(encoding="utf-8").splitlines()[:20]
    (tmp_path / "some.jsonl").write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "tests.conformance.run", kind, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    passed, failed = (int(word) for word in ran.stdout.splitlines()[-1].split() if word.isdigit())
    assert passed + failed == 20
    assert ran.returncode == (failed > 0), ran.stderr
