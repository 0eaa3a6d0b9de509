"""Objects in memory, with the rules of a bucket: single objects are whole, and everything has versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from webordinary.adapters.aws.site.deploy import Origin, StoredManifest, StoredObject, Upload


@dataclass(slots=True)
class MemoryObjects:
    """`objects` is what visitors see; `requests` what was asked of the store, in order.

    `others` are the stores that objects may be copied from.
    """

    objects: dict[str, tuple[bytes, Upload]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    name: str = "memory"
    others: dict[str, MemoryObjects] = field(default_factory=dict)
    versions: dict[tuple[str, str], bytes] = field(default_factory=dict)
    _manifests: list[bytes] = field(default_factory=list)

    def manifest(self) -> StoredManifest | None:
        self.requests.append(("manifest", ""))
        return StoredManifest(self._manifests[-1], str(len(self._manifests))) if self._manifests else None

    def recall(self, version: str) -> bytes:
        self.requests.append(("recall", version))
        return self._manifests[int(version) - 1]

    def swap_manifest(self, text: bytes, expected: str | None) -> str | None:
        self.requests.append(("swap", ""))
        if len(self._manifests) != int(expected or 0):
            return None
        self._manifests.append(text)
        return str(len(self._manifests))

    def put_all(self, uploads: Sequence[tuple[Upload, Origin]]) -> Mapping[str, str]:
        return {upload.path: self.put(upload, origin) for upload, origin in uploads}

    def put(self, upload: Upload, origin: Origin) -> str:
        """Write one of them."""
        self.requests.append(("put", upload.path))
        content = self._lying(origin, upload.path) if isinstance(origin, StoredObject) else origin.read_bytes()
        version = f"v{len(self.versions) + 1}"
        self.objects[upload.path], self.versions[upload.path, version] = (content, upload), content
        return version

    def delete(self, paths: Sequence[str]) -> None:
        self.requests.append(("delete", " ".join(paths)))
        for path in paths:
            self.objects.pop(path, None)

    def _lying(self, origin: StoredObject, path: str) -> bytes:
        store = self if origin.store == self.name else self.others[origin.store]
        return store.versions[path, origin.version]
