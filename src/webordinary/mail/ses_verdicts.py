"""Who may act when mail comes through SES: whom SES has proven, and nobody else."""

from __future__ import annotations

from webordinary.mail.addresses import ascii_address
from webordinary.mail.authenticate import Held, Refused
from webordinary.model.mail import Envelope, ParsedMail, TransportVerdicts

_GOOD = "pass"
_HARMLESS = (_GOOD, "gray")  # SES is not sure that it is no spam; DMARC says who wrote it


class SesVerdicts:
    """See SenderPolicy. Asks for an aligned DMARC pass of exactly the domain in From; SPF or DKIM alone prove less."""

    def doubt(self, envelope: Envelope, mail: ParsedMail) -> Held | Refused | None:
        """See SenderPolicy."""
        verdicts = envelope.verdicts
        if verdicts is None:
            return Held(
                "SES left no verdicts on this mail that a sender could not have written: "
                "check that mail reaches the bucket through the receipt rule alone, and that the rule adds no headers"
            )
        if verdicts.virus == "fail":
            return Refused("SES found a virus in this mail")
        if verdicts.spam == "fail":
            return Refused("SES takes this mail for spam")
        return _unproven(verdicts, mail) or _unscanned(verdicts)


def _unproven(verdicts: TransportVerdicts, mail: ParsedMail) -> Held | None:
    if verdicts.dmarc != _GOOD:
        found = verdicts.dmarc or "nothing that can be read"
        return Held(f"SES says of DMARC: {found}; without a pass nothing proves that {mail.sender} wrote this")
    domain = ascii_address(mail.sender).rpartition("@")[2].lower()
    if not domain or verdicts.dmarc_domain != domain:
        return Held(f"SES has proven {verdicts.dmarc_domain or 'no domain'}, and From names {mail.sender}")
    return None


def _unscanned(verdicts: TransportVerdicts) -> Held | None:
    if verdicts.virus == _GOOD and verdicts.spam in _HARMLESS:
        return None
    found = f"spam {verdicts.spam or 'unsaid'}, virus {verdicts.virus or 'unsaid'}"
    return Held(f"SES did not scan this mail to the end ({found}): switch on scanning in the receipt rule")
