"""Origins that want a credential: kept for git alone, and told to nobody."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from tests.fakes.events import EventRecorder
from tests.harness.stores import LeasesOfRunningJobs
from tests.integration.git_over_http import GitServer, serving
from tests.unit.jobs.fixtures import PAGE, started, work
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.adapters.builders import PlainFiles
from webordinary.adapters.files.backup import pack
from webordinary.adapters.files.releases import FolderReleases
from webordinary.adapters.files.system import SystemClock
from webordinary.adapters.git import Credentials, GitRepository
from webordinary.adapters.git.credentials import AccessRefused, CredentialKind
from webordinary.adapters.git.origins import Origins
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.jobs.job import SiteJobs
from webordinary.jobs.ports import AgentResult, AgentTask
from webordinary.jobs.run import JobDeps
from webordinary.model.claims import CancelToken
from webordinary.model.errors import Permanent
from webordinary.model.jobs import JobOutcome
from webordinary.model.mail import Command, Instruction
from webordinary.model.projects import Project, SenderRole
from webordinary.operations.sample import make_origin

pytestmark = pytest.mark.needs("git")
TOKEN = "s3cret-t0ken-that-nobody-sees"


class ProtectedProject:
    """A project whose origin is behind a password."""

    def __init__(self, folder: Path, server: GitServer) -> None:
        self.folder, self.server = folder, server
        self.project = Project("amelia", f"{server.address}/site.git")
        self.credentials = Credentials(folder / "secrets")
        self.origins = Origins(folder / "origins", folder / "mirrors", self.credentials)

    def keep(self, content: str) -> None:
        with self.credentials.on_trial("amelia", self.project.repo, content.encode()):
            self.origins.check(self.project)

    def repository(self) -> GitRepository:
        return GitRepository(self.folder / "mirrors", self.folder / "w-1", "w-1", self.credentials)

    def everything_written(self) -> str:
        """All files but the secrets themselves."""
        files = [p for p in self.folder.rglob("*") if p.is_file() and "secrets" not in p.parts]
        return "".join(p.read_bytes().decode(errors="replace") for p in files)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ProtectedProject]:
    origin = tmp_path / "served" / "site.git"
    origin.parent.mkdir()
    make_origin(origin, {"index.html": PAGE.encode()})
    subprocess.run(["git", "-C", str(origin), "config", "http.receivepack", "true"], check=True)
    with serving(origin.parent, "x-access-token", TOKEN) as server:
        yield ProtectedProject(tmp_path, server)


class Watching:
    """The built-in agent; remembers all that its process could read in its environment."""

    def __init__(self) -> None:
        self.seen = ""

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        self.seen = repr(dict(os.environ)) + "".join(
            p.read_text(errors="replace") for p in task.workspace.parent.rglob("*") if p.is_file()
        )
        return BuiltinAgent().run(task, token)


def test_a_mail_changes_a_site_behind_a_token_and_nobody_sees_the_token(world: ProtectedProject) -> None:
    world.keep(f"{TOKEN}\n")
    heard, agent, repository = EventRecorder(), Watching(), world.repository()
    deps = JobDeps(
        workspaces=repository, main=repository, live=repository,
        leases=LeasesOfRunningJobs(MemoryDatabase(), lambda _: False),
        releases=FolderReleases(world.folder / "sites"), agents={"builtin": agent}, builders={"plain": PlainFiles()},
        project_of=lambda _: world.project, attachment_path=lambda _: world.folder, site_url=lambda *_: "http://x/",
        role_of=lambda *_: SenderRole.BOTH,
    )  # fmt: skip
    mail = Instruction("change the homepage title to Spring Sale", "", "scott@example.com", Command.EDIT)
    settled = SiteJobs(deps, lambda job: mail, heard, SystemClock().now).perform(started("job-1"), FakeCancelToken())
    assert settled.outcome is JobOutcome.SUCCEEDED
    log = ["git", "-C", str(world.folder / "served" / "site.git"), "log", "-1", "--format=%s", "main"]
    assert subprocess.run(log, capture_output=True, text=True, check=True).stdout.startswith("change the homepage")
    for place in (agent.seen, repr(heard), repr(settled), world.everything_written()):
        assert TOKEN not in place


def test_what_is_kept_is_for_this_user_alone(world: ProtectedProject) -> None:
    world.keep(f"x-access-token:{TOKEN}")
    home = world.folder / "secrets" / "amelia"
    assert world.credentials.kind("amelia") is CredentialKind.TOKEN
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [home, *home.iterdir()]}
    assert all(mode & 0o077 == 0 for mode in modes.values()), modes
    assert TOKEN not in repr(world.credentials.env("amelia"))


def test_a_wrong_token_is_told_in_words_and_the_right_one_stays(world: ProtectedProject) -> None:
    world.keep(TOKEN)
    with pytest.raises(AccessRefused, match=r"does not let us in.*project credential amelia FILE") as refused:
        world.keep("wr0ng-t0ken")
    assert "wr0ng-t0ken" not in str(refused.value)
    world.origins.check(world.project)
    assert not list((world.folder / "secrets").glob(".*")), "drafts are left behind"


def test_a_token_that_was_revoked_ends_the_job_where_the_operator_sees_it(world: ProtectedProject) -> None:
    world.keep(TOKEN)
    one = world.repository()
    workspace = one.prepare(work(world.project))
    world.server.expected = "Basic nobody"
    with pytest.raises(AccessRefused) as refused:
        one.prepare(work(world.project, "job-2"))
    assert TOKEN not in str(refused.value)
    (workspace.path / "index.html").write_text("x")
    with pytest.raises(AccessRefused):
        one.save(workspace)


def test_without_a_credential_the_operator_is_told_to_give_one(world: ProtectedProject) -> None:
    with pytest.raises(AccessRefused, match="give it the right credential"):
        world.origins.check(world.project)


def test_another_host_gets_no_answer(world: ProtectedProject) -> None:
    world.keep(TOKEN)
    askpass = world.credentials.env("amelia")["GIT_ASKPASS"]
    host = world.server.address.partition("//")[2]
    asked = {
        f"Username for 'http://{host}': ": "x-access-token",
        f"Password for 'http://x-access-token@{host}': ": TOKEN,
        "Password for 'https://x-access-token@evil.example': ": "",
        f"Password for 'https://x@{host}.evil.example': ": "",
    }
    for prompt, answer in asked.items():
        said = subprocess.run([askpass, prompt], capture_output=True, text=True, check=False)
        assert said.stdout.strip() == answer


@pytest.mark.parametrize(
    "address",
    [
        "https://{}@git.example/site.git",
        "http://{}@git.example/site.git",
        "HTTPS://{}@git.example/site.git",
        "https://git@{}@git.example/site.git",
        "https://{}:x-oauth-basic@git.example/site.git",
        "https://oauth2:{}@git.example/site.git",
        "https://git.example/site.git?private_token={}",
        "https://git.example/site.git#{}",
        "https::https://{}@git.example/site.git",
        "ssh://git:{}@git.example/site.git",
    ],
)
def test_an_address_that_may_hold_a_token_is_refused_without_showing_it(world: ProtectedProject, address: str) -> None:
    with pytest.raises(Permanent) as refused:
        Origins(world.folder / "origins", world.folder / "mirrors").settle("amelia", address.format(TOKEN))
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "https://git.example/site.git",
        "https://git@git.example/site.git",
        "https://x-token-auth@bitbucket.example/site.git",
        "https://oauth2@git.example:8443/a/b.git",
        "ssh://deploy@git.example:2222/site.git",
        "git@git.example:amelia/site.git",
    ],
)
def test_an_address_without_a_secret_is_taken_as_it_is(world: ProtectedProject, address: str) -> None:
    assert Origins(world.folder / "origins", world.folder / "mirrors").settle("amelia", address) == address


def test_an_address_with_a_password_is_refused_before_it_is_written_anywhere(world: ProtectedProject) -> None:
    with pytest.raises(Permanent, match="--credential FILE") as refused:
        world.origins.settle("amelia", f"https://me:{TOKEN}@git.example/site.git")
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    ("repo", "content", "words"),
    [
        ("https://git.example/a.git", b"two\nlines\n", "one line"),
        ("https://git.example/a.git", b"", "one line"),
        ("https://git.example/a.git", b"\xff\xfe", "not text"),
        ("https://git.example/a.git", b"x" * 30_000, "at most"),
        ("git@git.example:a.git", b"just-a-token", "private key"),
        ("/srv/git/a.git", b"token", "needs no credential"),
    ],
)
def test_what_is_no_credential_for_this_address_is_refused(
    tmp_path: Path, repo: str, content: bytes, words: str
) -> None:
    credentials = Credentials(tmp_path / "secrets")
    with pytest.raises(Permanent, match=words), credentials.on_trial("amelia", repo, content):
        raise AssertionError
    assert credentials.kind("amelia") is CredentialKind.NONE


SSH = """#!{python}
import json, os, subprocess, sys
json.dump(sys.argv[1:], open({log!r}, "w"))
os.execvp("sh", ["sh", "-c", sys.argv[-1]])
"""


@pytest.mark.needs("ssh-keygen")
def test_an_ssh_key_is_the_only_one_that_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = tmp_path / "site.git"
    make_origin(origin, {"index.html": PAGE.encode()})
    key, log, bin_folder = tmp_path / "key", tmp_path / "ssh.json", tmp_path / "bin"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    bin_folder.mkdir()
    (bin_folder / "ssh").write_text(SSH.format(python=sys.executable, log=str(log)))
    (bin_folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    project = Project("amelia", f"git@git.example:{origin}")
    credentials = Credentials(tmp_path / "se crets")
    origins = Origins(tmp_path / "origins", tmp_path / "mirrors", credentials)
    with credentials.on_trial("amelia", project.repo, key.read_bytes()):
        origins.check(project)
    said = shlex.join(json.loads(log.read_text()))
    kept = tmp_path / "se crets" / "amelia"
    assert stat.S_IMODE((kept / "key").stat().st_mode) == 0o600
    assert f"-i {shlex.quote(str(kept / 'key'))}" in said
    for option in ("BatchMode=yes", "IdentitiesOnly=yes", "IdentityAgent=none", "StrictHostKeyChecking=accept-new"):
        assert option in said
    assert str(kept / "known_hosts") in said
    assert credentials.kind("amelia") is CredentialKind.KEY


@pytest.mark.needs("ssh-keygen")
def test_a_key_with_a_passphrase_is_refused_at_once(tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-f", str(key)], check=True)
    credentials = Credentials(tmp_path / "secrets")
    with pytest.raises(Permanent, match="passphrase"), credentials.on_trial("a", "git@h:x.git", key.read_bytes()):
        raise AssertionError


def test_a_backup_holds_no_credential(world: ProtectedProject) -> None:
    world.keep(TOKEN)
    listed: list[str] = []

    def copy_database(path: Path) -> int:
        path.write_bytes(b"")
        return 1

    target = world.folder / "backup.tar.gz"
    pack(world.folder, target, copy_database, SystemClock().now(), lambda _: None)
    listed = subprocess.run(["tar", "-tzf", str(target)], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in listed if name.startswith("secrets")]


def test_a_repository_that_may_only_be_read_is_refused_at_onboarding(world: ProtectedProject) -> None:
    served = world.folder / "served" / "site.git"
    subprocess.run(["git", "-C", str(served), "config", "http.receivepack", "false"], check=True)
    with pytest.raises(AccessRefused):
        world.keep(TOKEN)
    assert world.credentials.kind("amelia") is CredentialKind.NONE


def command(world: ProtectedProject, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "webordinary", "project", *args, "--data", str(world.folder / "data")]
    return subprocess.run(line, input=stdin, capture_output=True, text=True, check=False, timeout=60)


def test_an_operator_adds_changes_and_removes_a_credential(world: ProtectedProject) -> None:
    right, wrong = world.folder / "right", world.folder / "wrong"
    right.write_text(f"{TOKEN}\n")
    wrong.write_text("wr0ng-t0ken\n")
    about = ("add", "amelia", "--repo", world.project.repo, "--user", "scott", "--sender", "scott@example.com")
    refused = command(world, *about, "--credential", str(wrong))
    assert refused.returncode != 0
    assert "does not let us in" in refused.stderr
    assert command(world, *about, "--credential", "-", stdin=f"{TOKEN}\n").returncode == 0
    assert command(world, "credential", "amelia", str(right)).returncode == 0
    assert command(world, "credential", "amelia", str(wrong)).returncode != 0
    shown = command(world, "show", "amelia", "--json")
    assert json.loads(shown.stdout)["credential"] == "token"
    assert json.loads(command(world, "credential", "amelia", "--remove", "--json").stdout)["credential"] == "none"
    for said in (refused.stdout + refused.stderr, shown.stdout):
        assert TOKEN not in said
        assert "wr0ng-t0ken" not in said
