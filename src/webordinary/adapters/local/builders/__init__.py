"""How sources become sites: plain files, npm, Hugo, MkDocs, any command."""

from __future__ import annotations

from collections.abc import Sequence

from webordinary.adapters.local.builders.command import Command
from webordinary.adapters.local.builders.hugo import Hugo
from webordinary.adapters.local.builders.mkdocs import MkDocs
from webordinary.adapters.local.builders.npm import Npm
from webordinary.adapters.local.builders.npm_install import Dependencies
from webordinary.adapters.local.builders.outside import OutsideBuilder, Workshop
from webordinary.adapters.local.builders.plain import PlainFiles
from webordinary.site.ports import Builder

__all__ = ["Dependencies", "OutsideBuilder", "PlainFiles", "Workshop", "builders"]


def builders(workshop: Workshop, dependencies: Dependencies, command: Sequence[str] = ()) -> dict[str, Builder]:
    """All of them, by the names that projects use, in the order in which they are tried."""
    known: dict[str, Builder] = {
        "npm": OutsideBuilder(Npm(dependencies), workshop),
        "hugo": OutsideBuilder(Hugo(), workshop),
        "mkdocs": OutsideBuilder(MkDocs(), workshop),
        "plain": PlainFiles(),
    }
    if command:
        known["command"] = OutsideBuilder(Command(command), workshop)
    return known
