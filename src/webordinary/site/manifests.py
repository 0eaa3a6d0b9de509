"""Manifests: what a release holds, so that the next one shares, compares and uploads only what differs.

A release keeps its own in a hidden folder, which is never served and never part of a site.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FOLDER = ".webordinary"
SPARE = f"{FOLDER}/spare"
"""Where an outlived release may lie in a folder to build into, to be turned into the new one."""
_NAME = "manifest.json"
_VERSION = 1
_PUBLIC_DOT_NAMES = frozenset({".well-known"})


class Mark(NamedTuple):
    """One file of a site: SHA-256 and size of its bytes; `source` is the id of the tracked file it was copied from."""

    digest: str
    size: int
    source: str = ""


Manifest = Mapping[str, Mark]


def is_hidden(path: str) -> bool:
    """Names that begin with a dot are never part of a site, but for what the web itself agreed on."""
    return (path.startswith(".") and path.partition("/")[0] not in _PUBLIC_DOT_NAMES) or "/." in path


def manifest_text(manifest: Manifest) -> str:
    """As it is kept."""
    files = {path: manifest[path] for path in sorted(manifest)}
    return json.dumps({"version": _VERSION, "files": files}, separators=(",", ":"), ensure_ascii=False)


def read_manifest(text: str | bytes) -> dict[str, Mark]:
    """Read it back; one that is damaged or of another version counts as empty: then all is done anew."""
    try:
        record = json.loads(text)
        if record["version"] != _VERSION:
            return {}
        return {path: Mark._make(fields) for path, fields in record["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def manifest_of(release: Path | None) -> dict[str, Mark]:
    """A release's manifest; empty if there is no release or no manifest in it."""
    if release is None:
        return {}
    try:
        return read_manifest((release / FOLDER / _NAME).read_bytes())
    except OSError:
        return {}


def keep_manifest(folder: Path, manifest: Manifest) -> None:
    """Put the manifest into a release that is being made."""
    (folder / FOLDER).mkdir(exist_ok=True)
    (folder / FOLDER / _NAME).write_text(manifest_text(manifest), encoding="utf-8")


def changed_paths(before: Manifest, after: Manifest) -> tuple[str, ...]:
    """Files that are new or other than before, in order."""
    return tuple(sorted(path for path, mark in after.items() if _digest(before.get(path)) != mark.digest))


def _digest(mark: Mark | None) -> str:
    return mark.digest if mark else ""
