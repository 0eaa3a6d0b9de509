"""The mail data after the command DATA: one buffer a mail, with one bound over all connections."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO

from webordinary.mail.parsing.parts import DEFAULT_LIMITS

END = b"\r\n.\r\n"
MAX_LINE_BYTES = 64 * 1024  # RFC 5321 asks for 1000; some mail programs write whole paragraphs as lines
FREE_BYTES = 512 * 1024  # of each mail; they do not count in the pool, so that a full pool still takes small mails
NO_ROOM = "452 4.3.1 too much mail is arriving at this moment: try again later"


@dataclass(slots=True, eq=False)
class MailData:
    """The content of one mail: dots unstuffed, no other byte changed.

    Only CRLF ends a line and only CRLF.CRLF ends the data (RFC 5321, section 4.1.1.4); bare CR and LF are content, so
    that this server and the one before it agree on where a mail ends. Content beyond a limit is counted, not kept.
    """

    max_bytes: int
    max_lines: int = DEFAULT_LIMITS.lines
    began_at: float = field(default_factory=time.monotonic)
    refusal: str = ""
    ended: bool = False
    discarded: int = 0
    _buffer: BytesIO = field(default_factory=BytesIO)
    _lines: int = 0
    _line_bytes: int = 0  # length of the unfinished line at the end of the buffer
    _pending: bytes = b"\r\n"  # may be the beginning of END; the first line follows an imagined line end
    _imagined: int = 2

    @property
    def size(self) -> int:
        """Bytes that the buffer holds."""
        return self._buffer.tell()

    def feed(self, chunk: bytes) -> bytes:
        """Add what arrived; returns the bytes after the end of the data."""
        arrived = self._pending + chunk
        end = arrived.find(END)
        if end < 0:
            kept = _undecided_at(arrived)
            self._add(arrived[:kept])
            self._pending = arrived[kept:]
            return b""
        self._add(arrived[: end + 2])
        self.ended, self._pending = True, b""
        return arrived[end + len(END) :]

    def refuse(self, answer: str) -> None:
        """Give the memory back; the first refusal is the answer at the end of the data."""
        self.refusal = self.refusal or answer
        self._buffer = BytesIO()

    def content(self) -> bytes:
        """The whole mail; the buffer itself, not a copy."""
        return self._buffer.getvalue()

    def _add(self, arrived: bytes) -> None:
        if not arrived:
            return
        piece = arrived.replace(b"\r\n.", b"\r\n")[self._imagined :]
        self._imagined = 0
        if not self.refusal:
            self._buffer.write(piece)
            self._check(piece)
        if self.refusal:
            self.discarded += len(piece)

    def _check(self, piece: bytes) -> None:
        self._lines += piece.count(b"\n")
        if self.size > self.max_bytes:
            self.refuse(f"552 5.3.4 this mail is too big: at most {self.max_bytes} bytes are taken")
        elif self._lines > self.max_lines:
            self.refuse(f"552 5.3.4 this mail has too many lines: at most {self.max_lines} are taken")
        elif self._has_long_line(piece):
            self.refuse(f"500 5.6.0 this mail has too long a line: at most {MAX_LINE_BYTES} bytes are taken")

    def _has_long_line(self, piece: bytes) -> bool:
        """Look for one line end in each stretch of the longest line allowed."""
        start = -self._line_bytes
        while len(piece) - start > MAX_LINE_BYTES:
            end = piece.rfind(b"\r\n", max(start, 0), max(start + MAX_LINE_BYTES, 0))
            if end < 0:
                return True
            start = end + 2
        last = piece.rfind(b"\r\n")
        self._line_bytes = self._line_bytes + len(piece) if last < 0 else len(piece) - last - 2
        return False


def _undecided_at(arrived: bytes) -> int:
    """Where the bytes begin that the next ones may complete to END; a CRLF stays together with a dot after it."""
    at = max(len(arrived) - len(END) + 1, 0)
    if arrived[at - 2 : at] == b"\r\n":
        return at - 2
    return at - 1 if arrived[at - 1 : at] == b"\r" else at


@dataclass(slots=True)
class DataPool:
    """Bounds the mail data in memory over all connections, from its first byte until it is stored.

    When the pool is full, the slowest transfer is refused: a client that holds memory and sends little cannot keep
    others out.
    """

    max_bytes: int
    clock: Callable[[], float] = time.monotonic
    _transfers: list[MailData] = field(default_factory=list)

    def add(self, data: MailData) -> None:
        """Count a mail that begins to arrive."""
        self._transfers.append(data)

    def remove(self, data: MailData) -> None:
        """Stop counting a mail that was stored or lost."""
        self._transfers.remove(data)
        data.refuse(NO_ROOM)

    def provision(self) -> None:
        """Refuse the slowest transfers until the others fit."""
        while sum(map(_beyond_free, self._transfers)) > self.max_bytes:
            arriving = [data for data in self._transfers if not data.ended and _beyond_free(data)]
            if not arriving:
                return
            min(arriving, key=self._rate).refuse(NO_ROOM)

    def _rate(self, data: MailData) -> float:
        return data.size / max(self.clock() - data.began_at, 0.001)


def _beyond_free(data: MailData) -> int:
    return max(data.size - FREE_BYTES, 0)
