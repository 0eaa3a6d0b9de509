"""Parses mails in warm child processes with limits on processor time and memory; see decision 0024.

A hostile mail costs its sender's own request and nothing else: the child that it brings down is replaced. Small mails
have processes of their own, which a mail keeps for milliseconds, so that they never wait behind large ones.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from webordinary.adapters.files.parser_child import OUT_OF_TIME, Frame, read_frame, write_frame
from webordinary.adapters.records import attachment_from_json, mail_from_json
from webordinary.mail.parsing.message import outline
from webordinary.mail.ports import ExtractedFile, ParserBusy, ReturnedMail, Unparseable
from webordinary.model.errors import Transient
from webordinary.model.mail import AttachmentKind, ParsedMail, RefusedAttachment

_CHILD = "webordinary.adapters.files.parser_child"
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "LANG", "LC_ALL")


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """What reading a mail may take. A mail is read at most twice: for its text, then for its files."""

    cpu_seconds: float = 1.0
    memory_bytes: int = 150 * 1024 * 1024
    """On top of the 35 MB that the process has to begin with."""
    photo_cpu_seconds: float = 3.0
    photo_memory_bytes: int = 300 * 1024 * 1024
    """For each photo, in a process of its own and on top of what its mail took; see `photos` for the largest."""
    wall_seconds: float = 60.0
    """A process that does not answer for so long is replaced: the machine is overloaded, or the process stopped."""
    small_bytes: int = 64 * 1024
    small_processes: int = 2
    large_processes: int = 2
    large_niceness: int = 5
    """Large mails give way to everything else that this machine does for its customers."""


VERIFIER_LIMITS = ParserLimits(cpu_seconds=5.0, memory_bytes=300 * 1024 * 1024, small_processes=2)
"""A body of 40 MB takes two seconds to hash, and a mail may have a second signature."""


class ProcessParser:
    """See MailParser. Safe to share between threads."""

    def __init__(self, limits: ParserLimits = ParserLimits()) -> None:  # noqa: B008 - frozen
        self._limits = limits
        self._small = _ProcessPool(limits, limits.small_processes)
        self._large = _ProcessPool(limits, limits.large_processes, limits.large_niceness)
        self._end = weakref.finalize(self, _end_all, self._small, self._large)  # also at the end of the program

    def parse(self, raw: bytes) -> ParsedMail:
        with self._process(raw) as process:
            answer, _ = next(process.ask("parse", raw))
        try:
            return _with_header_of(raw, mail_from_json(answer["mail"]))
        except (LookupError, ValueError, TypeError) as problem:
            raise _unreadable(f"its parser answered nonsense, {problem!r}") from problem

    def files(self, raw: bytes) -> Iterator[ExtractedFile | RefusedAttachment]:
        with self._large.borrowed(wait=False) as process:  # a small file can be a photo of many pixels
            for answer, data in process.ask("files", raw):
                if "end" in answer:
                    return
                yield _file(answer, data)

    def returned(self, raw: bytes) -> ReturnedMail | None:
        with self._process(raw) as process:
            answer, _ = next(process.ask("returned", raw))
        if not (returned := answer.get("returned")):
            return None
        return ReturnedMail(tuple(returned["message_ids"]), tuple(returned["recipients"]), returned["reason"])

    def warm(self) -> None:
        """See MailParser. Large mails wait for their process once, if any come."""
        (self._small if self._limits.small_processes else self._large).warm()

    def close(self) -> None:
        """End the processes; the parser may not be used any more."""
        self._end()

    def _process(self, raw: bytes) -> AbstractContextManager[_Process]:
        small = self._limits.small_processes and len(raw) <= self._limits.small_bytes
        return self._small.borrowed(wait=True) if small else self._large.borrowed(wait=False)


class ProcessVerifier:
    """See SignatureVerifier. Its processes read no mail for anything else, so that no mail can speak for another."""

    def __init__(self, limits: ParserLimits = VERIFIER_LIMITS) -> None:
        self._pool = _ProcessPool(limits, limits.small_processes)
        self._end = weakref.finalize(self, _end_all, self._pool)

    def verified(self, raw: bytes, keys: Mapping[int, bytes]) -> frozenset[int]:
        records = {str(place): record.decode("latin-1") for place, record in keys.items()}
        with suppress(Unparseable), self._pool.borrowed(wait=True) as process:
            answer, _ = next(process.ask("dkim", raw, keys=records))
            return frozenset(place for place in answer["verified"] if place in keys)
        return frozenset()

    def close(self) -> None:
        """End the processes; the verifier may not be used any more."""
        self._end()


def _end_all(*pools: _ProcessPool) -> None:
    for pool in pools:
        pool.close()


class _ProcessPool:
    """Processes for mails of one kind; idle ones are kept."""

    def __init__(self, limits: ParserLimits, processes: int, niceness: int = 0) -> None:
        self._limits, self._niceness = limits, niceness
        self._free = threading.Semaphore(processes)
        self._guard = threading.Lock()
        self._idle: list[_Process] = []

    def warm(self) -> None:
        with self._guard:
            if not self._idle:
                self._idle.append(_Process(self._limits, self._niceness))

    def close(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    @contextmanager
    def borrowed(self, *, wait: bool) -> Iterator[_Process]:
        """Back among the idle ones only when it has answered to the end.

        Without `wait` raises ParserBusy where all are busy: waiting would keep a thread of the workflow engine.
        """
        if not self._free.acquire(blocking=wait):
            raise ParserBusy("other large mails are being read: this one is tried again in a moment")
        try:
            process = self._take()
            try:
                yield process
            finally:
                if process.ready:
                    with self._guard:
                        self._idle.append(process)
                else:
                    process.end()
        finally:
            self._free.release()

    def _take(self) -> _Process:
        with self._guard:
            while self._idle:
                process = self._idle.pop()
                if process.alive:
                    return process
                process.end()
        return _Process(self._limits, self._niceness)


class _Watchdog:
    """Kills children that take too long. One thread for all: where memory is short, a start may never return."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._deadlines: dict[subprocess.Popen[bytes], float] = {}
        threading.Thread(target=self._run, name="parser-watchdog", daemon=True).start()

    @contextmanager
    def killing(self, child: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
        """Kill this child if the block takes longer."""
        with self._changed:
            self._deadlines[child] = time.monotonic() + seconds
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._deadlines.pop(child, None)

    def _run(self) -> None:
        while True:
            with suppress(MemoryError), self._changed:
                self._changed.wait(self._kill_late())

    def _kill_late(self) -> float | None:
        """Seconds until the next deadline."""
        now = time.monotonic()
        for child, deadline in list(self._deadlines.items()):
            if deadline <= now:
                child.kill()
                del self._deadlines[child]
        return min(self._deadlines.values(), default=now) - now if self._deadlines else None


_watchdog = cache(_Watchdog)


class _Process:
    """One child. `ready` while it waits for a request."""

    def __init__(self, limits: ParserLimits, niceness: int) -> None:
        self._limits = limits
        self.ready = True
        # Nothing of our environment: it may hold keys, and a mail must not find any.
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        photo = (limits.photo_cpu_seconds, limits.photo_memory_bytes)
        limited = map(str, (limits.cpu_seconds, limits.memory_bytes, niceness, *photo))
        self._child = subprocess.Popen(
            [sys.executable, "-s", "-P", "-m", _CHILD, *limited],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            cwd="/",
        )

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def ask(self, request: str, raw: bytes, **more: object) -> Iterator[Frame]:
        """Send a request and yield the answers, up to and including the last one."""
        assert self._child.stdin
        self.ready = False
        with suppress(BrokenPipeError), self._watched():
            write_frame(self._child.stdin, {"request": request, **more}, raw)
        while True:
            answer, data = self._answer()
            if "unparseable" in answer:
                self.ready = "ends" not in answer
                raise Unparseable(answer["unparseable"])
            self.ready = "mail" in answer or "end" in answer
            yield answer, data

    def _answer(self) -> Frame:
        assert self._child.stdout
        with self._watched():
            try:
                frame = read_frame(self._child.stdout)
            except (ValueError, OSError) as problem:
                raise _unreadable(f"its parser answered nonsense, {problem}") from problem
        return frame or self._died()

    def _watched(self) -> AbstractContextManager[None]:
        return _watchdog().killing(self._child, self._limits.wall_seconds)

    def _died(self) -> Frame:
        code = self._child.wait()
        if -code in OUT_OF_TIME:
            raise _unreadable(f"reading it takes longer than {2 * self._limits.cpu_seconds:.0f} seconds")
        if code in (-signal.SIGKILL, -signal.SIGTERM, 0):
            raise Transient("the process that parses mails was ended: the mail is read again by a new one")
        raise _unreadable(f"its parser ended with {code}")

    def end(self) -> None:
        """Kill the child."""
        self._child.kill()
        for stream in (self._child.stdin, self._child.stdout):
            with suppress(OSError):  # what was still to be written is of no use
                if stream:
                    stream.close()
        self._child.wait()


def _unreadable(why: str) -> Unparseable:
    return Unparseable(f"this mail cannot be read ({why}): send it again in a simpler form, or as plain text")


def _with_header_of(raw: bytes, mail: ParsedMail) -> ParsedMail:
    """The sender is read here, outside of the parser: a mail that took over its parser cannot claim another sender."""
    return replace(
        outline(raw),
        text=mail.text,
        elided=mail.elided,
        command=mail.command,
        attachment_count=mail.attachment_count,
        refused_attachments=mail.refused_attachments,
    )


def _file(answer: dict[str, Any], data: bytes) -> ExtractedFile | RefusedAttachment:
    if "refused" in answer:
        refused = attachment_from_json(answer["refused"])
        assert isinstance(refused, RefusedAttachment)
        return refused
    kind, end = AttachmentKind(answer["kind"]), len(data) - answer["webp"]
    return ExtractedFile(answer["name"], answer["mediaType"], kind, data[:end], answer["sentAs"], data[end:])
