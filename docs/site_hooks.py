"""Hooks of mkdocs.yml: the README is the first page, and links that leave `docs/` lead to the repository."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s]+)(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the README as index.md, and one page that lists the decisions."""
    files.append(File.generated(config, "index.md", content=readme(config.repo_url or "")))
    decisions = sorted((ROOT / "docs/decisions").glob("*.md"))
    rows = [f"- [{one.read_text('utf-8').splitlines()[0].lstrip('# ')}]({one.name})" for one in decisions]
    files.append(File.generated(config, "decisions/index.md", content="# Decisions\n\n" + "\n".join(rows) + "\n"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead `../examples/…` and the like to the repository."""
    if page.file.generated_by:
        return markdown

    def outside(link: re.Match[str]) -> str:
        target = (ROOT / "docs" / page.file.src_uri).parent.joinpath(link[1].partition("#")[0]).resolve()
        if target == ROOT / "docs/decisions":
            return f"{link[1]}index.md"
        if target.is_relative_to(ROOT / "docs") or not target.is_relative_to(ROOT):
            return link[1]
        return f"{config.repo_url}/blob/main/{target.relative_to(ROOT).as_posix()}"

    return _LINK.sub(outside, markdown)


def readme(repository: str) -> str:
    """The README with its links seen from inside `docs/`."""

    def inside(link: re.Match[str]) -> str:
        if link[1] == "docs/decisions/":
            return "decisions/index.md"
        return link[1].removeprefix("docs/") if link[1].startswith("docs/") else f"{repository}/blob/main/{link[1]}"

    return _LINK.sub(inside, (ROOT / "README.md").read_text("utf-8"))
