"""Clients of an emulated account. Import it first: without boto3 the test file is skipped here, with words."""

from __future__ import annotations

from functools import lru_cache

from tests.extras import needs_extra

needs_extra("boto3", "aws")

import boto3  # noqa: E402

from tests.aws.emulator import REGION  # noqa: E402
from webordinary.adapters.aws.clients import Clients, connect  # noqa: E402


@lru_cache(maxsize=8)
def session_of(account_id: str) -> boto3.Session:
    """Credentials for an account: the emulator takes a key of twelve digits for one, and keeps accounts apart."""
    return boto3.Session(aws_access_key_id=account_id, aws_secret_access_key="test", region_name=REGION)


@lru_cache(maxsize=8)
def clients_of(endpoint: str) -> Clients:
    """As a worker makes them, with credentials that nobody checks."""
    return connect(REGION, endpoint, session_of("test"))
