"""What can go wrong in the mail room, in the families the workflow knows."""

from __future__ import annotations

from webordinary.model.errors import Permanent, Transient


class Unparseable(Permanent):
    """A mail that we will not or cannot read; says what is wrong with it."""


class UnknownMail(Permanent):
    """No mail of this name was ever accepted here."""

    def __init__(self, email_id: str) -> None:
        super().__init__(f"no mail {email_id} is stored here: check the id, or restore a backup")
        self.email_id = email_id


class PerhapsSent(Transient):
    """The transport fell silent after it was given a reply: it may have left, so nobody hurries to send it again."""


class EarlierMailFirst(Transient):
    """An earlier mail of the same sender is still being read: a correction must not overtake what it corrects."""
