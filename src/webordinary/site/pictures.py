"""Which page of a release to show in a picture, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass

from webordinary.site.deploy_plan import is_page
from webordinary.site.manifests import Manifest, changed_paths

HOME = "index.html"


@dataclass(frozen=True, slots=True)
class Pictures:
    """PNG pictures of one page; empty where there was no such page, or no picture came out in time."""

    page: str
    before: bytes = b""
    after: bytes = b""


def page_to_show(before: Manifest, after: Manifest) -> str | None:
    """The page that changed: the home page if it did, else the topmost; without any, the home page shows the rest."""
    changed = changed_paths(before, after)
    pages = sorted((path for path in changed if is_page(path)), key=lambda path: (path.count("/"), path))
    if HOME in pages:
        return HOME
    if pages:
        return pages[0]
    return HOME if changed and HOME in after else None
