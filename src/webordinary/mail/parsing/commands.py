"""Mail commands: exact words, free of AI."""

from __future__ import annotations

import re

from webordinary.model.mail import Command

_PREFIXES = re.compile(r"^(?:(?:re|aw|sv|antw|odp|rép?|fwd?|wg|tr)\s*(?:\[\d+\])?\s*:\s*)+", re.I)


def without_prefixes(subject: str) -> str:
    """The subject without the `Re:` and `Fwd:` that mail programs put before it, in any of their languages."""
    return _PREFIXES.sub("", subject.strip()).strip()


def reply_subject(subject: str) -> str:
    """`Re:` once, however often it went back and forth."""
    return "Re: " + (without_prefixes(subject) or "your website")


def own_words(subject: str) -> str:
    """The subject, if its writer chose it for this mail; an answer's is that of an older wish."""
    return "" if _PREFIXES.match(subject.strip()) else subject.strip()


_WORDS = {command.value: command for command in Command if command is not Command.EDIT}
_NAMED = re.compile(
    r"""(?xi)
    undo \s+ (?:
        (?P<commit> [0-9a-f]{7,40} )
        | (?P<page> (?:https?:/)?/\S* | \S+\.[a-z][a-z0-9]{0,7} )
        | ["“„] (?P<title> [^"“”„\n]+ ) ["”“]
    )"""
)
"""An `undo` that names a change so that no sentence could be meant: its commit, its page or file, its title quoted."""


def command_of(text: str, subject: str) -> Command:
    """The command a mail gives by its whole text, or by its subject where the text is empty."""
    said = _said(text, subject)
    return _WORDS.get(said.lower(), Command.UNDO if _NAMED.fullmatch(said) else Command.EDIT)


def named_change(text: str, subject: str) -> str:
    """Which change an `undo` names; empty if it names none."""
    named = _NAMED.fullmatch(_said(text, subject))
    return next((value.strip() for value in named.groups() if value), "") if named else ""


def _said(text: str, subject: str) -> str:
    said = text if text.strip() else without_prefixes(subject)
    return _plainly(said.strip().rstrip(".!?").strip())


def _plainly(said: str) -> str:
    """Without a please before or after."""
    if said[:7].lower() == "please ":
        said = said[7:].lstrip()
    if said[-7:].lower() == " please":
        said = said[:-7].rstrip(" ,")
    return said
