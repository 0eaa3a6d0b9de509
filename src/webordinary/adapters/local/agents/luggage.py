"""The customer's files, laid out for an agent under names that it can use."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from webordinary.site.task import AttachedFile

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_IMAGE_BYTES = 3_700_000  # the model takes 5 MB, after base64 has made it a third more
_MOST_IMAGES = 10
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Packed:
    """One file in the agent's luggage."""

    name: str
    path: Path
    media_type: str
    size: int

    @property
    def image(self) -> bool:
        """Whether the model can be shown it as it is."""
        return self.media_type in _IMAGES and self.size <= _IMAGE_BYTES

    def base64(self) -> str:
        """Its content as text."""
        return base64.b64encode(self.path.read_bytes()).decode()


def pack(files: tuple[AttachedFile, ...], folder: Path) -> tuple[Packed, ...]:
    """Copy them into a new folder; no two have the same name."""
    folder.mkdir()
    packed: dict[str, Packed] = {}
    for file in files:
        name = next(name for name in _names(file.attachment.name) if name not in packed)
        shutil.copyfile(file.path, folder / name)
        size = (folder / name).stat().st_size
        packed[name] = Packed(name, folder / name, file.attachment.media_type, size)
    return tuple(packed.values())


def shown(luggage: tuple[Packed, ...]) -> tuple[Packed, ...]:
    """Those that the model is shown with the instruction."""
    return tuple(file for file in luggage if file.image)[:_MOST_IMAGES]


def _names(asked: str) -> Iterator[str]:
    plain = _ODD.sub("-", Path(asked.replace("\\", "/")).name).strip("-.")[-80:] or "file"
    yield plain
    stem, dot, ending = plain.rpartition(".")
    for number in range(2, 10_000):
        yield f"{stem}-{number}{dot}{ending}" if stem else f"{plain}-{number}"
