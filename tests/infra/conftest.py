"""The stacks, synthesised once for all tests: CDK needs its time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.infra.templates import StackTemplates


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> StackTemplates:
    """Every template as an operator gets it who only names a domain, a project and an address."""
    from tests.infra.templates import synthesise

    return synthesise(tmp_path_factory.mktemp("cloud"), operator="op@example.com")


@pytest.fixture(scope="session")
def repository_root() -> Path:
    """Where the Dockerfile lies."""
    return Path(__file__).parents[2]
