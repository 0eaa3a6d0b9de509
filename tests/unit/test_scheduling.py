"""Tests that share what is slow to set up are run by one process."""

from __future__ import annotations

import pytest

from tests.scheduling import group_of


@pytest.mark.parametrize(
    ("file", "group"),
    [
        ("tests/infra/test_mail.py", "infra"),
        ("tests/integration/test_mail_parser.py", "tests/integration/test_mail_parser.py"),
        ("tests/unit/test_scheduling.py", "tests/unit/test_scheduling.py"),
        ("tests/unit/proofs/test_proofs.py", None),
        ("tests/integration/test_live.py", None),
    ],
    ids=["a mark", "a fixture of the file", "short tests", "slow tests", "neither"],
)
def test_the_group_of_a_file_is_read_from_its_text(file: str, group: str | None) -> None:
    assert group_of(file) == group
