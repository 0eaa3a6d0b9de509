"""GitObjects: reads the objects of a repository from its files, as git keeps them, without a process of git.

It gives what it is sure of. Whatever is missing, too large or of another format it leaves to git: NotRead.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

MAX_OBJECT_BYTES = 4_000_000
"""Of a commit or a tree."""
_MOST_DELTAS, _MOST_PACKS = 100, 100
_MOST_COMMITS, _MOST_ENTRIES = 2_000, 20_000
"""Kept in memory of one repository: commits, and entries of trees. A full cache begins anew."""
_DEEPEST = 60
_OID = re.compile(r"[0-9a-f]{40}")
_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_BASE_BY_PLACE, _BASE_BY_NAME = 6, 7
_TREE_MODE = "40000"
_HEADER_BYTES = 64
_CHUNK = 65_536


class NotRead(Exception):
    """Git is to be asked."""


class Commit(NamedTuple):
    """What a commit says."""

    tree: str
    parents: tuple[str, ...]
    message: str


class TreeEntry(NamedTuple):
    """What a name stands for in a tree; the mode as git lists it."""

    mode: str
    oid: str


class GitObjects:
    """The objects of one repository, and of those that it borrows from. Content has one name for ever, so it is kept.

    Thread-safe.
    """

    def __init__(self, git_dir: Path) -> None:
        self._objects = git_dir / "objects"
        self._commits: dict[str, Commit] = {}
        self._trees: dict[str, Mapping[str, TreeEntry]] = {}
        self._entries = 0

    def has(self, oid: str) -> bool:
        """Whether the object is here; never from memory."""
        return any(_loose(folder, oid).is_file() or _packed(folder, oid) for folder in self._folders())

    def commit(self, oid: str) -> Commit:
        """A commit. Raises NotRead if it is in another encoding than UTF-8."""
        known = self._commits.get(oid)
        if known is None:
            content = self._read(oid, "commit")
            try:
                known = _commit(content)
            except ValueError as malformed:  # pushed under its right name, and yet none that git would make
                raise NotRead(oid) from malformed
            if len(self._commits) >= _MOST_COMMITS:
                self._commits.clear()
            self._commits[oid] = known
        return known

    def tree(self, oid: str) -> Mapping[str, TreeEntry]:
        """One folder, by name."""
        known = self._trees.get(oid)
        if known is None:
            content = self._read(oid, "tree")
            try:
                known = _tree(content)
            except ValueError as malformed:  # pushed under its right name, and yet none that git would make
                raise NotRead(oid) from malformed
            self._entries += len(known) + 1
            if self._entries > _MOST_ENTRIES:
                self._trees.clear()
                self._entries = len(known) + 1
            self._trees[oid] = known
        return known

    def blob(self, oid: str) -> bytes:
        """A small file, whole."""
        return self._read(oid, "blob")

    def size(self, oid: str) -> int:
        """The bytes of an object."""
        for folder in self._folders():
            if (kind_and_size := _loose_size(folder, oid)) is not None:
                return kind_and_size
            if place := _packed(folder, oid):
                return _packed_size(*place)
        raise NotRead(oid)

    def line(self, tip: str, excluded: str, most: int) -> Iterator[tuple[str, Commit]]:
        """The commits from a tip back, each with one parent, without `excluded` and what is before it; at most so many.

        Raises NotRead at a merge, and where the line does not come to `excluded`.
        """
        for _ in range(most):
            if tip == excluded:
                return
            commit = self.commit(tip)
            if len(commit.parents) > 1:
                raise NotRead(tip)
            yield tip, commit
            if not commit.parents:
                break
            tip = commit.parents[0]
        if excluded and tip != excluded:
            raise NotRead(excluded)

    def files(self, tree: str, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, TreeEntry]]:
        """All files below a tree."""
        return ((name, entry) for name, _, entry in self.differing("", tree, prefix, depth) if entry)

    def differing(
        self, old: str, new: str, prefix: str = "", depth: int = 0
    ) -> Iterator[tuple[str, TreeEntry | None, TreeEntry | None]]:
        """The files in which two trees differ, each as it was and as it is; an empty tree is named by an empty text."""
        if depth > _DEEPEST:
            raise NotRead(new)
        was, now = self.tree(old) if old else {}, self.tree(new) if new else {}
        for name in dict.fromkeys((*was, *now)):
            before, after = was.get(name), now.get(name)
            if before == after:
                continue
            above, below = _folder(before), _folder(after)
            if above or below:
                yield from self.differing(above, below, f"{prefix}{name}/", depth + 1)
            if (before and not above) or (after and not below):
                yield prefix + name, None if above else before, None if below else after

    def _read(self, oid: str, kind: str) -> bytes:
        found, content = self._read_any(oid, _MOST_DELTAS)
        if found != kind or _id_of(found, content)[0] != oid:
            raise NotRead(oid)
        return content

    def _read_any(self, oid: str, most_deltas: int) -> tuple[str, bytes]:
        for folder in self._folders():
            if (found := _read_loose(folder, oid)) is not None:
                return found
            if place := _packed(folder, oid):
                return self._read_packed(*place, most_deltas)
        raise NotRead(oid)

    def _read_packed(self, pack: Path, at: int, most_deltas: int) -> tuple[str, bytes]:
        try:
            with pack.open("rb") as file:
                kind, size, begins, base = _packed_header(file.fileno(), at)
                content = _inflated(file.fileno(), begins, size)
            if kind in _KINDS:
                return _KINDS[kind], content
            if not most_deltas:
                raise NotRead(pack.name)
            if isinstance(base, str):
                found, before = self._read_any(base, most_deltas - 1)
            else:
                found, before = self._read_packed(pack, base, most_deltas - 1)
            return found, _patched(before, content)
        except (FileNotFoundError, zlib.error, IndexError) as broken:
            raise NotRead(pack.name) from broken

    def _folders(self) -> Iterator[Path]:
        yield self._objects
        try:
            borrowed = (self._objects / "info" / "alternates").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return
        yield from (Path(line) for line in borrowed if line.startswith("/"))


@lru_cache(maxsize=64)
def store_of(git_dir: Path) -> GitObjects:
    """The store of a repository, with what it has read before."""
    return GitObjects(git_dir)


def write_object(git_dir: Path, kind: str, content: bytes) -> str:
    """Store an object as git itself would, unsynced, and return its id; a second time costs nothing."""
    oid, stored = _id_of(kind, content)
    path = _loose(git_dir / "objects", oid)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"tmp_obj_{secrets.token_hex(6)}")
        draft.write_bytes(zlib.compress(stored, 1))
        draft.rename(path)
    return oid


def _id_of(kind: str, content: bytes) -> tuple[str, bytes]:
    """The name of an object, and what is stored under it."""
    stored = b"%s %d\0" % (kind.encode(), len(content)) + content
    return hashlib.sha1(stored, usedforsecurity=False).hexdigest(), stored


def _folder(entry: TreeEntry | None) -> str:
    return entry.oid if entry and entry.mode == _TREE_MODE else ""


def _commit(content: bytes) -> Commit:
    head, _, message = content.partition(b"\n\n")
    lines = [line.partition(b" ") for line in head.split(b"\n")]
    if any(name == b"encoding" for name, _, _ in lines) or lines[0][0] != b"tree":
        raise NotRead("commit")
    parents = tuple(value.decode("ascii") for name, _, value in lines if name == b"parent")
    text = message.partition(b"\0")[0].decode("utf-8", "surrogateescape")
    return Commit(lines[0][2].decode("ascii"), parents, text)


def _tree(content: bytes) -> Mapping[str, TreeEntry]:
    entries, at = {}, 0
    while at < len(content):
        end = content.index(b"\0", at)
        mode, _, name = content[at:end].partition(b" ")
        at = end + 21
        entries[name.decode("utf-8", "surrogateescape")] = TreeEntry(mode.decode("ascii"), content[end + 1 : at].hex())
    return entries


def _loose(folder: Path, oid: str) -> Path:
    if not _OID.fullmatch(oid):
        raise NotRead(oid)
    return folder / oid[:2] / oid[2:]


def _read_loose(folder: Path, oid: str) -> tuple[str, bytes] | None:
    try:
        with _loose(folder, oid).open("rb") as file:
            packed = file.read(MAX_OBJECT_BYTES)
    except FileNotFoundError:
        return None
    try:
        stored = zlib.decompressobj().decompress(packed, MAX_OBJECT_BYTES)
        header, _, content = stored.partition(b"\0")
        kind, _, size = header.partition(b" ")
        if int(size) != len(content):
            raise NotRead(oid)
    except (zlib.error, ValueError) as broken:
        raise NotRead(oid) from broken
    return kind.decode("ascii", "replace"), content


def _loose_size(folder: Path, oid: str) -> int | None:
    try:
        with _loose(folder, oid).open("rb") as file:
            header = zlib.decompressobj().decompress(file.read(_HEADER_BYTES * 2), _HEADER_BYTES)
        return int(header.partition(b"\0")[0].partition(b" ")[2])
    except FileNotFoundError:
        return None
    except (zlib.error, ValueError) as broken:
        raise NotRead(oid) from broken


def _packed(folder: Path, oid: str) -> tuple[Path, int] | None:
    """The pack that holds an object, and where in it."""
    if not _OID.fullmatch(oid):
        raise NotRead(oid)
    name = bytes.fromhex(oid)
    packs = sorted((folder / "pack").glob("*.idx"))
    if len(packs) > _MOST_PACKS:
        raise NotRead(oid)
    for index in packs:
        try:
            with index.open("rb") as file:
                at = _place_in_index(file.fileno(), name)
        except FileNotFoundError:  # packed anew meanwhile
            continue
        if at is not None:
            return index.with_suffix(".pack"), at
    return None


def _place_in_index(file: int, name: bytes) -> int | None:
    """Of version 2: a header, the counts by first byte, names, checksums, and places of 4 or 8 bytes."""
    if os.pread(file, 8, 0) != b"\xfftOc\0\0\0\2":
        raise NotRead(name.hex())
    low = _number(file, 8 + 4 * (name[0] - 1)) if name[0] else 0
    high, count = _number(file, 8 + 4 * name[0]), _number(file, 8 + 4 * 255)
    names = os.pread(file, 20 * (high - low), 1032 + 20 * low)
    found = next((at for at in range(high - low) if names[20 * at : 20 * at + 20] == name), None)
    if found is None:
        return None
    place = _number(file, 1032 + 24 * count + 4 * (low + found))
    if place < 0x8000_0000:
        return place
    at = 1032 + 28 * count + 8 * (place - 0x8000_0000)
    return int.from_bytes(os.pread(file, 8, at), "big")


def _number(file: int, at: int) -> int:
    return int.from_bytes(os.pread(file, 4, at), "big")


def _packed_size(pack: Path, at: int) -> int:
    try:
        with pack.open("rb") as file:
            kind, size, begins, _ = _packed_header(file.fileno(), at)
            if kind in _KINDS:
                return size
            header = zlib.decompressobj().decompress(os.pread(file.fileno(), _HEADER_BYTES * 2, begins), _HEADER_BYTES)
            return _varint(header, _varint(header, 0)[1])[0]  # of the base, then of the result
    except (FileNotFoundError, zlib.error, IndexError) as broken:
        raise NotRead(pack.name) from broken


def _packed_header(file: int, at: int) -> tuple[int, int, int, int | str]:
    """Kind, size, where the content begins, and the base of a delta: its place in this pack, or its name."""
    head = os.pread(file, 64, at)
    kind, size, used = head[0] >> 4 & 7, head[0] & 15, 1
    while head[used - 1] & 128:
        size |= (head[used] & 127) << (7 * used - 3)
        used += 1
    if kind in _KINDS:
        return kind, size, at + used, 0
    if kind == _BASE_BY_NAME:
        return kind, size, at + used + 20, head[used : used + 20].hex()
    if kind != _BASE_BY_PLACE:
        raise NotRead(str(kind))
    back = head[used] & 127
    while head[used] & 128:
        used += 1
        back = ((back + 1) << 7) | (head[used] & 127)
    return kind, size, at + used + 1, at - back


def _inflated(file: int, at: int, size: int) -> bytes:
    if size > MAX_OBJECT_BYTES:
        raise NotRead(str(size))
    inflater, content = zlib.decompressobj(), b""
    while len(content) < size:
        chunk = os.pread(file, _CHUNK, at)
        if not chunk or inflater.eof:
            raise NotRead(str(at))
        at += len(chunk)
        content += inflater.decompress(chunk, size - len(content))
    return content


def _patched(base: bytes, delta: bytes) -> bytes:
    """A base with a delta: pieces of the base, and new bytes."""
    size, at = _varint(delta, 0)
    result_size, at = _varint(delta, at)
    if size != len(base) or result_size > MAX_OBJECT_BYTES:
        raise NotRead("delta")
    pieces, length_so_far = [], 0
    while at < len(delta) and length_so_far <= result_size:
        command = delta[at]
        at += 1
        if not command & 128:
            pieces.append(delta[at : at + command])
            at += command
            length_so_far += command
            continue
        start = length = 0
        for bit in range(7):
            if command >> bit & 1:
                if bit < 4:  #  four bytes of a place, three of a length
                    start |= delta[at] << 8 * bit
                else:
                    length |= delta[at] << 8 * (bit - 4)
                at += 1
        length = length or 0x10000
        pieces.append(base[start : start + length])
        length_so_far += length
    return b"".join(pieces)


def _varint(content: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        number |= (content[at] & 127) << shift
        shift += 7
        at += 1
        if not content[at - 1] & 128:
            return number, at
