"""Where a mail ends, which bytes it holds, and how much of it is kept in memory."""

from __future__ import annotations

import random
from typing import Any

import pytest

from webordinary.entrypoints.smtp import IntakeHandler
from webordinary.entrypoints.smtp_data import FREE_BYTES, MAX_LINE_BYTES, DataPool, MailData

MB = 1024 * 1024


def stuffed(content: bytes) -> bytes:
    """What a client sends for a mail: RFC 5321, section 4.5.2."""
    lines = content.split(b"\r\n")
    return b"\r\n".join(b"." + line if line.startswith(b".") else line for line in lines)


def fed(sent: bytes, sizes: random.Random | None = None, **limits: Any) -> tuple[MailData, bytes]:  # noqa: ANN401
    """Feed in one chunk, or in chunks of random sizes, until the data ends."""
    data, rest, at = MailData(**({"max_bytes": 40 * MB} | limits)), b"", 0
    while at < len(sent) and not data.ended:
        size = sizes.choice((1, 2, 3, 7, 50)) if sizes else len(sent)
        rest = data.feed(sent[at : at + size])
        at += size
    return data, rest + sent[at:]


@pytest.mark.parametrize("seed", range(300))
def test_a_mail_arrives_byte_for_byte_however_it_is_cut_into_packets(seed: int) -> None:
    rng = random.Random(seed)
    pieces = [b"\r\n", b".", b"..", b"\n", b"\r", b"a", b"\0", b"\n.\n", b"\r.\r", b"\n.\r\n", b"\r\n.\n"]
    content = b"".join(rng.choices(pieces, k=rng.randrange(40)))
    content += b"\r\n" if content else b""
    data, rest = fed(stuffed(content) + b".\r\n" + b"QUIT\r\n", rng)
    assert data.ended
    assert (data.content(), rest) == (content, b"QUIT\r\n")


@pytest.mark.parametrize(
    "false_end",
    [b"\n.\n", b"\r.\r", b"\n.\r\n", b"\r\n.\n", b"\r\n.\r", b"\r.\r\n", b"\r\n\0.\r\n", b"\r\n.\0\r\n", b"\r\n .\r\n"],
)
def test_nothing_but_crlf_dot_crlf_ends_a_mail(false_end: bytes) -> None:
    smuggled = b"x" + false_end + b"MAIL FROM:<boss@example.com>\r\n"
    data, _ = fed(smuggled)
    assert not data.ended
    data.feed(b".\r\n")
    assert data.ended
    assert b"MAIL FROM" in data.content()


def test_an_empty_mail_ends_with_its_first_line() -> None:
    data, rest = fed(b".\r\nNOOP\r\n")
    assert (data.ended, data.content(), rest) == (True, b"", b"NOOP\r\n")


@pytest.mark.parametrize("size", [1, 700, 64 * 1024, 300_000])
def test_a_line_may_be_as_long_as_the_limit_and_no_longer(size: int) -> None:
    for over, answer in ((0, ""), (1, "500")):
        sent = b"a\r\n" + b"x" * (MAX_LINE_BYTES - 2 + over) + b"\r\n"
        data = MailData(40 * MB)
        for at in range(0, len(sent), size):
            data.feed(sent[at : at + size])
        data.feed(b"." + b"\r\n")
        assert data.ended
        assert data.refusal[:3] == answer


def test_bytes_and_lines_are_counted_while_they_arrive() -> None:
    big, _ = fed(b"x" * 1001, max_bytes=900)
    many, _ = fed(b"\r\n" * 20, max_lines=9)
    assert (big.refusal[:3], many.refusal[:3]) == ("552", "552")
    assert big.size == many.size == 0
    assert not big.ended


def test_a_refused_mail_is_read_to_its_end_without_being_kept() -> None:
    data, rest = fed(b"x" * 1000 + b"\r\n" + b"y" * 500 + b"\r\n.\r\nQUIT\r\n", random.Random(1), max_bytes=100)
    assert data.ended
    assert (data.size, rest) == (0, b"QUIT\r\n")
    assert data.refusal.startswith("552")


def transfer(pool: DataPool, megabytes: int, began_at: float) -> MailData:
    data = MailData(40 * MB, began_at=began_at)
    pool.add(data)
    data.feed((b"x" * 1022 + b"\r\n") * 1024 * megabytes)
    pool.provision()
    return data


def test_the_slowest_transfer_gives_way_when_the_pool_is_full() -> None:
    pool = DataPool(10 * MB, clock=lambda: 100.0)
    slow, quick = transfer(pool, 5, began_at=10.0), transfer(pool, 5, began_at=99.0)
    assert not slow.refusal
    latest = transfer(pool, 4, began_at=99.5)
    assert slow.refusal.startswith("452")
    assert (slow.size, quick.refusal, latest.refusal) == (0, "", "")


def test_a_mail_that_is_being_stored_does_not_give_way() -> None:
    pool = DataPool(5 * MB, clock=lambda: 100.0)
    whole = transfer(pool, 5, began_at=0.0)
    whole.feed(b".\r\n")
    late = transfer(pool, 5, began_at=99.0)
    assert (whole.refusal, late.refusal[:3]) == ("", "452")
    pool.remove(whole)
    assert not transfer(pool, 5, began_at=99.0).refusal


def test_a_full_pool_takes_small_mails() -> None:
    pool = DataPool(MB, clock=lambda: 100.0)
    hogs = [transfer(pool, 2, began_at=99.0) for _ in range(5)]
    small = MailData(40 * MB, began_at=0.0)
    pool.add(small)
    small.feed(b"x\r\n" * (FREE_BYTES // 4))
    pool.provision()
    assert small.refusal == ""
    assert all(hog.refusal for hog in hogs)


def test_the_handler_of_the_smtp_server_has_no_slots() -> None:
    """On Python 3.11.2, that of Debian 12, aiosmtpd cannot look through a dataclass with slots: no mail came in."""
    assert not hasattr(IntakeHandler, "__slots__")
