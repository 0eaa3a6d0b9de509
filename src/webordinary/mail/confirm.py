"""Did you write this? A held mail of a known sender is released by an answer from the registered address.

The question goes to the registered address only. Its Reply-To carries a one-time token; knowing the token is the proof,
so the answer itself needs no signature. Tokens are random, stored as hashes, valid for two days and for one mail. An
answer must say yes in words: an automatic reply, or a "no", must not release a forged mail. A mail that the question
cannot show whole gets no token: its sender would confirm words that they have not read. Where the page has an https
address, the question also links to a page there: opening it changes nothing, its buttons answer.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from webordinary.mail.addresses import Mailbox, with_token
from webordinary.mail.parsing.small_talk import Quotations, clauses_of, word_set, words_in

VALID = timedelta(hours=48)
MAX_QUESTIONS_A_DAY = 3
"""Questions to one address within a day: a forger must not flood it. Further mails are held in silence."""
MAX_SHOWN = 1_000
"""Characters of a mail that a question shows; a longer mail cannot be confirmed by an answer."""
MAX_PARSED_BYTES = 10_000_000
"""A larger mail is not parsed for a question: on AWS it would not fit into the memory of the step."""
_PREFIX = "confirm-"
_TOKEN = re.compile(r"confirm-[0-9a-f]{32}")
_SOFT_BREAK = rb"(?:=\r?\n)?"  # of quoted-printable, wherever a line has become too long
_TOKEN_BYTES = re.compile(_SOFT_BREAK.join([*(char.encode() for char in _PREFIX), *[rb"[0-9a-f]"] * 32]))
_WORD = re.compile(r"[^\W\d_]+")
_YES = frozenset(
    {"yes", "y", "yep", "yeah", "ok", "okay", "confirm", "confirmed", "ja", "jo", "jawohl", "oui", "si", "sí", "sì"}
    | {"sim", "da", "tak", "ano", "áno", "igen", "kyllä", "joo", "evet", "да", "так", "はい", "是", "是的", "네"}
)
_NO = frozenset(
    {"no", "not", "n", "nope", "never", "nein", "nicht", "nee", "nei", "nej", "niet", "non", "pas", "não", "nao", "nie"}
    | {"ne", "nem", "ei", "нет", "не", "ні", "いいえ", "不", "不是", "아니요"}
)
_BESIDE_YES = frozenset(
    {"i", "it", "this", "that", "did", "do", "was", "is", "me", "wrote", "sent", "please", "thanks", "thank", "you"}
    | {"ich", "das", "war", "es", "bitte", "danke", "merci", "gracias", "grazie", "bedankt"}
)
"""Words that may stand beside a yes; any other word makes it unclear, since a forged mail is at stake."""


_BESIDE_NO = word_set(
    "thanks thank you please it that this as is mind all right ok okay need then alone be fine good danke vielen dank "
    "bitte es so sie wie ist gut schon merci tomber comme ça tel quel c'est bon gracias así está bien grazie va bene "
    "così bedankt je u wel maar zo het goed"
)
"""Words that may stand beside a no which declines, and says nothing else."""


def declines(text: str) -> bool:
    """Whether a mail says no, or never mind, and nothing else; without its greeting, closing and name."""
    clauses = clauses_of(Quotations().set_aside(text), name_below=True)
    words = {word for clause in clauses for word in words_in(clause.text)}
    return bool(words & (_NO | _LEAVES)) and words <= _NO | _LEAVES | _BESIDE_NO


def says_yes(text: str) -> bool:
    """Whether a mail says yes, with any praise and thanks around it, and nothing else: a change was shown before."""
    clauses = clauses_of(Quotations().set_aside(text), name_below=True)
    words = words_in(text)
    plain = not clauses and _NO.isdisjoint(words) and not _YES.isdisjoint(words[:_GREETED])
    return "?" not in text and (plain or answer_in(text) is ConfirmationAnswer.YES)


_GREETED = 5
"""Words within which a yes comes: a greeting or thanks may go before it."""
_LEAVES = word_set("leave forget lass lassen laisse laissez déjalo déjelo lascia lasci laat")


class ConfirmationAnswer(StrEnum):
    """What an answer to the question says."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class SenderQuestion:
    """A question that was sent: the hash of its token, the held mail, the address that was asked."""

    digest: str
    email_id: str
    address: str
    asked_at: datetime

    @property
    def expires_at(self) -> datetime:
        """From then on its token is worth nothing."""
        return self.asked_at + VALID


def new_token() -> str:
    """128 bits that cannot be guessed."""
    return _PREFIX + secrets.token_hex(16)


def answer_address(mailbox: Mailbox, token: str) -> str:
    """Where the answer goes."""
    return with_token(mailbox.address, token)


def digest_of(token: str) -> str:
    """The form in which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def digest_in(mailbox: Mailbox, recipient: str) -> str:
    """The hash of the token in an address; empty where the mail answers no question."""
    return digest_of_link(mailbox.token(recipient))


def answer_page(public_url: str, token: str) -> str:
    """The page that the answer may be given on; empty where the token would travel there in clear."""
    return f"{public_url.rstrip('/')}/wrote/{token}" if public_url.startswith("https://") else ""


def digest_of_link(token: str) -> str:
    """The hash of the token in a confirmation link; empty for any other text."""
    return digest_of(token) if _TOKEN.fullmatch(token) else ""


def without_token(raw: bytes) -> bytes:
    """A question as it is kept after it was sent, and as logs and the console show it and its answers.

    Its receiver alone knows the token.
    """
    return _TOKEN_BYTES.sub(b"confirm-sent", raw)


def is_answer(mailbox: Mailbox, recipient: str) -> bool:
    """Whether a mail to this address means to answer a question, with a token that is valid or not."""
    return mailbox.token(recipient).startswith(_PREFIX)


def answer_in(text: str) -> ConfirmationAnswer:
    """The first word decides; a yes beside a no is neither."""
    lines = [line[:500] for line in text.splitlines() if line.strip()][:5] or [""]
    words = list(map(str.casefold, _WORD.findall(lines[0])))
    more = map(str.casefold, _WORD.findall(" ".join(lines)))
    first = words[0] if words else ""
    if first in _NO:
        return ConfirmationAnswer.NO
    plain = first in _YES and set(words) <= _YES | _BESIDE_YES and _NO.isdisjoint(more)
    return ConfirmationAnswer.YES if plain else ConfirmationAnswer.UNCLEAR
