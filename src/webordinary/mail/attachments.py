"""Files that came with a mail: bounded, told by their bytes, named safely, or refused in words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from webordinary.mail.magic import sniff
from webordinary.mail.parts import Part, take_apart
from webordinary.mail.ports import AttachmentManifest, Blobs
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, Events
from webordinary.model.mail import Attachment, AttachmentKind, RefusedAttachment

MAX_ATTACHMENTS = 20
MAX_ATTACHMENT_BYTES = 25 * 1024 * 1024
MAX_NAME = 80
MAX_LISTED = 20

_UNSAFE = re.compile(r"[^\w.-]+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.I)


@dataclass(frozen=True, slots=True)
class ExtractedFile:
    """A file of the customer's, ready to be stored."""

    name: str
    media_type: str
    kind: AttachmentKind
    data: bytes


def accepted_count(files: Sequence[Part]) -> int:
    """How many files of a mail we look at."""
    return min(len(files), MAX_ATTACHMENTS)


def surplus(files: Sequence[Part]) -> tuple[RefusedAttachment, ...]:
    """The files beyond the bound, each with its reason."""
    reason = f"a mail may carry {MAX_ATTACHMENTS} files; send the others in a second mail"
    return tuple(RefusedAttachment(_shown(part.name), reason) for part in files[MAX_ATTACHMENTS:][:MAX_LISTED])


def extract(raw: bytes, position: int) -> ExtractedFile | RefusedAttachment:
    """The file at a position (from 0) of a mail; the same answer each time."""
    files = take_apart(raw).files[:MAX_ATTACHMENTS]
    if not 0 <= position < len(files):
        raise Permanent(f"this mail has {len(files)} files and none at position {position}")
    part = files[position]
    if len(part.data) > MAX_ATTACHMENT_BYTES:
        size, allowed = len(part.data) // 2**20, MAX_ATTACHMENT_BYTES // 2**20
        return RefusedAttachment(_shown(part.name), f"it has {size} MB and we take {allowed} MB; send it smaller")
    found = sniff(part.data, part.name)
    if isinstance(found, str):
        return RefusedAttachment(_shown(part.name), found)
    name = _unique_stem(files, position) + found.ending
    return ExtractedFile(name, found.media_type, found.kind, part.data)


def store_attachment(
    email_id: str, raw: bytes, position: int, blobs: Blobs, manifest: AttachmentManifest, events: Events
) -> Attachment | RefusedAttachment:
    """Extract one file, keep its bytes, then its line in the manifest; again is harmless."""
    found = extract(raw, position)
    if isinstance(found, RefusedAttachment):
        manifest.save(email_id, position, found)
        data = {"name": found.name, "reason": found.reason}
        events.emit(Event("AttachmentRefused", email_id=email_id, data=data))
        return found
    digest = blobs.put(found.data)
    stored = Attachment(found.name, found.media_type, found.kind, len(found.data), digest)
    manifest.save(email_id, position, stored)
    shown = {"name": stored.name, "media_type": stored.media_type, "size": stored.size}
    events.emit(Event("AttachmentStored", email_id=email_id, data=shown))
    return stored


def safe_stem(name: str, fallback: str) -> str:
    """A file name without folders, spaces, ending or surprises."""
    base = name.replace("\\", "/").rpartition("/")[2]
    plain = unicodedata.normalize("NFKD", base.rpartition(".")[0] or base).encode("ascii", "ignore").decode()
    stem = _UNSAFE.sub("-", plain).strip("-._")[:MAX_NAME].lower()
    return f"{fallback}-{stem}".rstrip("-") if not stem or _RESERVED.match(stem) else stem


def _unique_stem(files: Sequence[Part], position: int) -> str:
    """Two photos called image.png become image and image-2, whichever is extracted first."""
    taken: set[str] = set()
    stem = ""
    for part in files[: position + 1]:
        first = safe_stem(part.name, "file")
        numbered = (f"{first}-{number}" for number in range(2, MAX_ATTACHMENTS + 2))
        stem = next(name for name in (first, *numbered) if name not in taken)
        taken.add(stem)
    return stem


def _shown(name: str) -> str:
    return name[:MAX_NAME] or "a file without a name"
