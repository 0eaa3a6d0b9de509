"""The DNS records that mail of our domain needs: who receives it, who may send it, and what is done with forgeries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import dns.resolver

from webordinary.model.findings import Check, Finding, broken, doubtful, good

ANSWER_SECONDS = 5.0
SES_SPF = "include:amazonses.com"
BOUNCE = "bounce"
"""Below our domain: where bounces of what SES sends go; infra names it so."""


class DnsChecks:
    """`resolver` asks the name servers of this machine unless told otherwise."""

    def __init__(
        self,
        domain: str,
        region: str,
        tokens: Callable[[], Sequence[str]],
        resolver: dns.resolver.Resolver | None = None,
    ) -> None:
        self._domain, self._tokens, self._resolver = domain, tokens, resolver or dns.resolver.Resolver()
        self._inbound = f"inbound-smtp.{region}.amazonaws.com"

    def checks(self) -> Iterator[Check]:
        """One per record."""
        yield Check("dns mx", self.mx)
        yield Check("dns dkim", self.dkim)
        yield Check("dns spf", self.spf)
        yield Check("dns dmarc", self.dmarc)

    def mx(self) -> Finding:
        """Does mail to us go to SES?"""
        wanted = f"{self._domain} MX 10 {self._inbound}"
        found = self._ask(self._domain, "MX")
        if not any(self._inbound in one.lower() for one in found):
            return broken(f"mail to {self._domain} goes to {', '.join(found) or 'nobody'}", f"set the record {wanted}")
        others = [one for one in found if self._inbound not in one.lower()]
        if others:
            return doubtful(f"mail to {self._domain} also goes to {', '.join(others)}", "leave SES's MX record alone")
        return good(f"mail to {self._domain} goes to SES")

    def dkim(self) -> Finding:
        """Is what we send signed by our domain?"""
        tokens = self._tokens()
        if not tokens:
            return broken(f"SES knows no keys for {self._domain}", "`webordinary aws deploy` makes the identity")
        for token in tokens:
            name, target = f"{token}._domainkey.{self._domain}", f"{token}.dkim.amazonses.com"
            if not any(target in one.lower() for one in self._ask(name, "CNAME")):
                return broken(f"the DKIM record {name} is missing", f"set {name} CNAME {target}")
        return good(f"{len(tokens)} DKIM records of {self._domain}")

    def spf(self) -> Finding:
        """May SES send for us?"""
        for name in (f"{BOUNCE}.{self._domain}", self._domain):
            if any(SES_SPF in one for one in self._ask(name, "TXT") if "v=spf1" in one):
                return good(f"SPF of {name} allows SES")
        name = f"{BOUNCE}.{self._domain}"
        return doubtful(f"no SPF record allows SES to send for {name}", f'set {name} TXT "v=spf1 {SES_SPF} ~all"')

    def dmarc(self) -> Finding:
        """Do receivers know what to do with forgeries?"""
        name = f"_dmarc.{self._domain}"
        if not any("v=DMARC1" in one for one in self._ask(name, "TXT")):
            return doubtful(f"{self._domain} has no DMARC policy", f'set {name} TXT "v=DMARC1; p=quarantine"')
        return good(f"DMARC policy of {self._domain}")

    def _ask(self, name: str, kind: str) -> list[str]:
        return ask(self._resolver, name, kind)


def ask(resolver: dns.resolver.Resolver, name: str, kind: str) -> list[str]:
    """The records of this kind; none where the name or the kind is not there."""
    try:
        answer = resolver.resolve(name, kind, lifetime=ANSWER_SECONDS, search=False)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return []
    return [one.to_text() for one in answer]
