from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mail.letters import NOON, SCOTT, raw_mail
from webordinary.adapters.aws.mail.emulated import Reception, as_received
from webordinary.mail.addresses import Mailbox
from webordinary.mail.auth import (
    MAX_RECIPIENTS,
    Admitted,
    AwaitsConfirmation,
    Refused,
    SesVerdicts,
    Verdict,
    authenticate,
    envelopes_of,
)
from webordinary.mail.intake import name_of
from webordinary.mail.parsing.message import outline, parse
from webordinary.model.mail import Envelope, TransportVerdicts
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Sender

EDIT = Mailbox.parse("edit@example.org")
ID = "795hue2ttd6ie60k15ji41vbso3q721dlq9g6f81"
SEEN = Reception(SCOTT, "edit@example.org", ID)
EVIL = replace(SEEN, mail_from="eve@evil.example", dmarc="fail", domain="example.com", dkim="none")
PASSED = "Authentication-Results: amazonses.com; spf=pass; dmarc=pass header.from=example.com;"
ENTITLED = Sender(SCOTT, ProjectUser("amelia", "scott"))

# As SES stored it, but for the names.
STORED = b"""Return-Path: <scott@example.com>\r
Received: from mail-lf1-f51.example.com (mail-lf1-f51.example.com [192.0.2.51])\r
 by inbound-smtp.eu-west-1.amazonaws.com with SMTP id 795hue2ttd6ie60k15ji41vbso3q721dlq9g6f81\r
 for edit+amelia@example.org;\r
 Wed, 13 Aug 2025 17:16:06 +0000 (UTC)\r
X-SES-Spam-Verdict: PASS\r
X-SES-Virus-Verdict: PASS\r
Received-SPF: pass (spfCheck: domain of example.com designates 192.0.2.51 as permitted sender) client-ip=192.0.2.51;\
 envelope-from=scott@example.com; helo=mail-lf1-f51.example.com;\r
Authentication-Results: amazonses.com;\r
 spf=pass (spfCheck: domain of example.com designates 192.0.2.51 as permitted sender) client-ip=192.0.2.51;\
 envelope-from=scott@example.com; helo=mail-lf1-f51.example.com;\r
 dkim=pass header.i=@example.com;\r
 dkim=fail (bad signature) header.i=@lists.example.net;\r
 dmarc=pass header.from=example.com;\r
X-SES-RECEIPT: AEFBQUFBQUFBQUFGUlFCYlk3bnlBZVdKcy9HR2Qx\r
X-SES-DKIM-SIGNATURE: a=rsa-sha256; q=dns/txt; b=abc; c=relaxed/simple; s=x; d=amazonses.com; t=1755105367;\r
 v=1; bh=abc; h=From:To:Cc:Bcc:Subject:Date:Message-ID:MIME-Version:Content-Type:X-SES-RECEIPT;\r
Received: by mail-lf1-f51.example.com with SMTP id 2adb3069b0e04 for <edit+amelia@example.org>; Wed, 13 Aug 2025\r
From: Scott <scott@example.com>\r
To: edit+amelia@example.org\r
Subject: Title\r
Message-ID: <1@example.com>\r
\r
hello\r
"""


def envelope(raw: bytes, ses_id: str = ID) -> Envelope:
    (one,) = envelopes_of(raw, ses_id, EDIT, NOON)
    return one


def judged(raw: bytes) -> Verdict:
    return authenticate(envelope(raw), parse(raw), (ENTITLED,), SesVerdicts())


def test_a_mail_as_ses_stores_it_tells_what_the_transport_knew() -> None:
    found = TransportVerdicts(dmarc="pass", dmarc_domain="example.com", spam="pass", virus="pass")
    assert envelope(STORED) == Envelope("192.0.2.51", SCOTT, "edit+amelia@example.org", NOON, found)
    assert judged(STORED) == Admitted()


def test_a_proven_sender_is_admitted() -> None:
    assert judged(as_received(raw_mail(), SEEN)) == Admitted()
    assert judged(as_received(raw_mail(), replace(SEEN, spam="GRAY"))) == Admitted()
    assert judged(as_received(raw_mail(), replace(SEEN, peer="2001:db8::1"))) == Admitted()
    assert judged(as_received(raw_mail(), replace(SEEN, mail_from="SRS0=x=y=example.com=scott@lists.example"))) == (
        AwaitsConfirmation("the mail provider has proven lists.example, and From names scott@example.com")
    )


def test_a_virus_is_refused() -> None:
    assert isinstance(judged(as_received(raw_mail(), replace(SEEN, virus="FAIL"))), Refused)
    assert isinstance(judged(as_received(raw_mail(), replace(SEEN, virus="FAIL", spam="FAIL"))), Refused)


def test_a_known_sender_whose_mail_looks_like_spam_is_asked_and_not_dropped() -> None:
    """Mails of Google Workspace with dmarc=pass carry X-SES-Spam-Verdict: FAIL now and then."""
    verdict = judged(as_received(raw_mail(), replace(SEEN, spam="FAIL")))
    assert verdict == AwaitsConfirmation("SES takes this mail for spam")
    stranger = authenticate(
        envelope(as_received(raw_mail(), replace(SEEN, spam="FAIL"))), parse(STORED), (), SesVerdicts()
    )
    assert isinstance(stranger, Refused)


@pytest.mark.parametrize("dmarc", ["fail", "none", "temperror", "bestguesspass", "gray", ""])
def test_anything_but_a_dmarc_pass_is_held(dmarc: str) -> None:
    assert isinstance(judged(as_received(raw_mail(), replace(SEEN, dmarc=dmarc))), AwaitsConfirmation)


@pytest.mark.parametrize("change", [{"virus": "PROCESSING_FAILED"}, {"virus": "GRAY"}, {"spam": "DISABLED"}])
def test_a_mail_that_was_not_scanned_to_the_end_is_held(change: dict[str, str]) -> None:
    verdict = judged(as_received(raw_mail(), replace(SEEN, **change)))
    assert isinstance(verdict, AwaitsConfirmation)
    assert "receipt rule" in verdict.reason


def without(raw: bytes, field: bytes) -> bytes:
    """What SES might one day leave out."""
    block, receipt, rest = raw.partition(b"X-SES-RECEIPT")
    fields = block.replace(b"\r\n ", b"\0").split(b"\r\n")
    kept = [one for one in fields if not one.lower().startswith(field.lower() + b":")]
    return b"\r\n".join(kept).replace(b"\0", b"\r\n ") + receipt + rest


@pytest.mark.parametrize(
    "field", [b"Received", b"X-SES-Spam-Verdict", b"X-SES-Virus-Verdict", b"Authentication-Results"]
)
def test_what_ses_did_not_write_is_not_taken_from_the_sender(field: bytes) -> None:
    forged = raw_mail(**{"X-SES-Spam-Verdict": "PASS", "X-SES-Virus-Verdict": "PASS", "Received": "x"})
    forged = PASSED.encode() + b"\r\n" + forged
    assert judged(as_received(forged, SEEN)) == Admitted()  # the sender's words do no harm beside SES's own
    assert isinstance(judged(without(as_received(forged, SEEN), field)), AwaitsConfirmation)


ATTACKS = {
    "a verdict below the block": as_received(PASSED.encode() + b"\r\n" + raw_mail(), EVIL),
    "a verdict that SES never writes": as_received(raw_mail(X_SES_DMARC_Verdict="PASS"), EVIL),
    "such a verdict on top": b"X-SES-DMARC-Verdict: PASS\r\n" + as_received(raw_mail(), EVIL),
    "a second block below": as_received(as_received(raw_mail(), SEEN), EVIL),
    "a block of the sender's alone": as_received(raw_mail(), replace(SEEN, ses_id="a" * 40)),
    "no block": raw_mail(Authentication_Results=PASSED.partition(": ")[2]),
    "results twice": as_received(raw_mail(), EVIL).replace(b"X-SES-RECEIPT", PASSED.encode() + b"\r\nX-SES-RECEIPT"),
    "results on top of it": PASSED.encode() + b"\r\n" + as_received(raw_mail(), EVIL),
    "another field among them": as_received(raw_mail(), SEEN).replace(b"X-SES-Spam", b"X-Other: 1\r\nX-SES-Spam"),
    "a folded line that reads like a verdict": as_received(raw_mail(subject=f"x\r\n {PASSED}"), EVIL),
    "a mail that begins with a folded line": as_received(f" {PASSED}\r\n".encode() + raw_mail(), EVIL),
    "a HELO that goes on": as_received(raw_mail(), replace(EVIL, helo="x; dmarc=pass header.from=example.com")),
    "a HELO in place of the verdict": as_received(
        raw_mail(), replace(EVIL, helo="x; dmarc=pass header.from=example.com")
    ).replace(b"\r\n dkim=none header.i=@example.com;\r\n dmarc=fail header.from=example.com;", b""),
    "a signature's name in place of the verdict": as_received(
        raw_mail(), replace(EVIL, dkim="fail header.i=x; dmarc=pass header.from=example.com")
    ).replace(b" dmarc=fail header.from=example.com;\r\n", b""),
    "a HELO with another kind of line end": as_received(
        raw_mail(), replace(EVIL, helo="x\x0c dmarc=pass header.from=example.com")
    ).replace(b" dmarc=fail header.from=example.com;\r\n", b""),
    "an envelope sender that goes on": as_received(
        raw_mail(), replace(EVIL, mail_from='"x; dmarc=pass header.from=example.com;"@evil.example')
    ),
    "a comment that ends early": as_received(
        raw_mail(),
        replace(EVIL, spf="pass (x) client-ip=1.2.3.4; helo=x; dmarc=pass header.from=example.com; x=("),
    ),
    "a verdict in a comment": as_received(raw_mail(), replace(EVIL, spf="none (dmarc=pass header.from=example.com)")),
    "two verdicts": as_received(raw_mail(), replace(EVIL, dmarc="pass header.from=example.com; dmarc=fail")),
    "a name like SES's": as_received(raw_mail(), SEEN).replace(b"s: amazonses.com", b"s: amazonses.com.evil.example"),
    "a name that ends like SES's": as_received(raw_mail(), SEEN).replace(b"s: amazonses.com", b"s: notamazonses.com"),
    "another domain's pass": as_received(raw_mail(), replace(EVIL, dmarc="pass", domain="evil.example")),
    "a subdomain's pass": as_received(raw_mail(), replace(SEEN, domain="a.example.com")),
    "no domain": as_received(raw_mail(), SEEN).replace(b" header.from=example.com;", b" header.from=;"),
    "a server that is called like SES's": as_received(raw_mail(), SEEN).replace(
        b".amazonaws.com", b".aws.evil.example"
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_forged_verdict_opens_nothing(attack: str) -> None:
    assert isinstance(judged(ATTACKS[attack]), AwaitsConfirmation)


def test_a_second_author_is_refused_whatever_ses_says() -> None:
    assert isinstance(judged(as_received(b"From: eve@evil.example\r\n" + raw_mail(), SEEN)), Refused)


SIGNED = raw_mail("hello", **{"from": "eve@example.com"})
"""A mail that example.com signed for one of its users, who is no customer."""

REPLAYED = {
    "a bare CR": b"X-A: a\rFrom: scott@example.com\rMessage-ID: <n@x>\r\rpublish\r\n" + SIGNED,
    "a bare LF": b"X-A: a\nFrom: scott@example.com\nMessage-ID: <n@x>\n\npublish\r\n" + SIGNED,
    "LF, then CRLF": b"X-A: a\nFrom: scott@example.com\n\r\npublish\r\n" + SIGNED,
    "a NUL": b"X-A: a\0From: scott@example.com\r\n" + SIGNED,
    "a NUL in its From": SIGNED.replace(b"eve@", b"scott\0@"),
    "a bare CR in its From": SIGNED.replace(b"eve@example.com", b"eve@example.com\rFrom: scott@example.com"),
    "a bare CR behind its From": SIGNED.replace(b"\r\nsubject", b"\rX-A: 1\r\nsubject"),
    "a line that is no field": b"From\x0b: scott@example.com\r\n" + SIGNED,
    "another author beyond what is read": SIGNED.replace(
        b"\r\n\r\n", b"\r\nX-A: " + b"a " * 40_000 + b"\r\nFrom: scott@example.com\r\n\r\n"
    ),
    "a header without an end": b"X-A: " + b"a " * 400_000 + b"\r\n" + SIGNED,
}


@pytest.mark.parametrize("attack", REPLAYED)
def test_a_replayed_mail_whose_header_reads_in_two_ways_is_held(attack: str) -> None:
    raw = as_received(REPLAYED[attack], SEEN)
    assert envelope(raw).verdicts is None or outline(raw).doubt
    assert isinstance(authenticate(envelope(raw), outline(raw), (ENTITLED,), SesVerdicts()), AwaitsConfirmation)
    assert isinstance(authenticate(envelope(raw), outline(raw), (), SesVerdicts()), AwaitsConfirmation)


def test_two_crs_end_no_header() -> None:
    raw = as_received(b"X-A: a\r\rpublish\r\n" + raw_mail(), SEEN)
    assert envelope(raw).verdicts is None
    assert (outline(raw).sender, outline(raw).subject, parse(raw).text) == ("", "Title", "hello")


# no line ends: SMTP has none within a command
_WORDS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=120)


@given(
    helo=_WORDS | _WORDS.map(lambda words: f"{words}; dmarc=pass header.from=example.com;{words}"),
    mail_from=_WORDS | _WORDS.map(lambda words: f'"{words}" dmarc=pass header.from=example.com;@{words}'),
    signer=_WORDS | _WORDS.map(lambda words: f"fail header.i={words}; dmarc=pass header.from=example.com"),
    written=st.booleans(),
)
def test_nothing_that_a_client_says_becomes_a_pass(helo: str, mail_from: str, signer: str, written: bool) -> None:
    raw = as_received(raw_mail(), replace(EVIL, helo=helo, mail_from=mail_from, dkim=signer))
    if not written:  # SES used to say nothing of domains without DMARC
        raw = raw.replace(b" dmarc=fail header.from=example.com;\r\n", b"")
    verdicts = envelope(raw).verdicts
    assert verdicts is None or verdicts.dmarc in ("", "fail")


def test_a_bounce_has_no_envelope_sender_and_is_refused() -> None:
    assert isinstance(judged(as_received(raw_mail(), replace(SEEN, mail_from="", domain="example.com"))), Refused)


def recipients(raw: bytes) -> list[str]:
    return [one.recipient for one in envelopes_of(raw, ID, EDIT, NOON)]


def test_every_address_of_ours_is_a_recipient_once() -> None:
    to = '"Edit, edit+x@example.org" <EDIT@example.org>, ann@example.com, edit+amelia@example.org, edit@example.org'
    assert recipients(as_received(raw_mail(to=to), SEEN)) == ["edit@example.org", "edit+amelia@example.org"]
    unnamed = replace(SEEN, recipient="")
    assert recipients(as_received(raw_mail(cc="edit+amelia@example.org"), unnamed)) == ["edit+amelia@example.org"]
    assert recipients(as_received(raw_mail(to="undisclosed-recipients:;"), unnamed)) == ["edit@example.org"]


def test_mail_to_somebody_else_of_the_domain_is_not_ours() -> None:
    assert recipients(as_received(raw_mail(to="hello@example.org"), replace(SEEN, recipient="hello@example.org"))) == []


def test_recipients_are_bounded() -> None:
    many = ", ".join(f"edit+{number}@example.org" for number in range(500))
    assert len(recipients(as_received(raw_mail(to=many), SEEN))) == MAX_RECIPIENTS


def test_an_international_domain_is_compared_as_the_dns_knows_it() -> None:
    raw = as_received(
        raw_mail(**{"from": "ann@bücher.example"}),
        replace(SEEN, mail_from="ann@xn--bcher-kva.example"),
    )
    entitled = Sender("ann@bücher.example", ProjectUser("bakery", "ann"))
    assert authenticate(envelope(raw), parse(raw), (entitled,), SesVerdicts()) == Admitted()


def test_a_mail_without_a_name_that_ses_receives_twice_is_one_mail() -> None:
    nameless = raw_mail(message_id="")
    first = as_received(nameless, SEEN)
    again = as_received(nameless, replace(SEEN, ses_id="b" * 40, spam="GRAY")).replace(b"AEFB", b"AEFC")
    assert name_of(first, "edit@example.org") == name_of(again, "edit@example.org")
