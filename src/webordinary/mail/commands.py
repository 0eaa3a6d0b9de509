"""Mail commands: exact words, free of AI."""

from __future__ import annotations

import re

from webordinary.model.mail import Command

_WORDS = {command.value: command for command in Command if command is not Command.EDIT}
_PREFIX = re.compile(r"^(?:(?:re|aw|fwd?|sv|antw|wg|tr|rép)\s*:\s*)+", re.I)


def command_of(text: str, subject: str) -> Command:
    """The command a mail gives by its whole text, or by its subject where the text is empty."""
    said = text if text.strip() else _PREFIX.sub("", subject.strip())
    return _WORDS.get(said.strip().rstrip(".!?").strip().lower(), Command.EDIT)
