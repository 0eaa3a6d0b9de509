"""What lets workers into repositories: kept in encrypted parameters, copied where git needs it."""
# ruff: noqa: E402

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

import boto3

from tests.aws.emulator import REGION, RunningEmulator
from webordinary.adapters.aws.site.credentials import GitSecrets
from webordinary.adapters.git.credentials import CredentialKind
from webordinary.compose.aws_worker import FRESH_SECONDS, FetchedCredentials
from webordinary.model.errors import Permanent

REPO, TOKEN = "https://git.example.com/kiln.git", "t0ken-of-kiln"


class SecretsAccount:
    """Processes of one account, each with a folder of its own."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)
        client = session.client("ssm", endpoint_url=endpoint)
        self._secrets, self._folder, self.now = GitSecrets(lambda project_id: client), folder, 1000.0
        self.project = f"p{secrets.token_hex(6)}"

    def process(self, name: str) -> FetchedCredentials:
        return FetchedCredentials(self._folder / name, self._secrets, lambda: self.now)

    def keep(self, content: str) -> None:
        with self.process("operator").on_trial(self.project, REPO, content.encode()):
            pass


@pytest.fixture
def world(ministack: RunningEmulator, tmp_path: Path) -> SecretsAccount:
    return SecretsAccount(ministack.endpoint, tmp_path)


def token_of(credentials: FetchedCredentials, project: str) -> str:
    return Path(credentials.env(project)["GIT_ASKPASS"]).with_name("token").read_text().strip()


def test_what_an_operator_keeps_every_worker_finds_for_itself_alone(world: SecretsAccount) -> None:
    world.keep(TOKEN)
    worker = world.process("w1")
    assert worker.kind(world.project) is CredentialKind.TOKEN
    assert token_of(worker, world.project) == TOKEN
    [home] = (world._folder / "w1").iterdir()
    assert home.stat().st_mode & 0o077 == 0
    assert (home / "token").stat().st_mode & 0o077 == 0


def test_a_credential_that_did_not_prove_itself_is_kept_nowhere(world: SecretsAccount) -> None:
    def try_it() -> None:
        with world.process("operator").on_trial(world.project, REPO, TOKEN.encode()):
            raise Permanent("the repository does not take it")

    with pytest.raises(Permanent, match="does not take it"):
        try_it()
    assert world.process("w1").kind(world.project) is CredentialKind.NONE


def test_a_replaced_credential_is_noticed_and_a_forgotten_one_too(world: SecretsAccount) -> None:
    worker = world.process("w1")
    assert worker.env(world.project) == {}
    world.keep(TOKEN)
    assert worker.env(world.project) == {}  # it asks now and then, not for each call of git
    world.now += FRESH_SECONDS
    assert token_of(worker, world.project) == TOKEN
    world.keep("another")
    world.now += FRESH_SECONDS
    assert token_of(worker, world.project) == "another"
    assert world.process("operator").forget(world.project)
    assert not world.process("operator").forget(world.project)
    world.now += FRESH_SECONDS
    assert worker.env(world.project) == {}
    assert list((world._folder / "w1").iterdir()) == []
