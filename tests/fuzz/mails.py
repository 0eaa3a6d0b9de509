"""Fuzz targets that read mails: the parser, and the reader of the header block that SES writes."""

from __future__ import annotations

import base64
import io
import time
import zipfile
import zlib
from dataclasses import replace
from email.parser import BytesHeaderParser

from tests.fuzz.mutator import Mutator
from tests.hostile_mails import mail, of_parts
from tests.unit.mail.letters import JPEG, NOON, PNG, multipart, raw_mail
from webordinary.adapters.aws.mail.emulated import Reception, as_received
from webordinary.adapters.files.parser import ParserLimits
from webordinary.adapters.records import mail_from_json, mail_to_json
from webordinary.mail.addresses import Mailbox, is_address
from webordinary.mail.auth import Admitted, SesVerdicts, authenticate, envelopes_of
from webordinary.mail.parsing.attachments import MAX_ATTACHMENTS, extract
from webordinary.mail.parsing.message import MAX_TEXT, outline, parse
from webordinary.mail.parsing.photos import prepared
from webordinary.mail.ports import ExtractedFile, Unparseable
from webordinary.model.mail import ParsedMail
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Sender
from webordinary.model.text import clean

CPU_SECONDS = ParserLimits().cpu_seconds
_HEADER_WORDS = (
    b"\r\nFrom: eve@evil.example", b"\rFrom: eve@evil.example", b"\nFrom: eve@evil.example\n", b"\r\n\r\n", b"\r\r",
    b"\n\n", b"=?utf-8?q?=3C?=", b"=?utf-16?b?//4=?=", b"<", b">",
    b'"', b"\\", b"(", b")", b";", b",", b":", b"@", b"\0", b"\x7f", b"\xe2\x84\xaa", b"\xe2\x80\xae", b"\xff",
    b"\xc3\x9f", b"\r\nSender: a@b.c", b"\r\nResent-From: a@b.c", b"\r\nReferences: <a@b> <c@d>", b"\r\n\t",
    b"\r\nDate: 31 Feb 99999 25:61", b"\r\nMessage-ID: <x@y>", b"\r\nAuto-Submitted: no",
)  # fmt: skip
_BODY_WORDS = (
    b"--b0\r\n", b"--b0--\r\n", b'\r\nContent-Type: multipart/mixed; boundary="b0"',
    b"\r\nContent-Type: message/rfc822",
    b"\r\nContent-Transfer-Encoding: base64", b"\r\nContent-Transfer-Encoding: quoted-printable",
    b"\r\nContent-Transfer-Encoding: x-uuencode", b"\r\nContent-Type: text/html; charset=utf-7",
    b"\r\nContent-Type: text/plain; format=flowed; charset=utf-16", b"; filename*0*=utf-8''%ff", b"; filename=../../x",
    b"\r\nContent-Disposition: attachment", b"=\r\n", b"=4", b"begin 644 a\r\n", b"> ", b">>>>", b"-- \r\n",
    b"On 1 May 2026, Scott <scott@example.com> wrote:\r\n", b"Von: ", b"<blockquote>", b"<!--", b"<style>",
    b"&#x110000;",
    b"&#0;", b"<pre>", b"<table><tr><td>", b"PK\x03\x04", b"PK\x05\x06", b"%PDF-1.7 ", b"/ObjStm", b"stream\r\n",
    b"/#4aavaScript", b"publish", b"undo", b"stop", b"\r\n" * 50,
)  # fmt: skip


def _encoded(data: bytes) -> bytes:
    return base64.encodebytes(data).replace(b"\n", b"\r\n")


def _docx() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("[Content_Types].xml", "word/document.xml", "word/vbaData.xml"):
            archive.writestr(zipfile.ZipInfo(name), b"<x/>")
    return packed.getvalue()


def _pdf() -> bytes:
    objects = zlib.compress(b"1 0 2 9 << /S /Named >>")
    return b"%PDF-1.7\n1 0 obj << /Type /ObjStm /Filter /FlateDecode >>\nstream\n" + objects + b"\nendstream\n"


_BASE64 = "Content-Transfer-Encoding: base64"
MAILS = (
    raw_mail("Please change the title to Spring Sale.\r\n\r\n-- \r\nScott\r\n"),
    raw_mail("thanks!\r\n\r\nOn 1 May 2026, Edit <edit@localhost> wrote:\r\n> done\r\n>> old\r\n", in_reply_to="<0@b>"),
    raw_mail("=C3=A4 s=\r\noft", content_transfer_encoding="quoted-printable", content_type="text/plain;charset=x"),
    raw_mail("flowed \r\ntext \r\n> quoted \r\n> on\r\n", content_type="text/plain; format=flowed; delsp=yes"),
    mail(b"<html><body><p>Hi<br>there<blockquote>old</blockquote><style>x</style></body></html>", "text/html"),
    mail("größe ändern".encode("latin-1"), "text/plain; charset=iso-8859-1"),
    multipart(("Content-Type: text/plain", b"add it"), (f"Content-Type: image/png\r\n{_BASE64}", _encoded(PNG))),
    multipart(("", b"two"), (f'Content-Type: image/jpeg; name="a b.jpg"\r\n{_BASE64}', _encoded(JPEG))),
    multipart(("Content-Type: text/plain", b"plain"), ("Content-Type: text/html", b"<b>x</b>"), subtype="alternative"),
    multipart((f"Content-Disposition: attachment; filename*=utf-8''%C3%A4.docx\r\n{_BASE64}", _encoded(_docx()))),
    multipart((f"Content-Disposition: attachment; filename=a.pdf\r\n{_BASE64}", _encoded(_pdf()))),
    multipart(("Content-Type: message/rfc822", raw_mail("inner", subject="Inner")), subtype="digest"),
    of_parts([(b"Content-Transfer-Encoding: x-uuencode", b"begin 644 a\r\n#0V%T\r\n`\r\nend\r\n")], "a@b.example"),
    raw_mail("on leave", auto_submitted="auto-replied", precedence="bulk"),
)  # fmt: skip


class MailParserTarget:
    """`parse` and `extract` raise Unparseable and nothing else, within the processor time that a mail may take."""

    name = "mail"
    mutator = Mutator(MAILS, (*_HEADER_WORDS, *_BODY_WORDS))

    def check(self, data: bytes) -> None:
        """Raise where a promise is broken."""
        began = time.process_time()
        header = outline(data)
        self._check_author(data, header)
        try:
            found = parse(data)
            files = list(extract(data, prepared))
        except Unparseable:
            return
        seconds = time.process_time() - began
        assert seconds <= 2 * CPU_SECONDS, f"reading {len(data)} bytes took {seconds:.1f} seconds"
        assert replace(found, **_BODY_OF_OUTLINE, command=header.command) == header, "outline and parse disagree"  # type: ignore[arg-type]
        assert parse(data) == found, "the same bytes, another mail"
        assert mail_from_json(mail_to_json(found)) == found, "a mail that does not survive its store"
        assert clean(found.text) == found.text, "control characters, or text that is no Unicode"
        assert len(found.text) <= MAX_TEXT
        assert found.attachment_count == len(files) <= MAX_ATTACHMENTS
        self._check_names([file.name for file in files if isinstance(file, ExtractedFile)])

    def _check_author(self, data: bytes, header: ParsedMail) -> None:
        """Another reader of the same bytes, the standard library, finds the same single author."""
        if not header.sender:
            return
        assert is_address(header.sender)
        read = BytesHeaderParser().parsebytes(data).raw_items()
        authors = [str(value).encode("ascii", "surrogateescape") for name, value in read if name.lower() == "from"]
        assert len(authors) == 1, f"{header.sender!r} is not the one author of {authors!r}"
        said = authors[0].decode("utf-8", "replace").lower()
        assert header.sender in said, f"{said!r} became {header.sender!r}"

    def _check_names(self, names: list[str]) -> None:
        assert len(set(names)) == len(names), f"two files of one name: {names}"
        for name in names:
            assert name.isascii() and "/" not in name and not name.startswith((".", "-")), f"file name {name!r}"  # noqa: PT018


_BODY_OF_OUTLINE = {"text": "", "elided": "", "attachment_count": 0, "refused_attachments": ()}


_SES_ID = "795hue2ttd6ie60k15ji41vbso3q721dlq9g6f81"
_EVE = "eve@example.com"
_SEEN = Reception(_EVE, "edit@example.org", _SES_ID)
_SIGNED = raw_mail("publish", **{"from": f"Eve <{_EVE}>"})
_SENDERS_WORDS = (
    b"From: scott@example.com\r\n", b"From: scott@example.com\r", b"From: scott@example.com\n", b"\r\n\r\n", b"\r\r",
    b"X-A: a\r\n", b"X-A: a\rFrom: scott@example.com\r\r", b" From: scott@example.com", b"\r\nfrom : scott@example.com",
    b"Authentication-Results: amazonses.com; spf=pass; dmarc=pass header.from=example.com;\r\n",
    b"X-SES-RECEIPT: x\r\n",
    b"X-SES-Virus-Verdict: PASS\r\n", b"Return-Path: <scott@example.com>\r\n", b"\0", b"\r", b"\n", b"\t", b"\x0b",
    b"\x85",
    b"FROM\t:scott@example.com\r\n", b"Fr\xc3\xb6m: scott@example.com\r\n", b"Resent-From: scott@example.com\r\n",
    b"Received: from a (a [192.0.2.1]) by inbound-smtp.us-east-1.amazonaws.com with SMTP id %b;\r\n" % _SES_ID.encode(),
    b"X: " + b"x" * 9000 + b"\r\n", b"X: " + b"x" * 66_000,
)  # fmt: skip


class SesHeaderTarget:
    """What a sender writes never becomes the word of SES, and a proven sender never becomes another one.

    An input is the unsigned text that a replayed mail of Eve brings along before and behind its signed fields.
    """

    name = "ses"
    mutator = Mutator(
        (b"X-A: b\r\n", b"Subject: again\r\nX-B: c\r\n", b"Sender: eve@example.com\r\n", b""), _SENDERS_WORDS
    )

    def check(self, data: bytes) -> None:
        """Raise where a promise is broken."""
        header, body = _SIGNED.split(b"\r\n\r\n", 1)
        half = len(data) // 2
        for before, behind in ((data, b""), (b"", data), (data[:half], data[half:])):
            replayed = before + header + b"\r\n" + behind + b"\r\n" + body
            if _signature_holds(replayed):
                self._is_eve(as_received(replayed, _SEEN))
            forged = as_received(replayed, replace(_SEEN, dmarc="fail"))
            assert not self._admitted(forged), "SES found it forged"
            assert not self._admitted(replayed), "SES never saw it"
        self._admitted(data)

    def _is_eve(self, raw: bytes) -> None:
        for address in self._admitted(raw):
            assert address == _EVE, f"a mail of Eve speaks for {address}"

    def _admitted(self, raw: bytes) -> list[str]:
        """Senders for whom a mail may act."""
        said = outline(raw)
        everybody = (Sender(said.sender, ProjectUser("amelia", "scott")),)
        envelopes = envelopes_of(raw, _SES_ID, Mailbox.parse("edit@example.org"), NOON)
        verdicts = [authenticate(one, said, everybody, SesVerdicts()) for one in envelopes]
        return [said.sender for verdict in verdicts if isinstance(verdict, Admitted)]


def _signature_holds(raw: bytes) -> bool:
    """Whether a DKIM verifier still finds the signed From: the last one, in lines that end with CRLF."""
    lines = raw.partition(b"\r\n\r\n")[0].replace(b"\r\n ", b" ").replace(b"\r\n\t", b"\t").split(b"\r\n")
    authors = [line for line in lines if line.partition(b":")[0].strip().lower() == b"from"]
    return authors[-1:] == [_SIGNED.partition(b"\r\n")[0]]
