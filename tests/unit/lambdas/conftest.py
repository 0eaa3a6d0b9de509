from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.lambdas.harness import LambdaHarness


@pytest.fixture
def cloud() -> LambdaHarness:
    from tests.unit.lambdas.harness import LambdaHarness

    return LambdaHarness()
