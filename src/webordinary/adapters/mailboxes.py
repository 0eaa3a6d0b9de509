"""Places that mails wait in until they are taken: an IMAP mailbox, a drop folder.

Others may read the IMAP mailbox at the same time. The server itself remembers which mails were taken: by a keyword, or
because they lie in another folder. So no UID is kept from one connection to the next, and a change of UIDVALIDITY needs
no care. `flag`, `move` and `fetch` of imap_tools are not used: they expunge mails that others marked as deleted, and
parse hostile mails with `email`.

A drop folder is a Maildir, or a folder of `.eml` files. A writer must make a file appear whole: under another name
first, then renamed to its own, as Maildir rules say. Taken files are moved, never deleted: from `new` to `cur` of a
Maildir, into `taken` of another folder.
"""

from __future__ import annotations

import imaplib
import re
import select
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from imap_tools.errors import ImapToolsError, MailboxLoginError
from imap_tools.mailbox import BaseMailBox, MailBox, MailBoxStartTls, MailBoxUnencrypted
from imap_tools.utils import encode_folder

from webordinary.adapters.durable import disk_errors, make_folder, sync_path
from webordinary.adapters.passwords import Password
from webordinary.mail.intake import WaitingMail
from webordinary.mail.parsing.headers import with_crlf
from webordinary.mail.parsing.parts import MAX_MAIL_BYTES
from webordinary.model.errors import Backoff, Transient, reason_of

KEYWORD = "WebOrdinary"
TIMEOUT_SECONDS = 60.0
MAX_IDLE_SECONDS = 25 * 60.0  # RFC 2177: servers may log out a client that is idle for 30 minutes
BATCH_MAILS, BATCH_BYTES, LISTED = 100, 20_000_000, 500
_RECONNECT = Backoff(1.0, cap=300.0)
_LOGIN = Backoff(60.0, cap=3600.0)  # servers lock accounts after some wrong passwords
_UID = re.compile(rb"\bUID (\d+)")
_SIZE = re.compile(rb"\bRFC822\.SIZE (\d+)")
_BROKEN = (OSError, imaplib.IMAP4.error, ImapToolsError)


@dataclass(frozen=True, slots=True)
class ImapSettings:
    """Where the mailbox is and what becomes of mails that were taken."""

    host: str
    port: int
    user: str
    password: Password
    is_token: bool = False
    """`password` returns an OAuth2 access token (XOAUTH2)."""
    security: str = "tls"
    """`tls`, `starttls`, or `none` for a server on this machine."""
    folder: str = "INBOX"
    taken_folder: str = ""
    """Mails that were taken are moved there; empty: they get a keyword and stay."""
    max_bytes: int = MAX_MAIL_BYTES
    oldest_days: int = 30
    """Older mails are left alone: what was done is not remembered any longer."""


class ImapMailbox:
    """See MailSource; also the Wakeable of the loop that reads it. Used by one thread; `wake` by any."""

    def __init__(self, settings: ImapSettings) -> None:
        self._settings = settings
        self._box: BaseMailBox | None = None
        self._failures = 0
        self._retry_delays = _RECONNECT
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)

    def batches(self, now: datetime) -> Iterator[Sequence[WaitingMail]]:
        """See MailSource. Looks again at the end: mails may have come meanwhile.

        Selects the folder again: one that was deleted and made anew looks empty for ever to an open connection.
        """
        seen: set[str] = set()
        connected, box = self._box is not None, self._open_box()
        if connected:
            with _Translated(self):
                _select(box, self._settings)
        while uids := [uid for uid in self._waiting(box, now) if uid not in seen]:
            seen.update(uids)
            for start in range(0, len(uids), LISTED):
                yield from self._fetched(box, uids[start : start + LISTED])
        self._failures = 0

    def count_waiting(self, now: datetime) -> int:
        """How many mails wait; raises Transient."""
        return len(self._waiting(self._open_box(), now))

    def mark_taken(self, refs: Sequence[str]) -> None:
        box = self._box
        if not refs or box is None:
            return
        with _Translated(self):
            if self._settings.taken_folder:
                _require(
                    box.client.uid("MOVE", ",".join(refs), encode_folder(self._settings.taken_folder).decode("ascii"))
                )
            else:
                _require(box.client.uid("STORE", ",".join(refs), "+FLAGS.SILENT", f"({KEYWORD})"))

    def wait(self, seconds: float | None) -> None:
        """Return when a mail may have come, when woken, or after so many seconds; after a failure later and later."""
        if self._box is None:
            pause = self._retry_delays.delay(max(self._failures - 1, 0))
            self._until_readable(None, pause)
            return
        most = min(seconds or MAX_IDLE_SECONDS, MAX_IDLE_SECONDS)
        if "IDLE" not in self._box.client.capabilities:
            self._until_readable(None, most)
            return
        with suppress(Transient), _Translated(self):  # the next look connects again
            self._idle(self._box, most)

    def wake(self) -> None:
        with suppress(BlockingIOError):  # enough wake-ups wait already
            self._wake_writer.send(b"w")

    def close(self) -> None:
        """Log out, as far as the server still answers. Not used any more afterwards."""
        box, self._box = self._box, None
        if box is not None:
            with suppress(*_BROKEN):
                box.logout()
        self._wake_reader.close()
        self._wake_writer.close()

    def drop(self, problem: Exception) -> None:
        """The connection is of no use any more; the next look makes another."""
        refused = isinstance(problem, _LoginRefused)
        self._retry_delays = _LOGIN if refused else _RECONNECT
        self._failures += 1
        box, self._box = self._box, None
        if box is not None:
            with suppress(*_BROKEN):
                box.client.shutdown()

    @property
    def place(self) -> str:
        """The server, for messages."""
        return f"{self._settings.host}:{self._settings.port}"

    def _open_box(self) -> BaseMailBox:
        with _Translated(self):
            self._box = self._box or self._connected()
        return self._box

    def _connected(self) -> BaseMailBox:
        settings, secret = self._settings, self._settings.password()
        box = _open(settings)
        try:
            _log_in(box, settings, secret)
            _select(box, settings)
        except BaseException:
            with suppress(*_BROKEN):
                box.client.shutdown()
            raise
        return box

    def _waiting(self, box: BaseMailBox, now: datetime) -> list[str]:
        since = (now - timedelta(days=self._settings.oldest_days - 1)).strftime("%d-%b-%Y")
        unmarked = "" if self._settings.taken_folder else f" UNKEYWORD {KEYWORD}"
        with _Translated(self):
            return sorted(box.uids(f"UNDELETED SINCE {since}{unmarked}", charset=None), key=int)

    def _fetched(self, box: BaseMailBox, uids: Sequence[str]) -> Iterator[Sequence[WaitingMail]]:
        """The mails of these UIDs; a mail that another reader moved or deleted meanwhile is missing."""
        with _Translated(self):
            sizes = _sizes(_require(box.client.uid("FETCH", ",".join(uids), "(UID RFC822.SIZE)")))
        too_big = [uid for uid in uids if sizes.get(uid, 0) > self._settings.max_bytes]
        if too_big:
            words = f"it is larger than {self._settings.max_bytes:,} bytes (setting max_mail_bytes)"
            yield [WaitingMail(uid, b"", words) for uid in too_big]
        for chunk in _chunks([(uid, sizes[uid]) for uid in uids if uid in sizes and uid not in too_big]):
            with _Translated(self):
                batch = _mails(_require(box.client.uid("FETCH", ",".join(chunk), "(UID BODY.PEEK[])")))
            yield batch

    def _idle(self, box: BaseMailBox, seconds: float) -> None:
        box.idle.start()  # type: ignore[no-untyped-call]
        self._until_readable(box, seconds)
        box.idle.stop()  # type: ignore[no-untyped-call]

    def _until_readable(self, box: BaseMailBox | None, seconds: float) -> None:
        if box is not None and _has_buffered(box):
            return
        poller = select.poll()
        poller.register(self._wake_reader, select.POLLIN)
        if box is not None:
            poller.register(box.client.sock, select.POLLIN)
        poller.poll(seconds * 1000)
        with suppress(BlockingIOError):
            self._wake_reader.recv(1000)


class _LoginRefused(Transient):
    """The server does not know this user and password."""


class _Translated:
    """Turns failures of the connection into Transient, with words for the operator, and ends the connection."""

    def __init__(self, mailbox: ImapMailbox) -> None:
        self._mailbox = mailbox

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, problem: BaseException | None, __: object) -> None:
        if isinstance(problem, Transient):
            self._mailbox.drop(problem)
        elif isinstance(problem, _BROKEN):
            self._mailbox.drop(problem)
            words = f"mailbox at {self._mailbox.place} cannot be read now ({reason_of(problem)[:200]}): we try again"
            raise Transient(words) from problem


def _open(settings: ImapSettings) -> BaseMailBox:
    where = {"host": settings.host, "port": settings.port, "timeout": TIMEOUT_SECONDS}
    if settings.security == "none":
        return MailBoxUnencrypted(**where)
    kind = MailBoxStartTls if settings.security == "starttls" else MailBox
    return kind(**where, ssl_context=ssl.create_default_context())


def _log_in(box: BaseMailBox, settings: ImapSettings, secret: str) -> None:
    log_in = box.xoauth2 if settings.is_token else box.login_utf8 if not secret.isascii() else box.login
    try:
        log_in(settings.user, secret, initial_folder=None)
    except imaplib.IMAP4.abort:
        raise  # the connection broke
    except (MailboxLoginError, imaplib.IMAP4.error) as problem:
        where = f"{settings.host}:{settings.port}"
        words = f"mailbox at {where} refused the login of {settings.user}: check imap_user and its password or token"
        raise _LoginRefused(words) from problem
    _, offered = box.client.capability()  # more than before the login
    box.client.capabilities = tuple(offered[-1].decode("ascii", "replace").upper().split())


def _select(box: BaseMailBox, settings: ImapSettings) -> None:
    """Open the folder for writing, and see that taken mails can be moved or marked."""
    if settings.taken_folder:
        if "MOVE" not in box.client.capabilities:
            raise Transient("this IMAP server cannot move mails: leave imap_taken_folder empty")
        if not box.folder.exists(settings.taken_folder):
            box.folder.create(settings.taken_folder)
    box.folder.set(settings.folder)
    _, permanent = box.client.response("PERMANENTFLAGS")
    flags = b" ".join(flag for flag in permanent if flag) if permanent else b"\\*"
    if not settings.taken_folder and b"\\*" not in flags and KEYWORD.encode() not in flags:
        raise Transient("this IMAP server stores no keywords: name a folder for taken mails in imap_taken_folder")


def _require(answer: tuple[str, list[object]]) -> list[object]:
    status, data = answer
    if status != "OK":
        raise imaplib.IMAP4.error(repr(data)[:200])
    return data


def _sizes(items: Sequence[object]) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in items:
        line = item if isinstance(item, bytes) else b""
        uid, size = _UID.search(line), _SIZE.search(line)
        if uid and size:
            found[uid[1].decode()] = int(size[1])
    return found


def _mails(items: Sequence[object]) -> list[WaitingMail]:
    """The literals of a FETCH answer; their UID stands before or after them."""
    mails: list[WaitingMail] = []
    for at, item in enumerate(items):
        if isinstance(item, tuple):
            after = items[at + 1] if at + 1 < len(items) else b""
            uid = _UID.search(item[0]) or _UID.search(after if isinstance(after, bytes) else b"")
            if uid:
                mails.append(WaitingMail(uid[1].decode(), item[1]))
    return sorted(mails, key=lambda mail: int(mail.ref))


def _chunks(sized: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    chunk: list[str] = []
    total = 0
    for uid, size in sized:
        if chunk and (len(chunk) >= BATCH_MAILS or total + size > BATCH_BYTES):
            yield chunk
            chunk, total = [], 0
        chunk.append(uid)
        total += size
    if chunk:
        yield chunk


def _has_buffered(box: BaseMailBox) -> bool:
    """Whether imaplib has read on: a mail that came with the answer to IDLE wakes no poll of the socket."""
    reader, sock = getattr(box.client, "_file", None), box.client.sock
    if reader is None:
        return False
    timeout = sock.gettimeout()
    sock.settimeout(0)
    try:
        return bool(reader.peek(1))
    except OSError:  # nothing there
        return False
    finally:
        sock.settimeout(timeout)


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
            sync_path(target)

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
