"""Files that a change added and others use meanwhile: a photo is stored once, however many pages show it."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from urllib.parse import quote

from webordinary.adapters.local.git import reading
from webordinary.adapters.local.git.command import Git
from webordinary.site.page_names import becomes_page


def keep_what_others_use(git: Git, commit: str) -> None:
    """After a commit was reverted in the tree: bring back what it added, but for pages, where a text still names it."""
    gone = [name for name in reading.files_removed(git) if not becomes_page(name)]
    added = reading.files_added_by(git, commit) if gone else frozenset()
    for name in gone:
        if name in added and _named_somewhere(git, name):
            git("--literal-pathspecs", "checkout", "--quiet", "HEAD", "--", name)


def _named_somewhere(git: Git, name: str) -> bool:
    base = PurePosixPath(name).name
    ways = {base, quote(os.fsencode(base))}
    words = [part for way in sorted(ways) for part in ("-e", way)]
    return git.attempt("grep", "--quiet", "-I", "--fixed-strings", "--word-regexp", *words).code == 0
