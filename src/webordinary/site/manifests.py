"""Manifests: what a release holds, so that the next one shares, compares and uploads only what differs.

A release keeps its own in a hidden folder, which is never served and never part of a site.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from webordinary.model.text import is_text

FOLDER = ".webordinary"
SPARE = f"{FOLDER}/spare"
"""Where an outlived release may lie in a folder to build into, to be turned into the new one."""
_NAME = "manifest.json"
_VERSION = 1
_PUBLIC_DOT_NAMES = frozenset({".well-known"})


class Mark(NamedTuple):
    """One file of a site: SHA-256 and size of its bytes; `source` is the id of the tracked file it was copied from.

    `version` names it in an object store that keeps what is replaced; `foreign` text is no UTF-8.
    """

    digest: str
    size: int
    source: str = ""
    version: str = ""
    foreign: bool = False


Manifest = Mapping[str, Mark]


def is_hidden(path: str) -> bool:
    """Names that begin with a dot are never part of a site, but for what the web itself agreed on.

    Nor are names that are no UTF-8: no address leads to them.
    """
    hidden = path.startswith(".") and path.partition("/")[0] not in _PUBLIC_DOT_NAMES
    return hidden or "/." in path or not is_text(path)


def manifest_text(manifest: Manifest) -> str:
    """As it is kept."""
    return json.dumps(manifest_record(manifest), separators=(",", ":"), ensure_ascii=False)


def manifest_record(manifest: Manifest) -> dict[str, object]:
    """As a part of something larger."""
    return {"version": _VERSION, "files": {path: _kept(manifest[path]) for path in sorted(manifest)}}


def read_manifest(text: str | bytes) -> dict[str, Mark]:
    """Read it back; one that is damaged or of another version counts as empty: then all is done anew."""
    try:
        return files_of(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def files_of(record: Mapping[str, Any]) -> dict[str, Mark]:
    """The files in a manifest's record; none if it is of another version. A damaged one is for the caller to catch."""
    if record["version"] != _VERSION:
        return {}
    known = len(Mark._fields)
    return {path: Mark(*fields[:known]) for path, fields in record["files"].items()}


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


def _kept(mark: Mark) -> tuple[object, ...]:
    """Without the flag where it is not set: during a deployment workers read it that do not know the flag yet."""
    return mark if mark.foreign else mark[:-1]


def _digest(mark: Mark | None) -> str:
    return mark.digest if mark else ""
