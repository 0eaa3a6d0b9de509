"""Tests of optional packages: skipped with words where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def needs_extra(module: str, extra: str) -> None:
    """Call it at the top of a test file."""
    if find_spec(module) is not None:
        return
    words = f"{module} is not installed: `make test` installs it, pip install 'webordinary[{extra}]' too"
    pytest.skip(words, allow_module_level=True)
