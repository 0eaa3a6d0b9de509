"""The child process that parses mails: one at a time, each within its limits. Started by `parser.ProcessParser`.

Requests and answers are frames of JSON and bytes on standard input and output. The limits are the kernel's: beyond the
processor time of a mail it ends this process, beyond the memory it fails an allocation. The process ends with its
standard input, so it never outlives its parent by more than one mail. Each photo is prepared in a process of its own
with limits of its own: a photo beyond them is refused, and the other files still come.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

from webordinary.adapters.records import attachment_to_json, mail_to_json
from webordinary.mail.parsing.attachments import FileType, extract
from webordinary.mail.parsing.message import parse
from webordinary.mail.ports import Unparseable
from webordinary.model.mail import RefusedAttachment

HEAD = struct.Struct(">IQ")
MAX_JSON = 16 * 1024 * 1024
MAX_DATA = 64 * 1024 * 1024
OUT_OF_TIME = (signal.SIGPROF, signal.SIGXCPU)
_PHOTO_WALL_SECONDS = 90
"""Longer than the parent waits for an answer: a photo on an overloaded machine is tried again, not refused."""
_TOO_MUCH_MEMORY = "reading this mail takes more memory than a mail may take: send it again in a simpler form"
_TOO_LONG = "preparing this picture takes longer than a picture may take; send it smaller or as JPEG"

Frame = tuple[dict[str, Any], bytes]


def read_frame(source: IO[bytes]) -> Frame | None:
    """The next frame; None at the end, also in the middle of a frame. Raises ValueError for anything else."""
    head = source.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    json_size, data_size = HEAD.unpack(head)
    if json_size > MAX_JSON or data_size > MAX_DATA:
        raise ValueError(f"a frame of {json_size} and {data_size} bytes")
    text, data = source.read(json_size), source.read(data_size)
    if len(text) < json_size or len(data) < data_size:
        return None
    return json.loads(text), data


def write_frame(target: IO[bytes], said: dict[str, Any], data: bytes = b"") -> None:
    """Write a frame and let it go."""
    text = json.dumps(said).encode()
    target.write(HEAD.pack(len(text), len(data)) + text)
    target.write(data)
    target.flush()


def main(cpu_seconds: float, memory_bytes: int, niceness: int, photo_seconds: float, photo_bytes: int) -> None:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    source = sys.stdin.buffer
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    os.nice(niceness)
    _limit_memory(memory_bytes, photo_bytes)
    apart = partial(_done_apart, photo_seconds, photo_bytes)
    while frame := read_frame(source):
        _limit_cpu(cpu_seconds)
        try:
            _answer(frame, target, apart)
        except Unparseable as problem:
            write_frame(target, {"unparseable": str(problem)})
        except MemoryError:
            write_frame(target, {"unparseable": _TOO_MUCH_MEMORY, "ends": True})
            return  # what else the failed allocation left undone is unknown
        signal.setitimer(signal.ITIMER_PROF, 0)
        del frame


def _answer(frame: Frame, target: IO[bytes], apart: Callable[[str, bytes, FileType], bytes | str]) -> None:
    said, raw = frame
    if said["request"] == "returned":
        from webordinary.mail.bounces import read_returned  # noqa: PLC0415 - few mails are reports

        returned = read_returned(raw)
        write_frame(target, {"returned": asdict(returned) if returned else None, "end": True})
        return
    if said["request"] == "dkim":
        write_frame(target, {"verified": _verified(raw, said["keys"]), "end": True})
        return
    if said["request"] == "parse":
        write_frame(target, {"mail": mail_to_json(parse(raw))})
        return
    for file in extract(raw, partial(apart, "prepared"), partial(apart, "webp_copy")):
        if isinstance(file, RefusedAttachment):
            write_frame(target, {"refused": attachment_to_json(file)})
        else:
            told = {"name": file.name, "mediaType": file.media_type, "kind": file.kind, "sentAs": file.sent_as}
            write_frame(target, told | {"webp": len(file.webp)}, file.data + file.webp)
    write_frame(target, {"end": True})


def _done_apart(seconds: float, memory_bytes: int, work: str, data: bytes, found: FileType) -> bytes | str:
    """See `photos.prepared` and `webp_copy`. What a photo does to its process, no other file notices.

    The copy has a process of its own: a photo for which it takes too long still comes.
    """
    from webordinary.mail.parsing import photos  # noqa: PLC0415 - few mails carry photos

    source, target = os.pipe()
    child = os.fork()
    if not child:
        _do_and_exit(seconds, memory_bytes, work, data, found, target)
    os.close(target)
    answer = None
    with os.fdopen(source, "rb") as answers, suppress(ValueError):
        answer = read_frame(answers)
    _, status = os.waitpid(child, 0)
    if answer is None:
        is_late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in OUT_OF_TIME
        return _TOO_LONG if is_late else photos.UNREADABLE
    said, picture = answer
    return str(said["refused"]) if "refused" in said else picture


def _do_and_exit(seconds: float, memory_bytes: int, work: str, data: bytes, found: FileType, target: int) -> NoReturn:
    from webordinary.mail.parsing import photos  # noqa: PLC0415 - see above

    try:
        os.closerange(0, target)  # a photo that takes over this process has no way to the parent
        _limit_memory(memory_bytes)
        _limit_cpu(seconds)
        signal.alarm(_PHOTO_WALL_SECONDS)
        made = {"prepared": photos.prepared, "webp_copy": photos.webp_copy}[work](data, found)
        with os.fdopen(target, "wb") as answers:
            if isinstance(made, str):
                write_frame(answers, {"refused": made})
            else:
                write_frame(answers, {}, made)
    finally:
        os._exit(0)  # also after an error, which must not go on in the caller's place


def _verified(raw: bytes, keys: dict[str, str]) -> list[int]:
    """The places of the valid signatures. Another error of the library ends this process, which proves nothing."""
    import dkim  # noqa: PLC0415 - only the processes that verify signatures need it

    def is_valid(place: int, record: bytes) -> bool:
        try:
            return bool(mail.verify(place, dnsfunc=lambda _, timeout=0: record))
        except (dkim.DKIMException, ValueError, LookupError, TypeError):
            return False

    try:
        mail = dkim.DKIM(raw, logger=logging.getLogger("unheard"))
    except (dkim.DKIMException, LookupError):
        return []
    return [int(place) for place, record in keys.items() if is_valid(int(place), record.encode("latin-1"))]


def _limit_memory(memory_bytes: int, raisable_by: int = 0) -> None:
    """What this process has now, and so much more: the bound is on what a mail takes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = Path("/proc/self/statm")
    if pages.exists():
        taken = int(pages.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory_bytes, taken + memory_bytes + raisable_by))


def _limit_cpu(seconds: float) -> None:
    """The timer is exact; RLIMIT_CPU counts whole seconds, and holds whatever a library does to the timer."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds) + 1, hard))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
