"""Draft: edits kept in memory until all of a mail's wishes can be met; then written, or thrown away."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from webordinary.model.errors import Permanent
from webordinary.model.hold import Hold
from webordinary.site.agents.builtin.charsets import UTF8, decoded, encoded
from webordinary.site.agents.builtin.files import files_of
from webordinary.site.agents.builtin.layout import Layout, layout_of
from webordinary.site.agents.builtin.page import Page, Patch, patched
from webordinary.site.agents.builtin.reading import read_page

MAX_PAGE_BYTES = 2_000_000


class Draft:
    """A site's pages as they will be. File names are relative to the site's root."""

    def __init__(self, workspace: Path, hold: Hold) -> None:
        self._hold = hold
        self.layout: Layout = layout_of(workspace)
        self._root = self.layout.root
        self._read: dict[str, str | None] = {}
        self._texts: dict[str, str] = {}
        self._charsets: dict[str, str] = {}
        self._parsed: dict[str, Page] = {}
        self._copies: dict[str, Path] = {}
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

    def add_page(self, name: str, text: str, like: str) -> None:
        """A new page in the charset of another; the caller has seen that there is none of this name."""
        if self.has(name):
            raise Permanent(f"{name} exists already: it is not written over")
        self._read[name] = None
        self._charsets[name] = self._charsets[like]
        self._texts[name] = text

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

    def has(self, name: str) -> bool:
        """Whether the site has, or will have, this file or folder."""
        return name in self._texts or (self._root / name).exists()

    @property
    def differs(self) -> bool:
        """Whether anything is to be written."""
        return bool(self._copies) or any(text != self._read[name] for name, text in self._texts.items())

    def write(self) -> None:
        """Put all edits into the workspace."""
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
