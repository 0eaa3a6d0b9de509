from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.unit.dashboard.tables import DashboardTables
from webordinary.entrypoints.dashboard.web import create_app

PAGE = "http://127.0.0.1:8080"
SECOND_PORT = "http://127.0.0.1:8081"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[DashboardTables]:
    world = DashboardTables(tmp_path)
    yield world
    world.database.close()


@pytest.fixture
def page(world: DashboardTables) -> Iterator[TestClient]:
    """A visitor of the page."""
    with TestClient(create_app(world.dashboard()), base_url=PAGE, follow_redirects=False) as client:
        yield client


@pytest.fixture
def second_port(world: DashboardTables) -> Iterator[TestClient]:
    """A visitor whose browser does not know *.localhost."""
    with TestClient(create_app(world.dashboard()), base_url=SECOND_PORT, follow_redirects=False) as client:
        yield client
