"""The attacks, and a house to defend: secrets, listeners and a key, all on this machine and all fake.

For any driver: `house.arm(workspace)`, let the driver run `house.argv(attack)` in it, then `house.check(attack, …)`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.attacks import program
from tests.unit.jobs.fixtures import PAGE, THREAD, work
from webordinary.adapters.git import GitRepository
from webordinary.adapters.sandbox.bubblewrap import MEGABYTE, SandboxLimits, python
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox
from webordinary.jobs.source import ChangeMessage
from webordinary.model.projects import Project
from webordinary.operations.sample import make_origin

SECRET = "sk-real-0123456789abcdef"
SECRET_NAME = "secret-of-somebody"
SMALL = SandboxLimits(
    processes=60, memory_bytes=400 * MEGABYTE, disk_bytes=60 * MEGABYTE, files=3000, file_bytes=40 * MEGABYTE,
    scratch_bytes=20 * MEGABYTE, free_bytes=0,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attack:
    """`ended`: the program must not come to its end; `refused`: it may, but its result counts for nothing."""

    name: str
    ended: bool = False
    refused: bool = False

    def __str__(self) -> str:
        return self.name.replace("_", "-")


GIT_ATTACKS = (
    Attack("planted_hooks"),
    Attack("nested_repository"),
    Attack("fsmonitor"),
    Attack("info_attributes"),
    Attack("gitdir_file"),
    Attack("commondir"),
    Attack("worktree_pointer"),
    Attack("symlinked_git"),
    Attack("other_names_of_git"),
    Attack("gitattributes_filters"),
    Attack("gitmodules"),
)
"""They wait for a git that runs outside of the jail."""
ATTACKS = (
    *GIT_ATTACKS,
    Attack("reads_outside"),
    Attack("writes_outside"),
    Attack("network"),
    Attack("credentials"),
    Attack("system_calls"),
    Attack("agent_settings"),
    Attack("link_in_the_result"),  # refused where it would be recorded or published
    Attack("special_files", refused=True),
    Attack("fork_bomb"),
    Attack("memory", ended=True),
    Attack("endless_output", ended=True),
    Attack("disk_filling", ended=True),
    Attack("long_paths", ended=True),
    Attack("many_files", ended=True),
    Attack("scratch_filling"),
    Attack("deep_folders", refused=True),
    Attack("surviving_daemon"),
)


@dataclass
class AttackTargets:
    """What must stay untouched."""

    folder: Path
    listeners: list[socket.socket]
    dns: socket.socket
    abstract: str
    upstreams: Mapping[str, str] = field(default_factory=dict)
    """Addresses inside, by name, that answer with what they were asked."""

    @property
    def canary(self) -> Path:
        """Appears when something planted was run."""
        return self.folder / "canary"

    def arm(self, workspace: Path) -> None:
        """Put the attacking program into a workspace, with the addresses of its victims."""
        shutil.copyfile(program.__file__, workspace / "program.py")
        targets = {
            "secret_backwards": SECRET[::-1],
            "secret_name": SECRET_NAME,
            "secret_files": [str(path) for path in self._secrets()],
            "secret_folders": [str(self.folder / "data"), str(self.folder / "home")],
            "forbidden_files": [str(self.folder / "data" / "planted"), str(self.folder / "other" / "planted.html")],
            "readable_files": [str(self.folder / "attachment")],
            "listeners": [listener.getsockname()[:2] for listener in self.listeners],
            "dns_port": self.dns.getsockname()[1],
            "abstract": self.abstract,
            "canary": str(self.canary),
            "upstreams": dict(self.upstreams),
        }
        (workspace / "targets.json").write_text(json.dumps(targets))

    def argv(self, attack: Attack) -> list[str]:
        """How the program is started in an armed workspace."""
        return [python(), "program.py", attack.name]

    def check(self, attack: Attack, workspace: Path) -> None:
        """Afterwards: nothing was got, reached or changed."""
        loot = workspace / "loot.json"
        got = json.loads(loot.read_text()) if loot.exists() else []
        assert got == []
        assert not self.canary.exists(), "something planted was run"
        for path in self._secrets():
            assert path.read_text() == SECRET
        assert (self.folder / "attachment").read_text() == "a photo"
        assert not list(self.folder.rglob("planted*"))
        for listener in [*self.listeners, self.dns]:
            listener.setblocking(False)
            try:
                listener.recv(1) if listener is self.dns else listener.accept()
            except BlockingIOError:
                continue
            raise AssertionError("it came through")
        assert stat.S_IMODE(Path("/dev/null").stat().st_mode) == 0o666

    def _secrets(self) -> list[Path]:
        places = ("data/webordinary.db", "other/index.html", f"home/{SECRET_NAME}")
        return [self.folder / place for place in places]

    def _fill(self) -> None:
        for path in self._secrets():
            path.parent.mkdir(parents=True)
            path.write_text(SECRET)
        (self.folder / "attachment").write_text("a photo")


class AttackedCheckout:
    """A site's workspace as a worker prepares it, with a submodule in its index: the worst that git could meet."""

    def __init__(self, folder: Path) -> None:
        origin = folder / "origin.git"
        make_origin(origin, {"index.html": PAGE.encode(), "docs/about.html": b"<p>About</p>\n"})
        self.repository = GitRepository(folder / "mirrors", folder / "w-1", "w-1")
        self.project = Project("amelia", str(origin))
        self.workspace = self.repository.prepare(work(self.project))
        self.path = self.workspace.path
        theirs = program.repository("sub", folder) / ".git" / "refs" / "heads"
        commit = next(theirs.iterdir()).read_text().strip()
        self._git("update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
        (self.path / "sub").mkdir()

    def commit(self) -> set[str]:
        """Record what the program left, as if it had been interrupted, and go on with the next job.

        Returns the names in the index in between.
        """
        message = ChangeMessage("please", "done", "job-1", THREAD, "scott", "scott@example.com")
        self.repository.commit(self.workspace, message)
        names = set(self._git("ls-files", "-z").split("\0")) - {""}
        self.repository.prepare(work(self.project, "job-2"))
        return names

    def _git(self, *args: str) -> str:
        git_dir = self.path.parent / "git"
        words = ["git", f"--git-dir={git_dir}", *args]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def working_jail(scratch: Path, limits: SandboxLimits = SMALL) -> BubblewrapSandbox:
    """A jail that works; where none does, the test is skipped with the reason."""
    jail = BubblewrapSandbox("w-1", scratch, limits)
    if reason := jail.why_not():
        pytest.skip(f"no jail works here: {reason}")
    return jail


@contextmanager
def house() -> Iterator[AttackTargets]:
    """A house in a folder of its own, with its doors listening on loopback."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="house-")))
        web = closing.enter_context(socket.create_server(("127.0.0.1", 0)))
        dns = closing.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        dns.bind(("127.0.0.1", 0))
        abstract = closing.enter_context(socket.socket(socket.AF_UNIX))
        name = f"webordinary-{os.getpid()}-{folder.name}"
        abstract.bind("\0" + name)
        abstract.listen()
        made = AttackTargets(folder, [web], dns, name)
        made._fill()
        yield made
