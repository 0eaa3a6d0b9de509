"""Draft: a site's files with edits kept in memory until all of a mail's wishes can be met; then written, or dropped."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from webordinary.adapters.agents.builtin.html import Html, parse_page
from webordinary.adapters.agents.builtin.markdown import parse_markdown
from webordinary.adapters.agents.builtin.page import Page, Patch, front_matter, patched
from webordinary.jobs.site_files import site_root
from webordinary.model.claims import CancelToken
from webordinary.model.errors import Permanent

MAX_PAGE_BYTES, MAX_FILES, MAX_SEEN, _MAX_CONFIG_BYTES = 2_000_000, 2_000, 50_000, 200_000
PARSES_PER_CHECK = 8
_LEFT_ALONE = frozenset(("node_modules", "__pycache__", "vendor", "themes"))
_HTML, _MARKDOWN = (".html", ".htm"), (".md", ".markdown")
_SOURCES = (*_MARKDOWN, ".html")
_PICTURE_FOLDERS = ("images", "img", "assets/images", "assets/img", "photos", "media")
_UTF8, _OTHER = "utf-8", "cp1252"
_BESIDE_IMAGE = re.compile(r"[>+~]\s{0,9}img\b(?=[^<>{}]{0,200}\{)|\bimg\b[^\s<>{},]{0,50}:(?:first|last|nth|only)-")
"""A selector that a `<picture>` around the photo would take out of force."""
_BYTE = re.compile("[\udc80-\udcff]")
_DECLARED = re.compile(r"<(?:meta\b|\?xml\b)[^>]{1,300}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to keep a site; folders are relative to `root`, and `.` is all of it."""

    kind: str
    root: Path
    pages: tuple[str, ...] = (".",)
    suffixes: tuple[str, ...] = _HTML
    styles: tuple[str, ...] = (".",)
    pictures: str = "images"
    base: str = ""
    """How pages begin the address of a file, where it does not depend on the page."""

    def address(self, file: str, page: str) -> str:
        """How a page names a file of the site."""
        if self.base:
            return self.base + posixpath.relpath(file, self.pictures.split("/", maxsplit=1)[0])
        return posixpath.relpath(file, posixpath.dirname(page) or ".")

    def slug(self, page: str) -> str:
        """A page's name among the pages, with folders and without its ending; empty for the home page."""
        path = PurePosixPath(page)
        folder = next((folder for folder in self.pages if path.is_relative_to(folder)), ".")
        path = path.relative_to(folder).with_suffix("")
        index = path.name in ("index", "_index") or (self.kind == "mkdocs" and path.name == "README")
        return str(path.parent if index else path).removeprefix(".")


def layout_of(root: Path) -> Layout:
    """How this site is kept; by the first generator whose settings are there, else as plain pages."""
    if (config := _settings(root, "astro.config", "mjs js ts mts cjs")) is not None or (root / "src/pages").is_dir():
        base = re.search(r"""^[ \t]*base\s*:\s*["']/?([\w./-]*?)/?["']""", config or "", re.M)
        address = f"/{base[1]}/" if base else "/"
        return Layout(
            "astro", root, ("src/pages", "src/content"), _SOURCES, ("src", "public"), "public/images", address
        )
    hugo = any(_settings(root, name, "toml yaml yml json") is not None for name in ("hugo", "config"))
    if (root / "content").is_dir() and (hugo or (root / "config/_default").is_dir()):
        return Layout("hugo", root, ("content",), _SOURCES, ("static", "assets"), "static/images", "/")
    if (config := _settings(root, "mkdocs", "yml yaml")) is not None:
        named = re.search(r"^docs_dir:[ \t]*[\"']?([\w./-]+)", config, re.M)
        docs = posixpath.normpath(named[1]) if named else "docs"
        docs = "docs" if docs.startswith(("/", "..")) else docs
        return Layout("mkdocs", root, (docs,), _SOURCES, (docs,), f"{docs}/images")
    names = [path.relative_to(root).as_posix() for path in (*root.glob("*.html"), *root.glob("*/index.html"))]
    root /= site_root(names) or ""
    return Layout("plain", root, pictures=next((one for one in _PICTURE_FOLDERS if (root / one).is_dir()), "images"))


def _settings(folder: Path, name: str, suffixes: str) -> str | None:
    """The text of the settings of a generator, empty if they are elsewhere; None without any."""
    for path in (folder / f"{name}.{suffix}" for suffix in suffixes.split()):
        if path.is_file():
            with path.open("rb") as file:
                return "" if path.is_symlink() else file.read(_MAX_CONFIG_BYTES).decode("utf-8", "replace")
    return None


def _walk(root: Path, folders: tuple[str, ...]) -> Iterator[str]:
    seen = 0
    for folder in folders:
        for here, below, files in os.walk(root / folder) if not (root / folder).is_symlink() else ():
            below[:] = sorted(name for name in below if name not in _LEFT_ALONE and not name.startswith("."))
            for path in (Path(here) / file for file in sorted(files)):
                seen += 1
                if seen > MAX_SEEN:
                    return
                if not path.name.startswith(".") and path.is_file() and not path.is_symlink():
                    yield path.relative_to(root).as_posix()


def read_page(name: str, source: str, references: bool = False) -> Page:
    """A page of any kind; with `references`, new words are written as character references."""
    if name.endswith(_MARKDOWN):
        return parse_markdown(source)
    return parse_page(source, Html(references), front_matter(source)[0])


def _charset(name: str, text: str) -> str:
    """The charset that a page says it has; a generator reads UTF-8 alone."""
    if not name.endswith(_HTML) or text.startswith(("\ufeff", "---", "+++")):
        return _UTF8
    declared = _DECLARED.search(text[:1_024])
    return declared[1].lower() if declared else ""


class Draft:
    """A site's pages as they will be. File names are relative to the site's root."""

    def __init__(self, workspace: Path, token: CancelToken) -> None:
        self._token = token
        self.layout: Layout = layout_of(workspace)
        self._root = self.layout.root
        self._real_root = self._root.resolve()
        self._read: dict[str, tuple[str, str]] = {}
        """The text and the charset of each file that was looked at."""
        self._texts: dict[str, str] = {}
        self._parsed: dict[str, Page] = {}
        self._parses = 0
        self._copies: dict[str, Path] = {}
        self._removed: set[str] = set()
        self._listed: dict[tuple[str, ...], list[str]] = {}

    def pages(self) -> list[str]:
        """The pages of the site, the home page first."""
        found = self._files(self.layout.pages, self.layout.suffixes)
        return sorted(found, key=lambda name: (self.layout.slug(name) != "", name))

    def styles(self) -> list[str]:
        """The style sheets."""
        return self._files(self.layout.styles, (".css",))

    def page(self, name: str) -> Page:
        """A page as it will be. Parsing is what takes time, so a job that must end does so after a few pages."""
        text = self.text(name)
        if name not in self._parsed or self._parsed[name].source != text:
            self._parses += 1
            if self._parses % PARSES_PER_CHECK == 1:
                self._token.check()
            self._parsed[name] = read_page(name, text, references=self._is_foreign(name))
        return self._parsed[name]

    def text(self, name: str) -> str:
        """A file's source as it will be; its bytes survive the round trip, whatever their charset."""
        if name not in self._texts:
            with self._inside(name).open("rb") as file:
                raw = file.read(MAX_PAGE_BYTES + 1)
            if len(raw) > MAX_PAGE_BYTES:
                raise Permanent(f"{name} is larger than {MAX_PAGE_BYTES} bytes: the built-in agent leaves it alone")
            text, charset = raw.decode(_UTF8, "surrogateescape"), _UTF8
            if _BYTE.search(text) and _charset(name, text) != _UTF8:
                text, charset = raw.decode(_OTHER, "surrogateescape"), _OTHER
            self._texts[name], self._read[name] = text, (text, charset)
        return self._texts[name]

    def _is_foreign(self, name: str) -> bool:
        """Whether a page is, or says that it is, in another charset, in which new letters would be wrong."""
        text, charset = self._read[name]
        return charset == _OTHER or (text.isascii() and _charset(name, text) not in (_UTF8, ""))

    def replace(self, name: str, *patches: Patch) -> None:
        """Replace exactly these characters of a file."""
        self._texts[name] = patched(self.text(name), patches)

    def add_file(self, name: str, source: Path) -> str:
        """Copy a file into the site; returns the name it gets, which no other content has."""
        stem, suffix = PurePosixPath(name).with_suffix(""), PurePosixPath(name).suffix
        for number in range(1, 1000):
            candidate = name if number == 1 else f"{stem}-{number}{suffix}"
            existing = self._copies.get(candidate) or self._inside(candidate)
            if not existing.exists() or existing.read_bytes() == source.read_bytes():
                self._copies[candidate] = source
                return candidate
        raise Permanent(f"there are a thousand files like {name} already")

    def takes_copies(self, page: str) -> bool:
        """Whether a page may name a photo in two kinds: plain HTML, and no style that wants the `<img>` itself there.

        A generator makes such copies itself, or has no place for them.
        """
        if self.layout.kind != "plain" or not page.endswith(_HTML):
            return False
        return not any(_BESIDE_IMAGE.search(self.text(one)) for one in (page, *self.styles()))

    def remove_file(self, name: str) -> None:
        """Take a file out of the site, if it is one."""
        if self._inside(name).is_file():
            self._removed.add(name)

    def changes(self) -> dict[str, str]:
        """The files that will differ, with their texts."""
        return {name: text for name, text in self._texts.items() if text != self._read[name][0]}

    def write(self) -> None:
        """Put all edits into the workspace."""
        for name in self._removed - self._copies.keys():
            self._inside(name).unlink(missing_ok=True)
        for name, source in self._copies.items():
            self._write(name, source.read_bytes())
        for name, text in self.changes().items():
            self._write(name, text.encode(self._read[name][1], "surrogateescape"))

    def _write(self, name: str, content: bytes) -> None:
        target = self._inside(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def _files(self, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> list[str]:
        if (key := (*folders, *suffixes)) not in self._listed:
            found = (name for name in _walk(self._root, folders) if name.endswith(suffixes))
            self._listed[key] = sorted(name for name, _ in zip(found, range(MAX_FILES), strict=False))
        return self._listed[key]

    def _inside(self, name: str) -> Path:
        target = self._root / name
        if not target.resolve().is_relative_to(self._real_root):
            raise Permanent(f"{name} leads out of the site: it is left alone")
        return target
