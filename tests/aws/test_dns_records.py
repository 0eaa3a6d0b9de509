"""The doctor's look at DNS, against a name server on loopback."""
# ruff: noqa: E402

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.extras import needs_extra

needs_extra("dns", "aws")

import dns.flags
import dns.message
import dns.rcode
import dns.resolver
import dns.rrset

from webordinary.adapters.aws.provision.account_checks import DnsChecks, site_name_checks
from webordinary.model.checks import CheckResult, Verdict

DOMAIN, REGION, TOKENS = "kiln.example", "eu-west-1", ("t1", "t2")
RECORDS = {
    (f"{DOMAIN}.", "MX"): [f"10 inbound-smtp.{REGION}.amazonaws.com."],
    (f"t1._domainkey.{DOMAIN}.", "CNAME"): ["t1.dkim.amazonses.com."],
    (f"t2._domainkey.{DOMAIN}.", "CNAME"): ["t2.dkim.amazonses.com."],
    (f"bounce.{DOMAIN}.", "TXT"): ['"v=spf1 include:amazonses.com ~all"'],
    (f"_dmarc.{DOMAIN}.", "TXT"): ['"v=DMARC1; p=quarantine"'],
}


@contextmanager
def name_server(records: dict[tuple[str, str], list[str]]) -> Iterator[dns.resolver.Resolver]:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            wire, client = server.recvfrom(4096)
            if not wire:
                return
            query = dns.message.from_wire(wire)
            question = query.question[0]
            answer = dns.message.make_response(query)
            answer.flags |= dns.flags.RA
            name, kind = question.name.to_text(), dns.rdatatype.to_text(question.rdtype)
            if found := records.get((name, kind)):
                answer.answer.append(dns.rrset.from_text(name, 60, "IN", kind, *found))
            elif not any(known == name for known, _ in records):
                answer.set_rcode(dns.rcode.NXDOMAIN)
            server.sendto(answer.to_wire(), client)

    thread = threading.Thread(target=serve)
    thread.start()
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers, resolver.port = ["127.0.0.1"], server.getsockname()[1]
    try:
        yield resolver
    finally:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", server.getsockname())
        thread.join(10)
        server.close()


def look(records: dict[tuple[str, str], list[str]], tokens: tuple[str, ...] = TOKENS) -> dict[str, CheckResult]:
    with name_server(records) as resolver:
        checks = DnsChecks(DOMAIN, REGION, lambda: tokens, resolver).checks()
        return {check.name: check.look() for check in checks}


def test_a_domain_with_all_records_is_in_order() -> None:
    assert {finding.verdict for finding in look(RECORDS).values()} == {Verdict.OK}


def test_each_missing_record_is_named_with_its_value() -> None:
    found = look({})
    assert [finding.verdict for finding in found.values()] == [Verdict.FAIL, Verdict.FAIL, Verdict.WARN, Verdict.WARN]
    assert found["dns mx"].todo == f"set the record {DOMAIN} MX 10 inbound-smtp.{REGION}.amazonaws.com"
    assert found["dns dkim"].todo == f"set t1._domainkey.{DOMAIN} CNAME t1.dkim.amazonses.com"
    assert found["dns spf"].todo == f'set bounce.{DOMAIN} TXT "v=spf1 include:amazonses.com ~all"'
    assert found["dns dmarc"].todo == f'set _dmarc.{DOMAIN} TXT "v=DMARC1; p=quarantine"'


@pytest.mark.parametrize(
    ("there", "verdict"),
    [(["10 mail.example.org."], Verdict.FAIL), (RECORDS[f"{DOMAIN}.", "MX"] + ["5 old.example.org."], Verdict.WARN)],
)
def test_mail_that_also_goes_elsewhere_is_noticed(there: list[str], verdict: Verdict) -> None:
    assert look(RECORDS | {(f"{DOMAIN}.", "MX"): there})["dns mx"].verdict is verdict


def test_without_an_identity_there_are_no_keys_to_look_for() -> None:
    assert "deploy" in look(RECORDS, tokens=())["dns dkim"].todo


def test_a_site_s_name_without_an_address_is_a_warning() -> None:
    hosts = [f"amelia.{DOMAIN}", f"six.{DOMAIN}", f"edit.amelia.{DOMAIN}"]
    records = {(f"{hosts[0]}.", "A"): ["192.0.2.1"], (f"{hosts[1]}.", "AAAA"): ["2001:db8::1"]}
    with name_server(records) as resolver:
        found = [check.look() for check in site_name_checks(hosts, DOMAIN, resolver)]
    assert [finding.verdict for finding in found] == [Verdict.OK, Verdict.OK, Verdict.WARN]
    assert found[2].what == f"edit.amelia.{DOMAIN} has no address, so links in replies lead nowhere"
    assert "hosted_zone" in found[2].todo


def test_without_a_domain_there_are_no_names_to_ask_for() -> None:
    [check] = site_name_checks(["amelia.localhost"], "localhost")
    assert check.look().verdict is Verdict.WARN
