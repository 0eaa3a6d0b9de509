from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from webordinary.adapters.sqlite.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    db = Database(tmp_path / "contract.db")
    db.migrate()
    yield db
    db.close()
