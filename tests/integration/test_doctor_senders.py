"""`webordinary doctor` tells for each entitled sender's domain whether its mail can prove itself."""

from __future__ import annotations

from pathlib import Path

from tests.harness.embedded import open_harness
from tests.signed_mail import Zone
from webordinary.compose.checks import sender_checks
from webordinary.model.checks import Verdict
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Sender


def test_each_domain_is_told_with_what_the_dns_says_and_offline_says_so(tmp_path: Path) -> None:
    with open_harness(tmp_path, trusted_peers=()) as harness:
        services, now = harness.services, harness.services.clock.now()
        for user, address in (("ann", "ann@shop.strict.example"), ("bob", "bob@bare.example")):
            services.directory.add_sender(Sender(address, ProjectUser("amelia", user)), now)
        services.dns = zone = Zone(
            {
                "_dmarc.example.com": (b"v=DMARC1; p=none",),
                "_dmarc.strict.example": (b"v=DMARC1; p=reject; adkim=s",),
            }
        )
        found = {check.name: check.look() for check in sender_checks(services)}
        assert {name: result.verdict for name, result in found.items()} == {
            "senders at bare.example": Verdict.WARN,
            "senders at example.com": Verdict.OK,
            "senders at shop.strict.example": Verdict.OK,
        }
        assert "or a domain below it" in found["senders at example.com"].what
        assert "shop.strict.example itself" in found["senders at shop.strict.example"].what
        assert "no DMARC record" in found["senders at bare.example"].what
        zone.broken = True
        assert all("DNS did not answer" in check.look().what for check in sender_checks(services))


def test_a_trial_on_localhost_asks_the_dns_nothing(tmp_path: Path) -> None:
    with open_harness(tmp_path) as harness:
        assert list(sender_checks(harness.services)) == []
