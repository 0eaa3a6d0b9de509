"""The registry of builders: the one that the project names, else the first that fits."""

from __future__ import annotations

from collections.abc import Mapping

from webordinary.site.ports import Builder
from webordinary.site.sources import BuildFailed, SourceTree


def choose_builder(builders: Mapping[str, Builder], name: str, tree: SourceTree) -> Builder | BuildFailed:
    """Which builder builds this tree; in words, if none does."""
    if name:
        known = ", ".join(sorted(builders))
        return builders.get(name) or BuildFailed(f"This site is set to be built by {name!r}; known are: {known}.")
    for builder in builders.values():
        if builder.fits(tree):
            return builder
    return BuildFailed("No way to build this site was found: it needs an index.html at its top, in public/ or site/.")
