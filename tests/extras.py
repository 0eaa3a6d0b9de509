"""Tests of optional packages: skipped with words where one is missing, a failure in CI."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.conftest import IN_CI


def needs_extra(module: str, extra: str) -> None:
    """Call it at the top of a test file."""
    if find_spec(module) is not None:
        return
    words = f"{module} is not installed: pip install 'webordinary[{extra}]'"
    if IN_CI:
        pytest.fail(f"{words}; .ci/run must install it", pytrace=False)
    pytest.skip(words, allow_module_level=True)
