"""Draft: edits kept in memory until all of a mail's wishes can be met; then written, or thrown away."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from webordinary.adapters.agents.builtin.html import HTML, HTML_IN_ASCII, parse_astro, parse_page
from webordinary.adapters.agents.builtin.markdown import parse_markdown
from webordinary.adapters.agents.builtin.page import UTF8, MarkupWriter, Page, Patch, decoded, encoded, hidden, patched
from webordinary.adapters.agents.builtin.values import read_front_matter
from webordinary.jobs.site_files import site_root
from webordinary.model.claims import CancelToken
from webordinary.model.errors import Permanent


def read_page(name: str, source: str, utf8: bool = True) -> Page:
    """A page of any kind; into HTML that is not in UTF-8, new words are written as character references."""
    match PurePosixPath(name).suffix:
        case ".astro":
            return parse_astro(source)
        case ".md" | ".markdown":
            return parse_markdown(source)
        case ".mdx":
            return parse_markdown(source, mdx=True)
        case _:
            return _with_front_matter(source, HTML if utf8 else HTML_IN_ASCII)


def _with_front_matter(source: str, writing: MarkupWriter) -> Page:
    front = read_front_matter(source)
    if not front.end:
        return parse_page(source, writing=writing)
    page = parse_page(source, hidden(source[: front.end]) + source[front.end :], writing)
    page.texts = [text for text in page.texts if text.start >= front.end]
    if front.title is not None and page.title is None:
        page.add_value(front.title)
        page.elements.sort(key=lambda element: element.start)
    return page


_MARKDOWN = (".md", ".markdown")
_PICTURE_FOLDERS = ("images", "img", "assets/images", "assets/img", "photos", "media")
_CONFIGS = {
    "astro": tuple(f"astro.config.{kind}" for kind in ("mjs", "js", "ts", "mts", "cjs")),
    "hugo": tuple(f"{name}.{kind}" for name in ("hugo", "config") for kind in ("toml", "yaml", "yml", "json")),
    "mkdocs": ("mkdocs.yml", "mkdocs.yaml"),
}
_MAX_CONFIG_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to keep a site; folders are relative to `root`, and `.` is all of it."""

    kind: str
    root: Path
    pages: tuple[str, ...] = (".",)
    suffixes: tuple[str, ...] = (".html", ".htm")
    parts: tuple[str, ...] = ()
    styles: tuple[str, ...] = (".",)
    pictures: str = ""
    base: str = ""
    config: str = ""

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
        is_index = path.name in ("index", "_index") or (self.kind == "mkdocs" and path.name == "README")
        return "" if str(path.parent if is_index else path) == "." else str(path.parent if is_index else path)


def layout_of(workspace: Path) -> Layout:
    """How this site is kept; by the first generator whose settings are there, else as plain pages."""
    astro, hugo, mkdocs = (_first(workspace, names) for names in _CONFIGS.values())
    if astro or (workspace / "src" / "pages").is_dir():
        base = re.search(r"""^[ \t]*base\s*:\s*["']/?([\w./-]*?)/?["']""", _text(workspace, astro), re.MULTILINE)
        return Layout(
            "astro", workspace, ("src/pages", "src/content"), (".astro", ".mdx", *_MARKDOWN, ".html"),
            ("src/components", "src/layouts"), ("src", "public"), "public/images",
            f"/{base[1]}/" if base and base[1] else "/", astro,
        )  # fmt: skip
    if (workspace / "content").is_dir() and (hugo or (workspace / "config" / "_default").is_dir()):
        return Layout(
            "hugo", workspace, ("content",), (*_MARKDOWN, ".html"), (), ("static", "assets"), "static/images", "/", hugo
        )
    if mkdocs:
        folder = _docs_folder(_text(workspace, mkdocs))
        return Layout(
            "mkdocs", workspace, (folder,), (*_MARKDOWN, ".html"), (), (folder,), f"{folder}/images", "", mkdocs
        )
    root = workspace / (site_root(_Existing(workspace)) or PurePosixPath())
    pictures = next((folder for folder in _PICTURE_FOLDERS if (root / folder).is_dir()), _PICTURE_FOLDERS[0])
    return Layout("plain", root, pictures=pictures)


def _docs_folder(settings: str) -> str:
    named = re.search(r"^docs_dir:[ \t]*[\"']?([\w./-]+)", settings, re.MULTILINE)
    folder = posixpath.normpath(named[1]) if named else "docs"
    return folder if not folder.startswith(("/", "..")) else "docs"


def _first(folder: Path, names: Iterable[str]) -> str:
    return next((name for name in names if (folder / name).is_file()), "")


def _text(folder: Path, name: str) -> str:
    if not name or (folder / name).is_symlink():
        return ""
    with (folder / name).open("rb") as file:
        return file.read(_MAX_CONFIG_BYTES).decode("utf-8", "replace")


class _Existing:
    """The files of a folder, asked for by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __contains__(self, name: object) -> bool:
        return (self._folder / str(name)).is_file()


MAX_FILES = 2_000
MAX_SEEN = 50_000
_LEFT_ALONE = frozenset(("node_modules", "__pycache__", "vendor", "themes"))


def files_of(root: Path, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> list[str]:
    """Their names, relative to `root`, in order."""
    names = []
    for name in _walk(root, folders):
        if PurePosixPath(name).suffix in suffixes:
            names.append(name)
        if len(names) >= MAX_FILES:
            break
    return sorted(names)


def _walk(root: Path, folders: tuple[str, ...]) -> Iterator[str]:
    seen = 0
    for folder in folders:
        if (root / folder).is_symlink():
            continue
        for here, below, files in os.walk(root / folder):
            below[:] = sorted(name for name in below if name not in _LEFT_ALONE and not name.startswith("."))
            for file in sorted(files):
                seen += 1
                if seen > MAX_SEEN:
                    return
                path = Path(here) / file
                if not file.startswith(".") and path.is_file() and not path.is_symlink():
                    yield path.relative_to(root).as_posix()


MAX_PAGE_BYTES = 2_000_000


class Draft:
    """A site's pages as they will be. File names are relative to the site's root."""

    def __init__(self, workspace: Path, token: CancelToken) -> None:
        self._hold = token
        self.layout: Layout = layout_of(workspace)
        self._root = self.layout.root
        self._read: dict[str, str | None] = {}
        self._texts: dict[str, str] = {}
        self._charsets: dict[str, str] = {}
        self._parsed: dict[str, Page] = {}
        self._copies: dict[str, Path] = {}
        self._removed: set[str] = set()
        self._listed: dict[tuple[str, ...], list[str]] = {}

    def pages(self) -> list[str]:
        """The pages of the site, the home page first."""
        added = [name for name, text in self._read.items() if text is None]
        found = self._files(self.layout.pages, self.layout.suffixes)
        return sorted([*found, *added], key=lambda name: (self.layout.slug(name) != "", name))

    def sources(self) -> list[str]:
        """The pages, and after them the parts that pages are put together from."""
        return self.pages() + self._files(self.layout.parts, (".astro",))

    def styles(self) -> list[str]:
        """The style sheets."""
        return self._files(self.layout.styles, (".css",))

    def page(self, name: str) -> Page:
        """A page as it will be; asked for between any two looks at pages, so a job that must end does so here."""
        self._hold.check()
        text = self.text(name)
        if name not in self._parsed or self._parsed[name].source != text:
            self._parsed[name] = read_page(name, text, utf8=self._charsets[name] == UTF8)
        return self._parsed[name]

    def text(self, name: str) -> str:
        """A file's source as it will be; its bytes survive the round trip, whatever their charset."""
        if name not in self._texts:
            with self._inside(name).open("rb") as file:
                raw = file.read(MAX_PAGE_BYTES + 1)
            if len(raw) > MAX_PAGE_BYTES:
                raise Permanent(f"{name} is larger than {MAX_PAGE_BYTES} bytes: the built-in agent leaves it alone")
            self._charsets[name], self._texts[name] = decoded(name, raw)
            self._read[name] = self._texts[name]
        return self._texts[name]

    def replace(self, name: str, *patches: Patch) -> None:
        """Replace exactly these characters of a file."""
        self._texts[name] = patched(self.text(name), patches)

    def add_file(self, name: str, source: Path) -> str:
        """Copy a file into the site; returns the name it gets, which no other content has."""
        stem, suffix = PurePosixPath(name).with_suffix(""), PurePosixPath(name).suffix
        for number in range(1, 1000):
            candidate = name if number == 1 else f"{stem}-{number}{suffix}"
            existing = self._copies.get(candidate) or self._inside(candidate)
            if not existing.exists():
                self._copies[candidate] = source
                return candidate
            if existing.read_bytes() == source.read_bytes():
                return candidate
        raise Permanent(f"there are a thousand files like {name} already")

    def remove_file(self, name: str) -> None:
        """Take a file out of the site, if it is one."""
        if self._inside(name).is_file():
            self._removed.add(name)

    def has(self, name: str) -> bool:
        """Whether the site has, or will have, this file or folder."""
        return name in self._texts or (self._root / name).exists()

    @property
    def differs(self) -> bool:
        """Whether anything is to be written."""
        return bool(self._copies) or any(text != self._read[name] for name, text in self._texts.items())

    def write(self) -> None:
        """Put all edits into the workspace."""
        for name in self._removed - self._copies.keys():
            self._inside(name).unlink(missing_ok=True)
        for name, source in self._copies.items():
            self._write(name, source.read_bytes())
        for name, text in self._texts.items():
            if text != self._read[name]:
                self._write(name, encoded(text, self._charsets[name]))

    def _write(self, name: str, content: bytes) -> None:
        target = self._inside(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def _files(self, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> list[str]:
        key = (*folders, *suffixes)
        if key not in self._listed:
            self._listed[key] = files_of(self._root, folders, suffixes)
        return self._listed[key]

    def _inside(self, name: str) -> Path:
        target = self._root / name
        if not target.resolve().is_relative_to(self._root.resolve()):
            raise Permanent(f"{name} leads out of the site: it is left alone")
        return target
