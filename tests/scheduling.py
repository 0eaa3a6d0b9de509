"""Which tests one process runs, where several run tests: those that share what is slow to set up."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadGroupScheduling

_GROUP = re.compile(r'xdist_group\("([\w-]+)"\)')
_SHARED = re.compile(r'scope="(?:module|session)"')
_SHORT = "tests/unit/"
"""Thousands of tests that take a millisecond: to hand out each by itself takes longer than to run it."""
_ROOT = Path(__file__).parents[1]


class Together(LoadGroupScheduling):
    """`--dist loadgroup`, with the group read from the test's file.

    pytest-xdist 3.8 writes the group into a test's id, which pytest 9.2 does not let it do any more: then every test
    goes where it likes, and accounts and stacks are set up again and again (pytest-xdist issue 1386).
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        group = group_of(file)
        if group is None:
            return nodeid
        return f"{group}-faulty" if test.endswith("[faulty]") else group  # which has a town of its own


@cache
def group_of(file: str) -> str | None:
    """What the file's `pytestmark` says; the file itself where its tests are short or share what they set up."""
    text = (_ROOT / file).read_text(encoding="utf-8")
    if found := _GROUP.search(text):
        return found[1]
    are_short = file.startswith(_SHORT) and "mark.slow" not in text
    return file if are_short or _SHARED.search(text) else None
