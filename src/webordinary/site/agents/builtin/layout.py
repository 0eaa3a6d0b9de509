"""Where a site keeps its pages, parts, styles and pictures; seen from the files that its generator wants."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from webordinary.site.roots import site_root

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
