"""A drop folder that mails wait in: a Maildir, or a folder of `.eml` files.

A writer must make a file appear whole: under another name first, then renamed to its own, as Maildir rules say. Taken
files are moved, never deleted: from `new` to `cur` of a Maildir, into `taken` of another folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from webordinary.adapters.durable import disk_errors, make_folder, sync_folder
from webordinary.mail.delivered import WaitingMail
from webordinary.mail.parsing.headers import with_crlf
from webordinary.model.errors import Transient, reason_of

BATCH_MAILS, BATCH_BYTES = 100, 20_000_000
TAKEN = "taken"
_NUMBER = re.compile(r"\d+|\D+")


class DropFolder:
    """See MailSource."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._max_bytes = folder, max_bytes

    def batches(self, now: datetime) -> Iterator[Sequence[WaitingMail]]:
        batch: list[WaitingMail] = []
        for file in self._waiting():
            if (mail := self._read(file)) is None:
                continue
            batch.append(mail)
            if len(batch) >= BATCH_MAILS or sum(len(one.raw) for one in batch) > BATCH_BYTES:
                yield batch
                batch = []
        if batch:
            yield batch

    def mark_taken(self, refs: Sequence[str]) -> None:
        maildir = self._is_maildir()
        target = self._folder / ("cur" if maildir else TAKEN)
        source = self._folder / "new" if maildir else self._folder
        with disk_errors(target):
            make_folder(target)
            for name in refs:
                (source / name).rename(target / (f"{name.partition(':')[0]}:2,S" if maildir else name))
            sync_folder(target)

    def _is_maildir(self) -> bool:
        return (self._folder / "new").is_dir()

    def _waiting(self) -> list[Path]:
        """The files that wait, in the order of their names: a Maildir name begins with its time."""
        folder = self._folder / "new" if self._is_maildir() else self._folder
        try:
            files = [file for file in folder.iterdir() if self._is_mail(file)]
        except OSError as problem:
            words = f"drop folder {self._folder} cannot be read ({reason_of(problem)}): make it, or give access to it"
            raise Transient(words) from problem
        return sorted(files, key=lambda file: [part.zfill(20) for part in _NUMBER.findall(file.name)])

    def _is_mail(self, file: Path) -> bool:
        known = self._is_maildir() or file.suffix == ".eml"
        return known and not file.name.startswith(".") and file.is_file() and not file.is_symlink()

    def _read(self, file: Path) -> WaitingMail | None:
        """None for a file that another program took away meanwhile."""
        try:
            with file.open("rb") as opened:
                raw = opened.read(self._max_bytes + 1)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise Transient(f"{file} cannot be read ({reason_of(problem)}): give this user access to it") from problem
        if len(raw) > self._max_bytes:
            return WaitingMail(file.name, b"", f"it is larger than {self._max_bytes:,} bytes (setting max_mail_bytes)")
        if not raw.strip():
            return WaitingMail(file.name, b"", "the file is empty")
        return WaitingMail(file.name, with_crlf(raw))
