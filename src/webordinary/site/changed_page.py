"""Which page of a release to show to somebody who wants to see what changed, and where it stands on the site."""

from __future__ import annotations

from urllib.parse import quote

from webordinary.site.deploy_plan import is_page
from webordinary.site.manifests import Manifest, changed_paths

HOME = "index.html"


def page_to_show(before: Manifest, after: Manifest) -> str | None:
    """A page that was added, else one that changed: the home page, else the topmost; without any, home shows the rest.

    Whoever adds a page changes others, too: those that lead to it.
    """
    changed = changed_paths(before, after)
    pages = [path for path in changed if is_page(path)]
    if pages:
        return min(pages, key=lambda path: (path in before, path != HOME, path.count("/"), path))
    return HOME if changed and HOME in after else None


def address_of(page: str) -> str:
    """Its address below the site's own: a folder's page is reached by the folder."""
    folder, _, name = page.rpartition("/")
    if name == HOME:
        return quote(f"{folder}/") if folder else ""
    return quote(page)
