from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.lambdas.cloud import Cloud


@pytest.fixture
def cloud() -> Cloud:
    from tests.unit.lambdas.cloud import Cloud

    return Cloud()
