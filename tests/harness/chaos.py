"""A data folder with a server and workers as real processes, each started, frozen and killed by itself."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.acceptance import chaos_agent
from tests.acceptance.killing import kill_tree
from tests.acceptance.waiting import replies, text_of
from tests.conftest import Up
from tests.processes import stop_between_writes
from webordinary.adapters.files import transports
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.events import SqliteEventLog
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.snapshot import LoggedEvent

TIMEOUT_SECONDS = 120.0
LOOK_SECONDS = 0.02
WEBORDINARY = (sys.executable, "-P", "-m", "webordinary")
MAILBOX = "edit@localhost"
SETTINGS: dict[str, object] = {
    "trusted_peers": ["127.0.0.1"],
    "agent": "command",
    "allow_unjailed_agents": True,  # the agent keeps its journal outside its workspace
    "slots": 2,
    "retry_seconds": 0.2,
    "releases_kept": 200,
    "hourly_mails": 0,
    "acknowledge_seconds": 0,
}


def until(
    happened: Callable[[], object], what: str, seconds: float = TIMEOUT_SECONDS, *, pause_seconds: float = LOOK_SECONDS
) -> None:
    """Look until it happened."""
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not happened():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for {what}"
        pause.wait(pause_seconds)


@dataclass
class Hand:
    """One worker process."""

    name: str
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL to this process alone: what it started lives on."""
        self.process.kill()
        self.process.wait(timeout=60)

    def stop(self) -> int:
        """SIGTERM, and how it ended."""
        self.signal(signal.SIGTERM)
        return self.process.wait(timeout=120)


@dataclass
class ChaosHarness:
    """A data folder with its settings, its journal of agents, and the processes started on it."""

    folder: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    hands: list[Hand] = field(default_factory=list)
    up: Up | None = None
    disk: Path | None = None
    """Where the data folder is, if on a disk of its own."""
    env: Mapping[str, str] = field(default_factory=dict)
    prefix: Callable[[], tuple[str, ...]] = tuple
    """The start of the command line of server and workers."""

    def __post_init__(self) -> None:
        self.data, self.diary = (self.disk or self.folder) / "data", self.folder / "diary"
        (self.diary / "gates").mkdir(parents=True)
        self.data.mkdir()
        agent = [sys.executable, "-I", "-S", str(Path(chaos_agent.__file__).resolve()), str(self.diary)]
        settings = {**SETTINGS, "agent_command": agent, **self.settings}
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
        (self.data / "webordinary.toml").write_text("".join(lines))
        self.path = self.folder / "bin"  # what workers find: no bubblewrap
        self.path.mkdir()
        for program in ("git", "chmod", "rm"):
            (self.path / program).symlink_to(shutil.which(program) or program)
        self._hired = 0

    # -- processes ------------------------------------------------------------------------------------

    def open(self, workers: int = 0) -> Up:
        """Start the server half: intake, workflow, outbox, page; and perhaps workers of its own."""
        ports = ("--port", "0", "--smtp-port", "0", "--preview-port", "0")
        args = [*self.prefix(), *WEBORDINARY, "up", "--workers", str(workers), "--data", str(self.data), *ports]
        env = _environment() | {"PATH": str(self.path), **self.env}
        with (self.folder / "server.log").open("ab") as log:
            process = subprocess.Popen(
                args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, env=env
            )
        assert process.stdout
        for line in process.stdout:
            if found := re.match(r"ready (\S+) smtp (\S+):(\d+) preview (\S+)$", line):
                self.up = Up(process, self.data, found[1], found[2], int(found[3]), found[4])
                return self.up
        raise AssertionError(f"the server ended with {process.wait()}:\n{(self.folder / 'server.log').read_text()}")

    def kill_server(self) -> None:
        assert self.up
        kill_tree(self.up.process.pid)
        self.up.process.communicate(timeout=60)

    def hire(self, *flags: str, env: Mapping[str, str] | None = None) -> Hand:
        """Start one more worker."""
        self._hired += 1
        name = f"hand-{self._hired}"
        args = [*self.prefix(), *WEBORDINARY, "worker", "--data", str(self.data), "--name", name, *flags]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                args,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**_environment(), "PATH": str(self.path), **self.env, **(env or {})},
            )
        self.hands.append(Hand(name, process))
        return self.hands[-1]

    def hand_of(self, worker: str) -> Hand:
        """The process behind a worker's id."""
        pid = int((self.data / "run" / "workers" / worker).read_text())
        return next(hand for hand in self.hands if hand.pid == pid)

    def freeze(self, hand: Hand) -> None:
        """Stop it, but not in the middle of a write: there it would be ended, for all the others' sake."""
        stop_between_writes(hand.pid, self.data / "webordinary.db")

    def close(self) -> list[int]:
        """Ask everything to end; the exit codes of what still ran, killed where asking did not help."""
        for hand in self.hands:
            hand.signal(signal.SIGCONT)
            hand.signal(signal.SIGTERM)
        codes = [hand.process.wait(timeout=120) for hand in self.hands if hand.process.returncode is None]
        if self.up and self.up.process.poll() is None:
            codes.append(self.up.stop())
        return codes

    def raze(self) -> None:
        """End all of it, agents left behind included."""
        for hand in self.hands:
            if hand.process.poll() is None:
                kill_tree(hand.pid)
                hand.process.wait(timeout=60)
        if self.up and self.up.process.poll() is None:
            self.kill_server()
        for line in self.journal():
            with contextlib.suppress(ProcessLookupError):
                if lives(line["pid"]):
                    os.kill(line["pid"], signal.SIGKILL)

    # -- what happened --------------------------------------------------------------------------------

    def journal(self, what: str = "", mark: str = "") -> list[dict[str, Any]]:
        """What the agents wrote down, in order."""
        path = self.diary / "journal"
        *whole, _ = path.read_text().split("\n") if path.exists() else [""]  # the last may be only half written yet
        lines = [json.loads(line) for line in whole]
        return [line for line in lines if what in ("", line["what"]) and mark in ("", line["mark"])]

    def await_journal(self, what: str, mark: str, times: int = 1) -> list[dict[str, Any]]:
        """The agents' lines, once there are as many."""
        until(lambda: len(self.journal(what, mark)) >= times, f"{mark} to have {what} {times} times")
        return self.journal(what, mark)

    def open_gate(self, mark: str) -> None:
        """Let the agent of this note finish."""
        (self.diary / "gates" / mark).touch()

    def events(self, *kinds: str) -> list[LoggedEvent]:
        """What the system told of itself: to wait on, never to judge by."""
        database = Database(self.data / "webordinary.db")
        try:
            log, found = SqliteEventLog(database), []
            page = log.after(0, 500)
            while page:
                found += [logged for logged in page if not kinds or logged.event.kind in kinds]
                page = log.after(page[-1].seq, 500)
            return found
        finally:
            database.close()

    def onboard(self, project: str, user: str, sender: str) -> None:
        """Add a site, or one more person to it."""
        repo = self.data / "origins" / f"{project}.git"
        if not repo.exists():
            repo = self.folder / project
            repo.mkdir()
            (repo / "index.html").write_text(f"<!doctype html><title>{project}</title><h1>{project}</h1>\n")
        args = ["project", "add", project, "--repo", str(repo), "--user", user, "--sender", sender]
        command = [*WEBORDINARY, *args, "--data", str(self.data)]
        subprocess.run(command, check=True, capture_output=True, env=_environment())

    def git(self, project: str, *args: str) -> str:
        command = ["git", f"--git-dir={self.data / 'origins' / f'{project}.git'}", *args]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=_environment()).stdout


@dataclass
class ChaosCustomer:
    """A customer who writes about notes; remembers the thread of each."""

    harness: ChaosHarness
    address: str = "scott@example.com"
    count: int = 0
    email_id: str = ""
    """The name that intake gives the last mail."""

    def write(self, text: str, subject: str, root: str = "") -> str:
        """Send a mail, in the thread of `root` where one is named; raises unless it was accepted."""
        assert self.harness.up
        self.count += 1
        message_id = f"<{self.count}.{time.time_ns()}.{self.address.partition('@')[0]}@mail.example>"
        references = (root,) if root else ()
        letter = CustomerMail(self.address, MAILBOX, subject, text, (), message_id, root, references)
        raw, up = write_mail(letter, datetime.now(UTC)), self.harness.up
        answer = transports.send(raw, self.address, MAILBOX, up.smtp_host, up.smtp_port)
        self.email_id = transports.email_id_in(answer)
        return message_id

    def note(self, mark: str, root: str = "", *, file: str = "", steps: int = 2, **how: object) -> str:
        """Ask for a note, in a file of its own unless one is named."""
        words = " ".join(f"{name}={value}" for name, value in how.items())
        text = f"note={mark} file={file or f'notes/{mark}.html'} steps={steps} {words}"
        return self.write(text, f"Note {mark}", root)


def answer(harness: ChaosHarness, message_id: str) -> str:
    """The one answer to a mail, once it is there."""
    until(lambda: message_id in replies(harness.data), f"an answer to {message_id}")
    [reply] = replies(harness.data)[message_id]
    return text_of(reply)


def page(harness: ChaosHarness, mark: str, revision: str = "main") -> list[str]:
    """The steps of a note of amelia's as they stand in the origin."""
    return harness.git("amelia", "show", f"{revision}:notes/{mark}.html").splitlines()


def written(mark: str, steps: range, of: int) -> list[str]:
    """The steps as the agent writes them."""
    return [f"<p>note {mark} step {step} of {of}</p>" for step in steps]


def agents(harness: ChaosHarness) -> dict[int, str]:
    """The agents of this data folder that run now, jailed or not, each with its worker."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if words[1:2] == [b"-I"] and str(harness.diary).encode() in words[4:5]:
                env = dict(item.partition(b"=")[::2] for item in (entry / "environ").read_bytes().split(b"\0"))
                if worker := env.get(b"WEBORDINARY_WORKER"):  # who ends just now has none
                    found[int(entry.name)] = worker.decode()
    return found


def lives(pid: int) -> bool:
    """Whether this agent still runs."""
    try:
        return b"chaos_agent" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@contextlib.contextmanager
def opened(harness: ChaosHarness, workers: int = 1) -> Iterator[ChaosHarness]:
    """A data folder with its server and some workers; none of its processes runs after the block."""
    try:
        harness.open()
        for _ in range(workers):
            harness.hire()
        yield harness
    finally:
        harness.raze()


def _environment() -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("WEBORDINARY_", "GIT_", "AWS_"))}
    return env | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
