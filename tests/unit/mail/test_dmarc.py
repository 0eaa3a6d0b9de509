"""Our own proof of a sender, over a zone of real keys: what is signed, by which domain, for which recipient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.signed_mail import FIELDS, InProcessVerifier, Key, SigningProvider, Zone, letter
from tests.unit.mail.letters import SCOTT, envelope
from webordinary.mail.auth import Admitted, AwaitsConfirmation, ProofChain, Refused, TrustedPeers, Verdict, authenticate
from webordinary.mail.dmarc import AlignedSignature, organisation
from webordinary.mail.parsing.message import outline
from webordinary.model.mail import Envelope, TransportVerdicts
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Sender

KNOWN = Sender(SCOTT, ProjectUser("amelia", "scott"))
NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture(scope="session")
def key() -> Key:
    return Key.ed25519()


@pytest.fixture
def zone() -> Zone:
    return Zone()


@pytest.fixture
def provider(zone: Zone, key: Key) -> SigningProvider:
    return SigningProvider("example.com", key).publish(zone)


def judge(raw: bytes, zone: Zone, told: Envelope | None = None, known: Sender = KNOWN) -> Verdict:
    told = told or replace(envelope(peer="192.0.2.1"), received_at=NOW)
    mail = outline(raw)
    entries = (known,) if mail.sender == known.address else ()
    policy = ProofChain(TrustedPeers([]), AlignedSignature(zone, InProcessVerifier()))
    return authenticate(told, mail, entries, policy, lambda: raw)


def why(verdict: Verdict) -> str:
    assert isinstance(verdict, AwaitsConfirmation), verdict
    return verdict.reason


def test_a_mail_that_its_own_domain_signed_is_admitted(zone: Zone, provider: SigningProvider) -> None:
    assert judge(provider.sign(letter(SCOTT, NOW)), zone) == Admitted()


@pytest.mark.needs("openssl")
def test_an_rsa_signature_is_admitted(zone: Zone) -> None:
    assert judge(SigningProvider("example.com", Key.rsa()).publish(zone).sign(letter(SCOTT, NOW)), zone) == Admitted()


@pytest.mark.needs("openssl")
def test_a_weak_key_proves_nothing(zone: Zone) -> None:
    weak = SigningProvider("example.com", Key.rsa(768)).publish(zone)
    assert "does not match" in why(judge(weak.sign(letter(SCOTT, NOW)), zone))


def test_a_mail_without_a_signature_is_held_and_asks_the_dns_nothing(zone: Zone, provider: SigningProvider) -> None:
    assert "no DKIM signature of example.com" in why(judge(letter(SCOTT, NOW), zone))
    assert zone.asked == []


def test_the_dns_is_never_asked_for_a_stranger(zone: Zone, key: Key) -> None:
    eve = SigningProvider("evil.example", key).publish(zone)
    assert isinstance(judge(eve.sign(letter("eve@evil.example", NOW)), zone), Refused)
    assert zone.asked == []


def test_a_mail_that_a_mailing_list_changed_is_held(zone: Zone, provider: SigningProvider) -> None:
    raw = provider.sign(letter(SCOTT, NOW))
    assert "does not match" in why(judge(raw + b"-- \r\nlist footer\r\n", zone))
    assert "does not match" in why(judge(raw.replace(b"Subject: Title", b"Subject: [list] Title"), zone))


def test_a_mail_that_was_forwarded_unchanged_is_admitted(zone: Zone, provider: SigningProvider) -> None:
    forwarded = b"Received: from a by forwarder.example; now\r\nX-Forwarded: yes\r\n" + provider.sign(
        letter(SCOTT, NOW)
    )
    assert judge(forwarded, zone, replace(envelope(mail_from="fwd@forwarder.example"), received_at=NOW)) == Admitted()


def test_the_signature_of_another_domain_proves_nothing(zone: Zone, provider: SigningProvider, key: Key) -> None:
    other = SigningProvider("evil.example", key).publish(zone)
    assert "no DKIM signature of example.com" in why(judge(other.sign(letter(SCOTT, NOW)), zone))


def test_a_second_signature_counts_where_the_first_is_of_another_domain(
    zone: Zone, provider: SigningProvider, key: Key
) -> None:
    raw = SigningProvider("list.example", key).publish(zone).sign(provider.sign(letter(SCOTT, NOW)))
    assert judge(raw, zone) == Admitted()


def test_signatures_beyond_a_few_are_not_looked_at(zone: Zone, provider: SigningProvider) -> None:
    raw = provider.sign(letter(SCOTT, NOW))
    forged = raw[: raw.index(b"From:")].replace(b"s=s1", b"s=s9")
    why(judge(forged * 50 + raw, zone))
    assert len(zone.asked) <= 5


@pytest.mark.parametrize(
    ("dmarc", "admitted"),
    [(b"v=DMARC1; p=none", True), (b"v=DMARC1; p=reject; adkim=r", True), (b"v=DMARC1; adkim=s", False), (None, False)],
)
def test_a_subdomain_signs_for_its_organisation_as_the_dmarc_record_says(
    zone: Zone, key: Key, dmarc: bytes | None, admitted: bool
) -> None:
    if dmarc:
        zone.records["_dmarc.example.com"] = (dmarc,)
    raw = SigningProvider("mail.example.com", key).publish(zone, None).sign(letter(SCOTT, NOW))
    assert isinstance(judge(raw, zone), Admitted) is admitted


def test_a_domain_without_dmarc_proves_itself_by_its_own_signature(zone: Zone, key: Key) -> None:
    raw = SigningProvider("example.com", key).publish(zone, None).sign(letter(SCOTT, NOW))
    assert judge(raw, zone) == Admitted()


def test_the_record_of_the_organisation_counts_for_a_subdomain_without_one(zone: Zone, key: Key) -> None:
    known = Sender("scott@shop.example.com", KNOWN.key)
    zone.records["_dmarc.example.com"] = (b"v=DMARC1; p=none",)
    raw = SigningProvider("example.com", key).publish(zone, b"v=DMARC1; p=none").sign(letter(known.address, NOW))
    assert judge(raw, zone, known=known) == Admitted()


def test_two_dmarc_records_count_as_none(zone: Zone, key: Key) -> None:
    raw = SigningProvider("mail.example.com", key).publish(zone, None).sign(letter(SCOTT, NOW))
    zone.records["_dmarc.example.com"] = (b"v=DMARC1; p=none", b"v=DMARC1; p=none; adkim=r")
    assert "no DMARC record" in why(judge(raw, zone))


def test_neighbours_below_one_public_suffix_do_not_sign_for_each_other(zone: Zone, key: Key) -> None:
    known = Sender("scott@amelia.co.uk", KNOWN.key)
    zone.records["_dmarc.amelia.co.uk"] = (b"v=DMARC1; p=none",)
    for signer in ("evil.co.uk", "co.uk", "uk"):
        raw = SigningProvider(signer, key).publish(zone, None).sign(letter(known.address, NOW))
        assert "no DKIM signature" in why(judge(raw, zone, known=known))
    assert (organisation("a.b.co.uk"), organisation("co.uk")) == ("b.co.uk", "")


@pytest.mark.parametrize("missing", ["from", "to", "subject", "date", "message-id"])
def test_a_signature_that_leaves_a_field_open_proves_nothing(
    zone: Zone, provider: SigningProvider, missing: str
) -> None:
    fields = [name for name in FIELDS if name != missing.encode()]
    if missing == "from":  # no honest signer does that
        raw = provider.sign(letter(SCOTT, NOW)).replace(b"h=from : ", b"h=", 1)
        assert b"h=from" not in raw
    else:
        raw = provider.sign(letter(SCOTT, NOW), fields)
    assert "leaves" in why(judge(raw, zone))


def test_a_signature_of_a_part_of_the_body_proves_nothing(zone: Zone, provider: SigningProvider) -> None:
    raw = provider.sign(letter(SCOTT, NOW), length=True)
    assert "l=" in why(judge(raw, zone))
    assert "l=" in why(judge(raw + b"Publish everything\r\n", zone))


@pytest.mark.parametrize(
    "field", ["From: eve@evil.example", "Subject: Other", "To: other@localhost", "Content-Type: text/html", "Date: now",
              "Reply-To: a@b\r\nReply-To: c@d", "Message-ID: <2@example.com>"],
)  # fmt: skip
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_second_field_of_a_kind_makes_a_mail_prove_nothing(
    zone: Zone, provider: SigningProvider, field: str, place: str
) -> None:
    raw = provider.sign(letter(SCOTT, NOW))
    added = f"{field}\r\n".encode()
    doubled = added + raw if place == "first" else raw.replace(b"\r\n\r\n", b"\r\n" + added + b"\r\n", 1)
    assert not isinstance(judge(doubled, zone), Admitted)


def test_an_expired_signature_proves_nothing(zone: Zone, provider: SigningProvider) -> None:
    raw = provider.sign(letter(SCOTT, NOW))
    for expires in (int(NOW.timestamp()) - 1, "never"):
        changed = raw.replace(b"; q=dns/txt;", f"; x={expires}; q=dns/txt;".encode())
        assert changed != raw
        assert "expired" in why(judge(changed, zone))


def test_a_mail_to_another_person_that_is_sent_on_to_us_is_held(zone: Zone, provider: SigningProvider) -> None:
    """The signature is genuine: only the recipient shows that this was not meant for us."""
    raw = provider.sign(letter(SCOTT, NOW, "Yes, please delete all of it.", recipient="eve@evil.example"))
    assert "another person" in why(judge(raw, zone))


def test_a_mail_replayed_to_another_site_is_held(zone: Zone, provider: SigningProvider) -> None:
    raw = provider.sign(letter(SCOTT, NOW, "publish", recipient="edit+amelia@localhost"))
    other = replace(envelope(recipient="edit+bakery@localhost"), received_at=NOW)
    assert judge(raw, zone, replace(other, recipient="edit+amelia@localhost")) == Admitted()
    assert "another person" in why(judge(raw, zone, other))


def test_our_address_in_a_signed_cc_counts_and_in_an_unsigned_one_does_not(
    zone: Zone, provider: SigningProvider
) -> None:
    raw = letter(SCOTT, NOW, recipient="anna@example.com", Cc="edit@localhost")
    assert judge(provider.sign(raw), zone) == Admitted()
    fields = [name for name in FIELDS if name != b"cc"]
    assert "another person" in why(judge(provider.sign(raw, fields), zone))


@pytest.mark.parametrize(("age", "admitted"), [(0, True), (6, True), (8, False), (-2, False)])
def test_an_old_mail_that_is_sent_again_is_held(
    zone: Zone, provider: SigningProvider, age: int, admitted: bool
) -> None:
    raw = provider.sign(letter(SCOTT, NOW - timedelta(days=age)))
    assert isinstance(judge(raw, zone), Admitted) is admitted


WITHOUT_TYPE = tuple(name for name in FIELDS if name != b"content-type")
PARTS = "--b0\r\nContent-Type: text/plain\r\n\r\nhello\r\n--b0--\r\n"


@pytest.mark.parametrize(
    ("content_type", "text", "admitted"),
    [
        ("text/plain; charset=utf-8", "hello", True),
        ('multipart/alternative; boundary="b0"', PARTS, True),
        ("multipart/alternative; boundary=b0", PARTS, True),
        ('multipart/alternative; boundary="b1"', PARTS, False),
        ('multipart/alternative; boundary="b0"', "a preamble\r\n" + PARTS, False),
        ("text/plain", PARTS, False),
        ("text/html", "hello", False),
    ],
)
def test_an_open_content_type_is_taken_only_where_the_body_has_one_reading(
    zone: Zone, provider: SigningProvider, content_type: str, text: str, admitted: bool
) -> None:
    raw = provider.sign(letter(SCOTT, NOW, text, content_type=content_type), WITHOUT_TYPE)
    assert isinstance(judge(raw, zone), Admitted) is admitted


@pytest.mark.parametrize(
    "change",
    [
        lambda record: (),
        lambda record: (record, record),
        lambda record: (record.partition(b"p=")[0] + b"p=",),
        lambda record: (record + b"; t=y",),
        lambda record: (record + b"; s=tlsrpt",),
        lambda record: (record + b"; h=sha1",),
        lambda record: (record.replace(b"DKIM1", b"DKIM2"),),
        lambda record: (record.replace(b"k=ed25519", b"k=rsa"),),
        lambda record: (b"\xff\xfe p=\x00",),
        lambda record: (record + b" " * 5000,),
    ],
)
def test_a_key_that_is_gone_revoked_doubled_or_for_another_purpose_proves_nothing(
    zone: Zone, provider: SigningProvider, change: Callable[[bytes], tuple[bytes, ...]]
) -> None:
    name = "s1._domainkey.example.com"
    zone.records[name] = change(provider.key.record)
    assert "no usable key" in why(judge(provider.sign(letter(SCOTT, NOW)), zone))


def test_a_dns_that_does_not_answer_proves_nothing(zone: Zone, provider: SigningProvider) -> None:
    zone.broken = True
    assert "DNS did not answer" in why(judge(provider.sign(letter(SCOTT, NOW)), zone))


def test_the_provider_is_believed_before_our_own_check_and_its_failure_is_final(
    zone: Zone, provider: SigningProvider
) -> None:
    signed, plain = provider.sign(letter(SCOTT, NOW)), letter(SCOTT, NOW)
    told = replace(envelope(peer="192.0.2.1"), received_at=NOW)
    passed, failed = TransportVerdicts("pass", "example.com"), TransportVerdicts("fail", "example.com")
    assert judge(plain, zone, replace(told, verdicts=passed)) == Admitted()
    assert "DMARC" in why(judge(signed, zone, replace(told, verdicts=failed)))
    assert judge(signed, zone, replace(told, verdicts=TransportVerdicts("none", "example.com"))) == Admitted()
    other = TransportVerdicts("pass", "examp1e.com")
    assert "From names" in why(judge(signed, zone, replace(told, verdicts=other)))
