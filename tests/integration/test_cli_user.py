"""`webordinary user`: the users of the console."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.embedded import open_harness
from webordinary.entrypoints.cli import main
from webordinary.model.console import Role


def test_a_new_user_only_looks_and_a_known_one_keeps_the_role(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_harness(tmp_path / "data") as harness:
        data = ["--data", str(harness.services.config.data)]
        for words in (["vera"], ["olga", "--role", "operator"], ["olga"]):
            assert main(["user", "add", *words, *data]) == 0, capsys.readouterr().err
        users = {user.name: user.role for user in harness.services.access.users.all()}
    assert users == {"vera": Role.VIEWER, "olga": Role.OPERATOR}
