from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.aws.emulator import RunningEmulator

from webordinary.adapters.sqlite.database import Database, MemoryDatabase

if TYPE_CHECKING:
    from tests.aws.mail_tables import MailTables
    from tests.aws.pool_tables import PoolTables


@pytest.fixture
def database() -> Iterator[Database]:
    """As simulations and unit tests use it."""
    db = MemoryDatabase()
    yield db
    db.close()


@pytest.fixture
def file_database(tmp_path: Path) -> Iterator[Database]:
    """As a data folder holds it."""
    db = Database(tmp_path / "contract.db")
    db.migrate()
    yield db
    db.close()


@pytest.fixture
def aws_pool(ministack: RunningEmulator) -> PoolTables:
    """The pool's tables on the emulator."""
    from tests.aws.pool_tables import PoolTables

    return PoolTables(ministack.endpoint)


@pytest.fixture
def losing_answers(ministack: RunningEmulator) -> Iterator[str]:
    """An endpoint: what is asked of DynamoDB is done, and then its answer is lost; the second try is answered."""
    from tests.aws.faulty_proxy import DROP_RESPONSE, faulty_proxy

    with faulty_proxy(ministack.endpoint) as proxy:
        proxy.first_tries(DROP_RESPONSE, "dynamodb:")
        yield proxy.endpoint


@pytest.fixture
def aws_pool_whose_answers_are_lost(aws_pool: PoolTables, losing_answers: str) -> PoolTables:
    return aws_pool.through(losing_answers)


@pytest.fixture
def aws_mail(ministack: RunningEmulator) -> MailTables:
    """The tables and buckets of mail on the emulator."""
    from tests.aws.mail_tables import MailTables

    return MailTables(ministack.endpoint)


@pytest.fixture
def aws_mail_whose_answers_are_lost(aws_mail: MailTables, losing_answers: str) -> MailTables:
    return aws_mail.through(losing_answers)
