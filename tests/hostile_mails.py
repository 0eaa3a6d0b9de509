"""Mails that are built to cost much: each from a customer or a stranger, none of them a file of the repository."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Callable

from tests.photos import picture

MB = 1024 * 1024
_ROOM = 39 * MB
_JPEG = picture("JPEG")


def mail(body: bytes, content_type: str = "text/plain", sender: str = "scott@example.com", extra: bytes = b"") -> bytes:
    """A mail with this body."""
    head = (
        f"From: {sender}\r\nTo: edit@localhost\r\nMessage-ID: <hostile@example.com>\r\nContent-Type: {content_type}\r\n"
    )
    return head.encode() + extra + b"\r\n" + body


def of_parts(parts: list[tuple[bytes, bytes]], sender: str) -> bytes:
    """A mail of parts, each with its header lines."""
    body = b"".join(b"--b0\r\n" + head + b"\r\n\r\n" + data + b"\r\n" for head, data in parts)
    return mail(body + b"--b0--\r\n", 'multipart/mixed; boundary="b0"', sender)


def flowed(sender: str) -> bytes:
    return mail(b"word and word and word and word and wor \r\n" * (7 * MB // 42), "text/plain; format=flowed", sender)


def flowed_quotes(sender: str) -> bytes:
    return mail(b"> a \r\n" * 900_000, "text/plain; format=flowed", sender)


def semicolons(sender: str) -> bytes:
    return of_parts([(b"Content-Type: text/plain" + b";" * 8000, b"x")] * 450, sender)


def allowed_semicolons(sender: str) -> bytes:
    return of_parts([(b"Content-Type: text/plain" + b';x="' * 90 + b"y" * 700, b"x")] * 450, sender)


def parameters(sender: str) -> bytes:
    return of_parts([(b"Content-Type: text/plain" + b";a=b" * 900, b"x")] * 450, sender)


def continued_names(sender: str) -> bytes:
    name = b"".join(b"; filename*%d*=utf-8''%%ff%%fe" % number for number in range(90))
    return of_parts([(b"Content-Disposition: attachment" + name, b"x" * 5000)] * 200, sender)


def html_parts(sender: str) -> bytes:
    return of_parts([(b"Content-Type: text/html", b"<p><b>x</b> y</p>" * 4800)] * 450, sender)


def html_of_one_line(sender: str) -> bytes:
    return mail((b"word " * 100 + b"\r\n") * 1000 + (b"<b>x</b>" * 100 + b"\r\n") * 600, "text/html", sender)


def html_of_deep_quotes(sender: str) -> bytes:
    return mail(b"<blockquote>" * 490 + (b"<br>" * 99 + b"\r\n") * 1000, "text/html", sender)


def quotes_and_answers(sender: str) -> bytes:
    return mail(b"hi\r\n" + b"On 2020-01-01, a@b.c wrote:\r\n> x\r\n" * 2400 + b"text", sender=sender)


def beginnings(sender: str) -> bytes:
    return mail((b"<a@b> wrote " * 33 + b"x\r\n") * 490, sender=sender)


def wrapped_beginnings(sender: str) -> bytes:
    return mail(b"On 1\r\n" * 4900, sender=sender)


def plain_text(sender: str) -> bytes:
    return mail(b"a plain text that goes on and on, line for line\r\n" * 800_000, sender=sender)


def wide_text(sender: str) -> bytes:
    return mail("\U0001f389 ".encode() * (_ROOM // 5), "text/plain; charset=utf-8", sender)


def short_lines(sender: str) -> bytes:
    return mail(b"\r\n" * 999_000, sender=sender)


def nested(sender: str) -> bytes:
    levels = b"".join(b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (n, n + 1) for n in range(18))
    return mail(levels + b"-" * _ROOM, "multipart/mixed; boundary=b0", sender)


def almost_delimiters(sender: str) -> bytes:
    return mail(b"--b0" * (_ROOM // 4), "multipart/mixed; boundary=b0", sender)


def one_photo(sender: str) -> bytes:
    photo = base64.encodebytes(_JPEG + bytes(25 * MB - len(_JPEG)))
    return of_parts(
        [(b"", b"add it"), (b"Content-Type: image/jpeg\r\nContent-Transfer-Encoding: base64", photo)], sender
    )


def twenty_photos(sender: str) -> bytes:
    photo = base64.encodebytes(_JPEG + bytes(1400 * 1024))
    head = b'Content-Type: image/jpeg; name="photo.jpg"\r\nContent-Transfer-Encoding: base64'
    return of_parts([(b"", b"add them"), *[(head, photo)] * 20], sender)


def text_file(sender: str) -> bytes:
    return of_parts([(b"Content-Disposition: attachment", ("ä" * 20 + "\n").encode() * 600_000)], sender)


def quoted_printable_file(sender: str) -> bytes:
    head = b"Content-Disposition: attachment\r\nContent-Transfer-Encoding: quoted-printable"
    return of_parts([(head, b"=41=\r\n" * 990_000 + b"=41" * (30 * MB // 3))], sender)


def uuencoded_file(sender: str) -> bytes:
    head = b"Content-Disposition: attachment\r\nContent-Transfer-Encoding: x-uuencode"
    return of_parts([(head, b"begin 644 a\r\n" + (b"M" + b"#" * 60 + b"\r\n") * 500_000)], sender)


def archive_of_many(sender: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(20_000):
            archive.writestr(str(number), b"")
    data = base64.encodebytes(packed.getvalue())
    return of_parts([(b"Content-Disposition: attachment\r\nContent-Transfer-Encoding: base64", data)] * 8, sender)


def attached_mail(sender: str) -> bytes:
    return of_parts([(b"", b"hi"), (b"Content-Type: message/rfc822", b"Subject: a\x0cb: c\r\n\r\nhello")], sender)


HOSTILE: dict[str, Callable[[str], bytes]] = {
    build.__name__: build
    for build in (
        flowed, flowed_quotes, semicolons, allowed_semicolons, parameters, continued_names, html_parts,
        html_of_one_line, html_of_deep_quotes, quotes_and_answers, beginnings, wrapped_beginnings, plain_text,
        wide_text, short_lines, nested, almost_delimiters, one_photo, twenty_photos, text_file,
        quoted_printable_file, uuencoded_file, archive_of_many, attached_mail,
    )
}  # fmt: skip
