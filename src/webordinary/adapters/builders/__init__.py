"""How sources become sites: plain files, npm, Hugo, MkDocs, any command."""

from __future__ import annotations

from collections.abc import Sequence

from webordinary.adapters.builders.generators import CommandBuilder, Dependencies, Hugo, MkDocs, Npm, package_source
from webordinary.adapters.builders.outside import BuildEnv, OutsideBuilder
from webordinary.adapters.builders.plain import PlainFiles
from webordinary.jobs.ports import Builder

__all__ = ["BuildEnv", "Dependencies", "OutsideBuilder", "PlainFiles", "builders"]


def builders(build_env: BuildEnv, dependencies: Dependencies, command: Sequence[str] = ()) -> dict[str, Builder]:
    """All of them, by the names that projects use, in the order in which they are tried."""
    known: dict[str, Builder] = {
        "npm": OutsideBuilder(Npm(dependencies), build_env, package_source),
        "hugo": OutsideBuilder(Hugo(), build_env),
        "mkdocs": OutsideBuilder(MkDocs(), build_env),
        "plain": PlainFiles(),
    }
    if command:
        known["command"] = OutsideBuilder(CommandBuilder(command), build_env)
    return known
