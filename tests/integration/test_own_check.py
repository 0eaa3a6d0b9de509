"""The own check with its real parts: verification in a limited process, DNS over a socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.signed_mail import Key, SigningProvider, Zone, letter, name_server
from webordinary.adapters.files.parser import ParserLimits, ProcessVerifier
from webordinary.adapters.resolver import DnsResolver
from webordinary.mail.dmarc import DnsFailed

NOW = datetime.now(UTC)
SCOTT = "scott@example.com"


def test_records_are_read_in_one_piece_and_asked_for_once() -> None:
    long = b"v=DKIM1; p=" + b"A" * 700
    with name_server({"s1._domainkey.example.com": (long,)}) as (address, asked):
        dns_port = DnsResolver([address])
        assert [dns_port.txt("s1._domainkey.example.com") for _ in range(3)] == [(long,)] * 3
        assert [dns_port.txt("none.example.com") for _ in range(3)] == [()] * 3
        assert asked == ["s1._domainkey.example.com", "none.example.com"]


def test_a_server_that_fails_or_keeps_silent_is_told_and_asked_again_later() -> None:
    with name_server({}) as (address, asked):
        for _ in range(2):
            with pytest.raises(DnsFailed):
                DnsResolver([address], seconds=0.3).txt("broken.example.com")
    assert len(asked) >= 2, "counted when the server has read all that was sent"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(DnsFailed, match=r"example\.com"):
            DnsResolver([f"127.0.0.1:{silent.getsockname()[1]}"], seconds=0.3).txt("example.com")


@pytest.fixture(scope="module")
def verifier() -> Iterator[ProcessVerifier]:
    made = ProcessVerifier()
    yield made
    made.close()


@pytest.fixture(scope="module")
def provider() -> SigningProvider:
    return SigningProvider("example.com", Key.ed25519()).publish(Zone())


def test_a_process_verifies_the_signatures_that_it_is_given_keys_for(
    verifier: ProcessVerifier, provider: SigningProvider
) -> None:
    raw = provider.sign(provider.sign(letter(SCOTT, NOW)))
    record = provider.key.record
    assert verifier.verified(raw, {0: record, 1: record}) == {0, 1}
    assert verifier.verified(raw, {1: record}) == {1}
    assert verifier.verified(raw, {7: record}) == frozenset()
    assert verifier.verified(raw + b"more\r\n", {0: record}) == frozenset()
    assert verifier.verified(raw, {0: Key.ed25519().record}) == frozenset()


@pytest.mark.parametrize(
    "raw", [b"", b"\xff\xfe", b"DKIM-Signature: x", b" folded\r\n\r\n", b"DKIM-Signature: v=1; a=;\r\n\r\n"]
)
def test_a_mail_that_the_library_stumbles_over_has_no_valid_signature(verifier: ProcessVerifier, raw: bytes) -> None:
    assert verifier.verified(raw, {0: b"v=DKIM1; p="}) == frozenset()


def test_a_mail_of_forty_megabytes_is_verified_within_the_limits(
    verifier: ProcessVerifier, provider: SigningProvider
) -> None:
    raw = provider.sign(letter(SCOTT, NOW, "\r\n".join(["x" * 76] * 510_000)))
    assert verifier.verified(raw, {0: provider.key.record}) == {0}


def test_a_mail_that_takes_too_long_has_no_valid_signature_and_the_next_one_is_read(provider: SigningProvider) -> None:
    short = ProcessVerifier(ParserLimits(cpu_seconds=0.3, small_processes=1))
    try:
        slow = provider.sign(letter(SCOTT, NOW, " \r\n" * 4_000_000 + "end"))
        assert short.verified(slow, {0: provider.key.record}) == frozenset()
        assert short.verified(provider.sign(letter(SCOTT, NOW)), {0: provider.key.record}) == {0}
    finally:
        short.close()
