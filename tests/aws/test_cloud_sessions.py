"""A conversation goes on wherever its next mail is served: same thread, same session, another container."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.aws.cloud_house import CloudHouse, CloudWriter, answer, opened
from tests.aws.emulator import Emulator
from tests.extras import needs_extra

needs_extra("acp", "acp")
pytestmark = pytest.mark.timeout(300)
AGENT = Path(__file__).parents[1] / "integration" / "acp_agent.py"
SCOTT = "scott@example.com"


def test_the_same_thread_continues_its_session_also_on_another_container(ministack: Emulator, tmp_path: Path) -> None:
    settings = {"agent": "acp", "agent_command": [sys.executable, str(AGENT)]}
    with opened(CloudHouse(tmp_path, settings, endpoint=ministack.endpoint, calm=ministack.endpoint)) as house:
        house.onboard("amelia", "scott", SCOTT)
        scott = CloudWriter(house)
        first = house.hire()
        assert answer(house, scott.write("edit", "A title"))
        assert first.stop() == 0
        house.hire()
        assert "You asked before: edit" in answer(house, scott.write("reply", "Re: A title", scott.last_id))
