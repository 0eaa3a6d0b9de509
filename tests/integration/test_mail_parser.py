"""Mails are parsed in child processes with limits: what a mail does to one of them, no other mail notices."""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.embedded import SCOTT, EmbeddedHarness, open_harness
from tests.hostile_mails import HOSTILE, mail, of_parts, one_photo, plain_text, quotes_and_answers, twenty_photos
from tests.photos import HEIC, PROFILE, exif, grained, opened, picture
from tests.processes import children_of, wait_gone
from webordinary.adapters.files import parser as parser_module
from webordinary.adapters.files.parser import ParserLimits, ProcessParser
from webordinary.mail.intake import accept
from webordinary.mail.parsing.attachments import JPEG
from webordinary.mail.parsing.message import parse
from webordinary.mail.parsing.photos import prepared
from webordinary.mail.ports import ExtractedFile, ParserBusy, Unparseable
from webordinary.model.errors import Transient
from webordinary.model.mail import Command, Delivery, RefusedAttachment, TransportKind
from webordinary.workflow.start import start

STATUS = mail(b"status")
MAX_SECONDS, MAX_MEGABYTES = 2.0, 200.0
REFUSED = {"semicolons", "parameters", "uuencoded_file"}
"""Of the hostile mails these are told to come again in a simpler form; all others are read."""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def parser() -> Iterator[ProcessParser]:
    parser = ProcessParser()
    yield parser
    parser.close()


@contextmanager
def limited(limits: ParserLimits) -> Iterator[ProcessParser]:
    parser = ProcessParser(limits)
    yield parser
    parser.close()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("hostile")
    for step in ("write", "measure"):
        ran = subprocess.run(
            [sys.executable, "-m", "tests.integration.measure_parser", step, folder],
            cwd=ROOT,
            capture_output=True,
            timeout=300,
            check=True,
        )
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


@pytest.mark.timeout(330)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_mail_is_read_within_two_processor_seconds_or_refused_in_words(
    measured: dict[str, Any], name: str
) -> None:
    cost = measured["mails"][name]
    starts = 2 if cost["said"] else 1  # a process that was ended is replaced
    assert cost["seconds"] - starts * measured["start"] <= MAX_SECONDS
    assert bool(cost["said"]) == (name in REFUSED), cost["said"]
    assert not cost["said"] or "send it again" in cost["said"]


@pytest.mark.timeout(330)
def test_no_mail_takes_more_than_200_megabytes(measured: dict[str, Any]) -> None:
    assert measured["megabytes"] <= MAX_MEGABYTES


@pytest.mark.parametrize("raw", [STATUS, quotes_and_answers(SCOTT), HOSTILE["attached_mail"](SCOTT)])
def test_a_child_reads_a_mail_as_this_process_does(parser: ProcessParser, raw: bytes) -> None:
    assert parser.parse(raw) == parse(raw)


def test_files_come_out_of_the_child_byte_for_byte(parser: ProcessParser) -> None:
    (attached,) = parser.files(HOSTILE["attached_mail"](SCOTT))
    assert isinstance(attached, ExtractedFile)
    assert (attached.name, attached.data) == ("mail.txt", b"Subject: a\x0cb: c\n\nhello")


def test_photos_come_out_of_the_child_prepared_for_the_site(parser: ProcessParser) -> None:
    photos = list(parser.files(twenty_photos(SCOTT)))
    assert len(photos) == 20
    assert {file.data for file in photos if isinstance(file, ExtractedFile)} == {prepared(picture("JPEG"), JPEG)}


def test_a_photo_comes_with_a_smaller_webp_copy_without_metadata(parser: ProcessParser) -> None:
    sent = io.BytesIO()
    grained().save(sent, "JPEG", quality=95, exif=exif(), icc_profile=PROFILE)
    (photo,) = parser.files(with_photos(sent.getvalue()))
    assert isinstance(photo, ExtractedFile)
    copy = opened(photo.webp)
    assert (copy.format, copy.size, opened(photo.data).format) == ("WEBP", opened(photo.data).size, "JPEG")
    assert len(photo.webp) < 0.8 * len(photo.data)
    assert copy.info["icc_profile"] == PROFILE
    assert not copy.getexif()
    assert "xmp" not in copy.info


def with_photos(*photos: bytes) -> bytes:
    head = b"Content-Disposition: attachment\r\nContent-Transfer-Encoding: base64"
    return of_parts([(head, base64.encodebytes(photo)) for photo in photos], SCOTT)


def large_photo(megapixels: int, **options: Any) -> bytes:  # noqa: ANN401
    return picture("JPEG", (1000 * megapixels // 6, 6000), **options)


def test_a_photo_of_48_megapixels_from_a_phone_is_taken(parser: ProcessParser) -> None:
    (photo,) = parser.files(with_photos(large_photo(48, exif=exif())))
    assert isinstance(photo, ExtractedFile)
    assert opened(photo.data).size == (1500, 2000)


def test_a_heic_photo_comes_out_of_the_child_as_jpeg(parser: ProcessParser) -> None:
    (photo,) = parser.files(with_photos(HEIC.read_bytes()))
    assert isinstance(photo, ExtractedFile)
    assert (photo.name, photo.media_type, opened(photo.data).format) == ("file.jpg", "image/jpeg", "JPEG")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (ParserLimits(photo_cpu_seconds=0.05), "takes longer than a picture may take"),
        (ParserLimits(photo_memory_bytes=20 * 1024 * 1024), "smaller"),
    ],
)
def test_a_photo_beyond_its_limits_is_refused_in_words_and_the_other_files_still_come(
    limits: ParserLimits, words: str
) -> None:
    with limited(limits) as parser:
        first, large, last = parser.files(with_photos(b"text", picture("PNG", (5000, 5000)), b"text"))
    assert isinstance(large, RefusedAttachment)
    assert words in large.reason
    assert [isinstance(file, ExtractedFile) for file in (first, last)] == [True, True]


def test_a_photo_that_brings_its_decoder_down_costs_no_other_file(parser: ProcessParser) -> None:
    fatal = HEIC.read_bytes().replace(b"Exif", b"Ex\x80f", 1)  # pi-heif 1.4 ends with SIGSEGV
    first, _, last = parser.files(with_photos(b"text", fatal, HEIC.read_bytes()))
    assert [isinstance(file, ExtractedFile) for file in (first, last)] == [True, True]


def test_a_process_that_reads_no_photo_does_not_load_the_decoders(parser: ProcessParser) -> None:
    child = child_of(parser)
    assert "PIL" not in Path(f"/proc/{child}/maps").read_text()


def test_a_mail_that_takes_too_much_processor_time_is_refused_and_the_next_one_is_read() -> None:
    with limited(ParserLimits(cpu_seconds=0.02)) as parser:
        with pytest.raises(Unparseable, match="takes longer than"):
            parser.parse(plain_text(SCOTT))
        assert parser.parse(STATUS).command is Command.STATUS


def test_a_mail_that_takes_too_much_memory_is_refused_and_the_next_one_is_read() -> None:
    with limited(ParserLimits(memory_bytes=50 * 1024 * 1024)) as parser:
        photo = one_photo(SCOTT)
        assert parser.parse(photo).attachment_count == 1
        with pytest.raises(Unparseable, match="more memory"):
            list(parser.files(photo))
        assert parser.parse(photo).attachment_count == 1


def child_of(parser: ProcessParser) -> int:
    before = set(children_of(os.getpid()))
    parser.warm()
    assert parser.parse(STATUS).command is Command.STATUS
    (child,) = set(children_of(os.getpid())) - before
    return child


def test_a_child_that_died_is_replaced(parser: ProcessParser) -> None:
    child = child_of(parser)
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert parser.parse(STATUS).command is Command.STATUS


def test_a_child_that_does_not_answer_is_ended_and_the_mail_is_tried_again() -> None:
    with limited(ParserLimits(wall_seconds=10.0)) as parser:
        os.kill(child_of(parser), signal.SIGSTOP)
        with pytest.raises(Transient, match="read again"):
            parser.parse(STATUS)
        assert parser.parse(STATUS).command is Command.STATUS


def test_large_mails_keep_neither_small_ones_nor_the_workflow_waiting() -> None:
    with limited(ParserLimits(large_processes=1)) as parser:
        photos = twenty_photos(SCOTT)
        files = parser.files(photos)
        next(files)
        with pytest.raises(ParserBusy):
            parser.parse(photos)
        assert parser.parse(STATUS).command is Command.STATUS
        files.close()  # type: ignore[attr-defined]
        assert parser.parse(photos).attachment_count == 20


def test_a_child_knows_no_variable_of_ours(parser: ProcessParser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-secret")
    assert b"sk-secret" not in Path(f"/proc/{child_of(parser)}/environ").read_bytes()


TAKEN_OVER = """
import sys
from webordinary.adapters.files.parser_child import read_frame, write_frame
from webordinary.mail.parsing.message import parse
from webordinary.adapters.records import mail_to_json

while frame := read_frame(sys.stdin.buffer):
    lie = frame[1].replace(b"eve@example.com", b"scott@example.com").replace(b"<hostile@", b"<other@")
    write_frame(sys.stdout.buffer, {"mail": mail_to_json(parse(lie))})
"""


def test_a_mail_that_took_over_its_parser_speaks_for_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken_over.py").write_text(TAKEN_OVER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(parser_module, "_CHILD", "taken_over")
    with limited(ParserLimits()) as parser:
        read = parser.parse(mail(b"publish", sender="eve@example.com"))
    assert (read.sender, read.message_id, read.command) == ("eve@example.com", "<hostile@example.com>", Command.PUBLISH)


def test_a_child_ends_with_its_parent() -> None:
    program = (
        "import os, sys; from webordinary.adapters.files.parser import ProcessParser; parser = ProcessParser(); "
        "parser.warm(); print(parser.parse(b'Subject: x\\r\\n\\r\\nhi').text, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"hi\n"
        (child,) = children_of(parent.pid)
        parent.kill()
    wait_gone(child)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data") as harness:
        yield harness


def received(harness: EmbeddedHarness, raw: bytes, mail_from: str) -> str:
    services = harness.services
    now = services.clock.now()
    delivery = Delivery(TransportKind.SMTP, "127.0.0.1", mail_from, ("edit@localhost",), now)
    [accepted] = accept(raw, delivery, mails=services.raw_mails, events=services.events)
    start(accepted.email_id, harness.engine, services.raw_mails)
    harness.engine.run_ready()
    return accepted.email_id


def kinds(harness: EmbeddedHarness, email_id: str) -> set[str]:
    harness.services.events.close()  # writes what it holds
    return {logged.event.kind for logged in harness.services.event_log.after(0, 100, email_id)}


@pytest.mark.parametrize("build", [HOSTILE["semicolons"], HOSTILE["quotes_and_answers"], HOSTILE["attached_mail"]])
def test_a_strangers_mail_is_never_parsed_and_leaves_no_dead_letter(harness: EmbeddedHarness, build: Any) -> None:  # noqa: ANN401
    email_id = received(harness, build("eve@example.com"), "eve@example.com")
    assert "MailRefused" in kinds(harness, email_id)
    assert not {"MailParsed", "DeadLettered"} & kinds(harness, email_id)
    assert (harness.services.dead_letters.all(10), harness.replies(email_id)) == ([], [])
    assert harness.services.mail_deps.parsed_mails.load(email_id) is None


def test_a_customer_is_told_why_their_mail_is_not_read(harness: EmbeddedHarness) -> None:
    email_id = received(harness, HOSTILE["semicolons"](SCOTT), SCOTT)
    [reply] = harness.replies(email_id)
    assert b"8000 parameters in the header field of a part" in reply.reply.raw.replace(b"=\r\n", b"").replace(
        b"\r\n", b" "
    )
