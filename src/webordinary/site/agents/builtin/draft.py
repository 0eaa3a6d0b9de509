"""Draft: edits kept in memory until all of a mail's wishes can be met; then written, or thrown away."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from webordinary.model.errors import Permanent
from webordinary.site.agents.builtin.html import Page, parse_page
from webordinary.site.roots import site_root

MAX_PAGES = 2_000
MAX_PAGE_BYTES = 2_000_000


class Draft:
    """A site's pages as they will be. File names are relative to the site's root."""

    def __init__(self, workspace: Path) -> None:
        self._root = workspace / (site_root(_Existing(workspace)) or PurePosixPath())
        self._read: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._copies: dict[str, Path] = {}

    def pages(self) -> list[str]:
        """The HTML pages of the site, the home page first."""
        names = []
        for path in sorted(self._root.rglob("*.htm*")):
            name = path.relative_to(self._root)
            hidden = any(part.startswith(".") or part == "node_modules" for part in name.parts)
            if path.suffix in {".html", ".htm"} and not hidden and path.is_file() and not path.is_symlink():
                names.append(name.as_posix())
            if len(names) >= MAX_PAGES:
                break
        return sorted(names, key=lambda name: (name != "index.html", name))

    def page(self, name: str) -> Page:
        """A page as it will be."""
        return parse_page(self.text(name))

    def text(self, name: str) -> str:
        """A page's source as it will be; bytes that are no UTF-8 survive the round trip."""
        if name not in self._texts:
            raw = (self._root / name).read_bytes()[: MAX_PAGE_BYTES + 1]
            if len(raw) > MAX_PAGE_BYTES:
                raise Permanent(f"{name} is larger than {MAX_PAGE_BYTES} bytes: the built-in agent leaves it alone")
            self._read[name] = self._texts[name] = raw.decode("utf-8", "surrogateescape")
        return self._texts[name]

    def replace(self, name: str, start: int, end: int, new: str) -> None:
        """Replace exactly these characters of a page."""
        text = self.text(name)
        self._texts[name] = text[:start] + new + text[end:]

    def add_file(self, name: str, source: Path) -> str:
        """Copy a file into the site; returns the name it gets, which no other content has."""
        stem, suffix = PurePosixPath(name).with_suffix(""), PurePosixPath(name).suffix
        for number in range(1, 1000):
            candidate = name if number == 1 else f"{stem}-{number}{suffix}"
            existing = self._copies.get(candidate) or self._root / candidate
            if not existing.exists():
                self._copies[candidate] = source
                return candidate
            if existing.read_bytes() == source.read_bytes():
                return candidate
        raise Permanent(f"there are a thousand files like {name} already")

    def has_folder(self, name: str) -> bool:
        """Whether the site has this folder."""
        return (self._root / name).is_dir()

    @property
    def differs(self) -> bool:
        """Whether anything is to be written."""
        return bool(self._copies) or any(text != self._read[name] for name, text in self._texts.items())

    def write(self) -> None:
        """Put all edits into the workspace."""
        for name, source in self._copies.items():
            target = self._inside(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
        for name, text in self._texts.items():
            if text != self._read[name]:
                self._inside(name).write_bytes(text.encode("utf-8", "surrogateescape"))

    def _inside(self, name: str) -> Path:
        target = self._root / name
        if not target.resolve().is_relative_to(self._root.resolve()):
            raise Permanent(f"{name} leads out of the site: it is left alone")
        return target


class _Existing:
    """The files of a folder, asked for by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __contains__(self, name: object) -> bool:
        return (self._folder / str(name)).is_file()
