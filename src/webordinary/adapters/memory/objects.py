"""Objects in memory, with the rules of a bucket: single objects are whole, and the manifest has versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webordinary.site.deploy_plan import StoredManifest, Upload


@dataclass(slots=True)
class MemoryObjects:
    """`objects` is what visitors see; `requests` what was asked of the store, in order."""

    objects: dict[str, tuple[bytes, Upload]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    _manifest: StoredManifest | None = None

    def manifest(self) -> StoredManifest | None:
        """See ObjectStore."""
        self.requests.append(("manifest", ""))
        return self._manifest

    def swap_manifest(self, text: bytes, expected: str | None) -> str | None:
        """See ObjectStore."""
        self.requests.append(("swap", ""))
        current = self._manifest.version if self._manifest else None
        if current != expected:
            return None
        self._manifest = StoredManifest(text, str(int(current or 0) + 1))
        return self._manifest.version

    def put(self, upload: Upload, file: Path) -> None:
        """See ObjectStore."""
        self.requests.append(("put", upload.path))
        self.objects[upload.path] = (file.read_bytes(), upload)

    def delete(self, paths: Sequence[str]) -> None:
        """See ObjectStore."""
        self.requests.append(("delete", " ".join(paths)))
        for path in paths:
            self.objects.pop(path, None)
