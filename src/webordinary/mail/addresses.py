"""Mail addresses, and the mailbox whose mail is ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from webordinary.model.errors import Permanent

MAX_ADDRESS = 320
_ADDRESS = re.compile(r"[^\s@<>\"(),:;\\\x00-\x1f]{1,64}@[^\s@<>\"(),:;\\\x00-\x1f]{1,255}")


def is_address(text: str) -> bool:
    """One plain address, of the kind that people have; no quoting, no routes, no comments."""
    return len(text) <= MAX_ADDRESS and _ADDRESS.fullmatch(text) is not None


_QUOTED_NAME = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKETED = re.compile(r"<([^<>\s]+)>")
_COMMENT = re.compile(r"\([^()]*\)")
_OPEN_COMMENT = re.compile(r"\(.*")
_MAX_LIST, _MAX_NESTED = 8 * 1024, 10


def addresses_in(values: Iterable[str]) -> Iterator[str]:
    """The addresses of To and Cc fields, in lower case; a list beyond 8 kB is cut. A comment holds none."""
    for value in values:
        listed = _QUOTED_NAME.sub("", value[:_MAX_LIST])
        for _ in range(_MAX_NESTED):
            listed = _COMMENT.sub("", listed)
        for part in _OPEN_COMMENT.sub("", listed).split(","):
            bracketed = _BRACKETED.search(part)
            yield (bracketed[1] if bracketed else part.strip()).lower()


def with_token(address: str, token: str) -> str:
    """`edit+amelia@localhost`: the mailbox with a token that names the site."""
    local_part, _, domain = address.rpartition("@")
    return f"{local_part}+{token}@{domain}"


_CONVERSATION = re.compile(r"([0-9a-f]{16})(?:\.([0-9a-f]{20}))?")


def conversation_token(thread_id: str, email_id: str) -> str:
    """For the buttons of a reply: the conversation, and the mail whose change they are about."""
    return f"{thread_id}.{email_id[:20]}"


def conversation_in(token: str) -> tuple[str, str]:
    """The thread that a token names, and the first 20 characters of the mail's id; empty where it names none."""
    found = _CONVERSATION.fullmatch(token)
    return (found[1], found[2] or "") if found else ("", "")


def ascii_address(address: str) -> str:
    """With its domain as the DNS knows it (`xn--…`); an address that has no such form stays as it is."""
    local_part, _, domain = address.rpartition("@")
    try:
        return f"{local_part}@{domain.encode('idna').decode('ascii')}"
    except UnicodeError:
        return address


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Our address. `edit+token@localhost` reaches it too; the token names a site or a conversation."""

    local_part: str
    domains: tuple[str, ...]

    @classmethod
    def parse(cls, address: str, *more_domains: str) -> Self:
        """Read `edit@localhost`; further domains are ours as well."""
        if not is_address(address):
            raise Permanent(f"mailbox {address!r} is no mail address: write it like edit@example.com")
        local_part, _, domain = address.lower().rpartition("@")
        return cls(local_part, (domain, *(more.lower() for more in more_domains)))

    @property
    def address(self) -> str:
        """The address that replies come from."""
        return f"{self.local_part}@{self.domains[0]}"

    def accepts(self, recipient: str) -> bool:
        """Is this mail for us? All else would make us a relay."""
        if not is_address(recipient):
            return False
        local_part, _, domain = recipient.lower().rpartition("@")
        return domain in self.domains and local_part.partition("+")[0] == self.local_part

    def token(self, recipient: str) -> str:
        """What stands after the plus; empty where nothing does. It selects, it never authorises."""
        return recipient.lower().rpartition("@")[0].partition("+")[2]
