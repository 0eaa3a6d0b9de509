"""What a subject says, and what it says only because mail programs repeat it."""

from __future__ import annotations

import re

_PREFIXES = re.compile(r"^(?:(?:re|aw|sv|antw|odp|rép?|fwd?|wg|tr)\s*(?:\[\d+\])?\s*:\s*)+", re.I)


def reply_subject(subject: str) -> str:
    """`Re:` once, however often it went back and forth."""
    return "Re: " + (_PREFIXES.sub("", subject).strip() or "your website")


def own_words(subject: str) -> str:
    """The subject, if its writer chose it for this mail; an answer's is that of an older wish."""
    return "" if _PREFIXES.match(subject) else subject.strip()
