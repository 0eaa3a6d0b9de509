from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.aws.emulator import RunningEmulator
    from tests.aws.faulty_proxy import FaultyProxy


@pytest.fixture(scope="module")
def proxy(ministack: RunningEmulator) -> Iterator[FaultyProxy]:
    """A way to the emulator on which a test can lose, delay and break calls."""
    from tests.aws.faulty_proxy import faulty_proxy

    with faulty_proxy(ministack.endpoint) as proxy:
        yield proxy
