"""A Maildir as transport: each reply becomes one file, whatever crashes in between."""

from __future__ import annotations

import hashlib
from pathlib import Path

from webordinary.adapters.durable import disk_errors, make_folder, sync_folder, write_durably
from webordinary.model.mail import Reply


class MaildirTransport:
    """See Transport. The file's name follows from the reply, so sending again finds the first delivery."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def send(self, reply: Reply) -> None:
        """See Transport."""
        name = hashlib.sha256(reply.message_id.encode()).hexdigest()[:40] + ".webordinary"
        with disk_errors(self._folder):
            for part in ("tmp", "new", "cur"):
                make_folder(self._folder / part)
            if self._delivered(name):
                sync_folder(self._folder / "new")  # the first delivery may have died before its own sync
                return
            lines = reply.raw.replace(b"\r\n", b"\n")  # as files on this machine have them
            write_durably(self._folder / "new" / name, lines, through=self._folder / "tmp")

    def _delivered(self, name: str) -> bool:
        """A mail reader moves what it has seen to cur/ and appends flags to the name."""
        if (self._folder / "new" / name).exists():
            return True
        return any(file.name.partition(":")[0] == name for file in (self._folder / "cur").iterdir())
