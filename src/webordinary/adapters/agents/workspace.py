"""Access to the files of one folder. No symbolic link is followed, so that no path leads out of it."""

from __future__ import annotations

import base64
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from webordinary.adapters.dot_git import is_dot_git
from webordinary.jobs.ports import AgentResult, AgentTask, Answered, Asked, AttachedFile, Changed, ignore_progress

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_IMAGE_BYTES = 3_700_000  # the model takes 5 MB, after base64 has made it a third more
_MOST_IMAGES = 10
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """One attachment as the agent sees it."""

    name: str
    path: Path
    media_type: str
    size: int
    sent_as: str = ""
    webp: Path | None = None

    @property
    def image(self) -> bool:
        """Whether the model accepts the file as an image."""
        return self.media_type in _IMAGES and self.size <= _IMAGE_BYTES

    def base64(self) -> str:
        """The content in base64."""
        return base64.b64encode(self.path.read_bytes()).decode()


def prepare_files(files: tuple[AttachedFile, ...], folder: Path) -> tuple[PreparedFile, ...]:
    """Copy them into a new folder, each with its WebP copy; no two have the same name."""
    folder.mkdir()
    prepared = []
    for file in files:
        path = _copied(file.path, file.attachment.name, folder)
        webp = _copied(file.webp, f"{path.stem}.webp", folder) if file.webp else None
        sent_as = file.attachment.sent_as
        prepared.append(PreparedFile(path.name, path, file.attachment.media_type, path.stat().st_size, sent_as, webp))
    return tuple(prepared)


def _copied(source: Path, name: str, folder: Path) -> Path:
    target = next(folder / free for free in _names(name) if not (folder / free).exists())
    shutil.copyfile(source, target)
    return target


def shown(attachments: tuple[PreparedFile, ...]) -> tuple[PreparedFile, ...]:
    """Those that the model is shown with the instruction."""
    return tuple(file for file in attachments if file.image)[:_MOST_IMAGES]


def _names(asked: str) -> Iterator[str]:
    plain = _ODD.sub("-", Path(asked.replace("\\", "/")).name).strip("-.")[-80:] or "file"
    yield plain
    stem, dot, ending = plain.rpartition(".")
    for number in range(2, 10_000):
        yield f"{stem}-{number}{dot}{ending}" if stem else f"{plain}-{number}"


MOST_BYTES = 20_000_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
HIDDEN = frozenset({".claude", ".mcp.json"})
"""What an agent may not write through us, at the top of the folder: it would speak to programs, not to visitors.
A `.git` is no file of the site at any depth."""


class Outside(ValueError):
    """A path outside the folder."""


def inside(root: Path, path: str) -> PurePosixPath:
    """The path below `root`, given as absolute or relative; raises Outside."""
    asked = PurePosixPath(path)
    for base in (PurePosixPath(root), PurePosixPath(root.resolve())):
        if asked.is_absolute() and asked.is_relative_to(base):
            asked = asked.relative_to(base)
    parts = asked.parts
    hidden = parts[:1] and (parts[0] in HIDDEN or any(map(is_dot_git, parts)))
    if asked.is_absolute() or not parts or ".." in parts or "\0" in path or hidden:
        raise Outside(f"{path[:200]} is not a file of this site")
    return asked


def read(root: Path, path: str) -> bytes:
    """A plain file's content; raises Outside or OSError."""
    below = inside(root, path)
    with _parent(root, below, make=False) as folder:
        number = os.open(below.name, os.O_RDONLY | _FILE, dir_fd=folder)
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise Outside(f"{path[:200]} is not a plain file")
            content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Outside(f"{path[:200]} has more than {MOST_BYTES:,} bytes")
    return content


def write(root: Path, path: str, content: bytes) -> None:
    """Make or replace a plain file, with the folders that it needs; raises Outside or OSError."""
    below = inside(root, path)
    if len(content) > MOST_BYTES:
        raise Outside(f"{path[:200]} would have more than {MOST_BYTES:,} bytes")
    with _parent(root, below, make=True) as folder:
        number = os.open(below.name, os.O_WRONLY | os.O_CREAT | _FILE, 0o644, dir_fd=folder)
        with os.fdopen(number, "wb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise Outside(f"{path[:200]} is not a plain file")
            file.truncate()
            file.write(content)


@contextmanager
def _parent(root: Path, below: PurePosixPath, make: bool) -> Iterator[int]:
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in below.parts[:-1]:
            folder = _step(folder, part, make)
        yield folder
    finally:
        os.close(folder)


def _step(folder: int, part: str, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(part, 0o755, dir_fd=folder)
    below = os.open(part, _FOLDER, dir_fd=folder)
    os.close(folder)
    return below


MOST_FILES = 300_000
Footprint = frozenset[tuple[str, int, int, int]]


def tree_snapshot(folder: Path) -> Footprint:
    """Names, sizes, kinds and times of all below it, but for `.git`."""
    seen: set[tuple[str, int, int, int]] = set()
    unread = [str(folder)]
    while unread and len(seen) <= MOST_FILES:
        with os.scandir(unread.pop()) as entries:
            for entry in entries:
                if entry.name == ".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    unread.append(entry.path)
                    continue
                status = entry.stat(follow_symlinks=False)
                seen.add((entry.path, status.st_size, status.st_mode, status.st_mtime_ns))
    return frozenset(seen)


_USE_OF_COPIES = (
    "Where a page in plain HTML shows such a photo, put its WebP copy beside it and write "
    '<picture style="display:contents"><source type="image/webp" srcset="…"><img …></picture>. '
    "Markdown, and a site generator that prepares pictures itself, need no copy."
)


def prompt_text(task: AgentTask, attachments: tuple[PreparedFile, ...]) -> str:
    """The prompt as one text."""
    lines = [_line_of(file) for file in attachments]
    subject = f"Subject: {task.subject}\n\n" if task.subject else ""
    listing = (
        subject
        + task.words
        + _dated(task)
        + ("\n\nFiles that came with this mail:\n" + "\n".join(lines) if lines else "")
    )
    return listing + ("\n\n" + _USE_OF_COPIES if any(file.webp for file in attachments) else "")


def _line_of(file: PreparedFile) -> str:
    sent_as = f"sent as {json.dumps(file.sent_as, ensure_ascii=False)}, " if file.sent_as not in ("", file.name) else ""
    copy = f"; as WebP, {file.webp.stat().st_size:,} bytes: {file.webp}" if file.webp else ""
    return f"- {file.name} ({sent_as}{file.media_type}, {file.size:,} bytes): {file.path}{copy}"


def _dated(task: AgentTask) -> str:
    if task.now is None:
        return ""
    date = f"\n\nIt is {task.now:%A, %Y-%m-%d %H:%M} ({task.now.tzinfo}) where this site is."
    due = " This is the date that the owner named for this wish: do it now, and do not end with `later`."
    return date + (due if task.is_due else "")


MOST_DOLLARS = 100_000
"""Of all runs of an agent in one conversation; as much as a day of a site may cost at most."""


def dollars(amount: object, tell: Callable[[str], None] = ignore_progress) -> float:
    """What an agent says that it cost. The work is done: a bill that makes no sense is no reason to do it again."""
    try:
        cost = float(amount) if isinstance(amount, int | float | str) and not isinstance(amount, bool) else math.nan
    except (ValueError, OverflowError):
        cost = math.nan
    if 0 <= cost <= MOST_DOLLARS:
        return cost
    tell(f"what the agent says that it cost is no amount of money, and counts as 0: {str(amount)[:80]!r}")
    return 0.0


MOST_CHARACTERS = 20_000
_DATE_CHARACTERS = 40
NO_WORDS = "Done as you asked."


def result_of(
    outcome: str,
    message: str,
    *,
    differs: bool,
    went_on: bool,
    session: str = "",
    cost_usd: float = 0.0,
    at: str = "",
) -> AgentResult:
    """`outcome` is `changed`, `answered`, `question`, `publish`, `undo`, `later`, `until` or nothing.

    `went_on` is true when work of an earlier run is there too.

    A question outweighs half an edit, which is put back. Else nothing that was done is dropped, whatever the outcome.
    """
    words = message.strip()[:MOST_CHARACTERS] or NO_WORDS
    then = outcome if outcome in ("publish", "undo", "later", "until") else ""
    if outcome == "question":
        return Asked(words, session, cost_usd)
    if outcome == "changed" or differs or (went_on and not outcome):
        return Changed(words, session, cost_usd, then=then, at=at[:_DATE_CHARACTERS])
    return Answered(words, session, cost_usd, then=then, at=at[:_DATE_CHARACTERS])
