"""Authentication-Results of the pinned provider: the topmost field, from a transport that the provider fills."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.mail.letters import delivery
from webordinary.mail.dmarc import PinnedProvider, without_comments
from webordinary.model.mail import TransportKind, TransportVerdicts

PROVIDER = PinnedProvider(["mx.provider.example"], ["192.0.2.25"])
MAILBOX = replace(delivery(), transport=TransportKind.IMAP, peer="")
AUTHOR = "From: scott@example.com\r\nTo: edit@localhost\r\n\r\nhello"
PASSED = TransportVerdicts("pass", "example.com")
GOOD = "Authentication-Results: mx.provider.example; dkim=pass header.d=example.com; dmarc=pass header.from=example.com"


def told(*fields: str) -> TransportVerdicts | None:
    return PROVIDER.verdicts(("\r\n".join((*fields, AUTHOR))).encode(), MAILBOX)


def test_the_providers_own_field_is_believed() -> None:
    assert told(GOOD) == PASSED
    assert told("Delivered-To: edit@localhost", "Received: by 2002:a05:6a10 with SMTP", GOOD) == PASSED
    received = "Received: from mail.example.com (mail.example.com. [192.0.2.1])\r\n by mx.provider.example with ESMTPS"
    assert told("Return-Path: <scott@example.com>", received, "Received-SPF: pass", GOOD) == PASSED
    assert told("Received: by mail (Postfix)", "Received: by backend7.provider.example with LMTP", GOOD) == PASSED


def test_comments_versions_and_folded_lines_are_read() -> None:
    field = (
        "Authentication-Results: MX.Provider.Example 1;\r\n dkim=pass (2048-bit; dmarc=fail) header.d=example.com;\r\n"
        ' spf=pass reason="a; dmarc=fail header.from=x" smtp.mailfrom=example.com;\r\n'
        " dmarc=pass (p=NONE (really) dis=NONE) header.from=Example.com"
    )
    assert told(field) == PASSED


@pytest.mark.parametrize(
    "above",
    [
        "Authentication-Results: mx.other.example; dmarc=none",
        "Authentication-Results: spf=pass smtp.mailfrom=x",
        "Authentication-Results: mx.provider.example; dkim=fail",
        "Authentication-Results: (unclosed mx.provider.example; dmarc=fail",
        "Received: from evil.example by mx.evil.example with ESMTP id 1",
        "Received: from mx.provider.example (x) by relay.evil.example; now",
        "Received: from by (evil [192.0.2.9]) by relay.evil.example with ESMTP",
        "Received: from x (unclosed by relay.evil.example with ESMTP",
        "Subject: hello",
        "Message-ID: <1@example.com>",
    ],
)
def test_a_field_below_another_result_another_hop_or_the_authors_words_counts_for_nothing(above: str) -> None:
    assert told(above, GOOD) is None


@pytest.mark.parametrize(
    "field",
    [
        "Authentication-Results: mx.provider.example.evil.example; dmarc=pass header.from=example.com",
        "Authentication-Results: evil; x=mx.provider.example; dmarc=pass header.from=example.com",
        "Authentication-Results: mx.provider.example (dmarc=pass header.from=example.com); none",
        'Authentication-Results: mx.provider.example; spf=pass smtp.mailfrom="; dmarc=pass header.from=example.com"',
        'Authentication-Results: mx.provider.example; spf=pass smtp.mailfrom="; dmarc=pass header.from=example.com',
        "Authentication-Results: mx.provider.example; dmarc=pass header.from=a.example header.from=example.com",
        "Authentication-Results: mx.provider.example; dmarc=pass header.from=example.com; dmarc=fail header.from=e.org",
        "Authentication-Results: mx.provider.example; dmarc=pass",
        "Authentication-Results: mx.provider.example; x-dmarc=pass header.from=example.com",
        "Authentication-Results: mx.provider.example; dkim=pass reason=dmarc=pass header.from=example.com",
        "Authentication-Results: ) mx.provider.example; dmarc=pass header.from=example.com",
        "Authentication-Results: mx.provider.example; dmarc=pass header.from=example.com; x=" + "y" * 5000,
        "Authentication-Results : \x00mx.provider.example; dmarc=pass header.from=example.com",
        "ARC-Authentication-Results: i=1; mx.provider.example; dmarc=pass header.from=example.com",
        "X-Authentication-Results: mx.provider.example; dmarc=pass header.from=example.com",
    ],
)
def test_a_field_that_a_sender_could_have_shaped_counts_for_nothing(field: str) -> None:
    assert told(field) is None


def test_a_failure_is_told_too() -> None:
    assert told(GOOD.replace("dmarc=pass", "dmarc=fail")) == TransportVerdicts("fail", "example.com")


def test_over_smtp_only_the_providers_hosts_are_believed() -> None:
    raw = f"{GOOD}\r\n{AUTHOR}".encode()
    assert PROVIDER.verdicts(raw, replace(delivery(), peer="192.0.2.25")) == PASSED
    for peer in ("192.0.2.26", "127.0.0.1", "::1", ""):
        assert PROVIDER.verdicts(raw, replace(delivery(), peer=peer)) is None


def test_nothing_is_believed_where_no_provider_is_pinned() -> None:
    assert PinnedProvider([], []).verdicts(f"{GOOD}\r\n{AUTHOR}".encode(), MAILBOX) is None


def test_comments_are_removed_and_damaged_fields_are_empty() -> None:
    assert without_comments("a (b (c) d) e").split() == ["a", "e"]
    assert without_comments(r"a (b \) c) d").split() == ["a", "d"]
    assert without_comments('a "(b" c').split() == ["a", '"(b"', "c"]
    assert [without_comments(text) for text in ("a (b", "a ) b", 'a "b')] == ["", "", ""]
