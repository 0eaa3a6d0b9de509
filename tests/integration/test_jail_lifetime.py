"""How a jailed program begins and ends: asked, killed, outlived by nobody."""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.targets import SMALL, Attack, house, working_jail
from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.sandbox import sandbox
from webordinary.adapters.sandbox.bubblewrap import python
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox, SandboxedPrograms, UnconfinedSandbox
from webordinary.jobs.ports import Sandbox
from webordinary.jobs.sandbox_policy import SandboxPolicy
from webordinary.model.errors import Cancelled, Interrupted, JobTimedOut, MachineFault, Permanent

pytestmark = pytest.mark.needs("bwrap")
ROOT = Path(__file__).parents[2]
WAITS = ("sh", "-c", "echo $MY_MODEL_KEY; read end")
ANOTHER_USER = 65534 if os.geteuid() == 0 else None
"""Only root may become another one; the list of processes shows the same to all."""
SAVES_ON_INTERRUPT = """
import pathlib, signal, sys, time
def save(*_):
    pathlib.Path("saved").write_text("half of it")
    sys.exit(3)
signal.signal(signal.SIGINT, save)
open("ready", "w").write("listening")
while True:
    time.sleep(0.01)  # a signal that comes just before a sleep is heard after it
"""
DEAF = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
open("ready", "w").write("listening")
time.sleep(60)
"""
WORKER = """
import sys
from pathlib import Path
from tests.attacks.targets import Attack, AttackTargets
from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox, SandboxedPrograms
folder, program = Path(sys.argv[1]), sys.argv[2:]
programs = SandboxedPrograms(BubblewrapSandbox("w-1", folder / "scratch"))
programs.run(program, folder / "tree", b"", {}, 90, FakeCancelToken())
"""


@pytest.fixture
def jail(tmp_path: Path) -> BubblewrapSandbox:
    return working_jail(tmp_path / "scratch")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def run(
    jail: Sandbox, workspace: Path, *words: str, token: FakeCancelToken | None = None, grace: float = 60.0
) -> tuple[int, str]:
    code, out, err = SandboxedPrograms(jail, grace).run(
        words, workspace, b"from outside", {}, 120, token or FakeCancelToken()
    )
    return code, (out + err).decode()


def end_once_ready(workspace: Path, token: FakeCancelToken) -> threading.Thread:
    """Interrupts the job as soon as the program says that it listens."""
    os.mkfifo(workspace / "ready")

    def wait_and_end() -> None:
        (workspace / "ready").read_text()
        (workspace / "ready").unlink()
        token.end(Interrupted("another thread's mail"))

    thread = threading.Thread(target=wait_and_end)
    thread.start()
    return thread


def test_a_program_reads_its_input_and_its_exit_code_and_words_come_back(
    jail: BubblewrapSandbox, workspace: Path
) -> None:
    assert run(jail, workspace, "sh", "-c", "cat; pwd; exit 7") == (7, f"from outside{workspace}\n")


def test_a_program_that_is_not_in_the_jail_is_told_with_what_to_do(jail: BubblewrapSandbox, workspace: Path) -> None:
    code, words = run(jail, workspace, "/opt/agents/mine")
    assert code == 127
    assert "name its folder in jail_readable" in words


def test_what_the_operator_names_as_readable_is_there_and_read_only(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "rules").write_text("be kind")
    jail = BubblewrapSandbox("w-1", tmp_path / "scratch", SMALL, [tmp_path / "agents"])
    assert run(jail, workspace, "cat", str(tmp_path / "agents" / "rules")) == (0, "be kind")
    code, _ = run(jail, workspace, "rm", str(tmp_path / "agents" / "rules"))
    assert code == 1


def test_a_git_folder_in_the_workspace_is_read_only(jail: BubblewrapSandbox, workspace: Path) -> None:
    (workspace / ".git" / "hooks").mkdir(parents=True)
    code, _ = run(jail, workspace, "touch", ".git/hooks/post-commit")
    assert code == 1
    assert list((workspace / ".git" / "hooks").iterdir()) == []


def test_a_git_folder_that_a_program_plants_is_gone_when_it_ends(
    jail: BubblewrapSandbox, tmp_path: Path, workspace: Path
) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o500)
    run(jail, workspace, "ln", "-s", str(tmp_path / "elsewhere"), ".git")
    assert list(workspace.iterdir()) == []
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o500
    run(jail, workspace, "mkdir", "-p", ".git/hooks")
    assert list(workspace.iterdir()) == []


def test_a_link_that_an_earlier_program_left_is_not_followed_into_the_next_jail(
    jail: BubblewrapSandbox, tmp_path: Path, workspace: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    run(jail, workspace, "ln", "-s", str(tmp_path / "elsewhere"), "dist")
    for reach in (
        SandboxPolicy(writable=(workspace / "dist",)),
        SandboxPolicy(readable=(workspace / "dist" / "below",)),
    ):
        with pytest.raises(Permanent, match="does not follow links"):
            SandboxedPrograms(jail).run(["true"], workspace, b"", {}, 60, FakeCancelToken(), reach)


def test_an_interrupted_program_is_asked_first_and_may_save_its_work(jail: BubblewrapSandbox, workspace: Path) -> None:
    token = FakeCancelToken()
    thread = end_once_ready(workspace, token)
    with pytest.raises(Interrupted):
        run(jail, workspace, python(), "-c", SAVES_ON_INTERRUPT, token=token)
    thread.join()
    assert (workspace / "saved").read_text() == "half of it"


def test_a_program_that_does_not_listen_is_killed_after_the_grace(jail: BubblewrapSandbox, workspace: Path) -> None:
    token = FakeCancelToken()
    thread = end_once_ready(workspace, token)
    with pytest.raises(Interrupted):
        run(jail, workspace, python(), "-c", DEAF, token=token, grace=0.1)
    thread.join()


def test_a_job_that_must_end_already_never_starts_its_program(jail: BubblewrapSandbox, workspace: Path) -> None:
    jail.why_not()
    token = FakeCancelToken()
    token.end(Interrupted("another thread's mail"))
    with pytest.raises(Interrupted):
        run(jail, workspace, "touch", "began", token=token)
    assert not (workspace / "began").exists()


def test_a_program_that_takes_too_long_is_ended(jail: BubblewrapSandbox, workspace: Path) -> None:
    with pytest.raises(JobTimedOut):
        SandboxedPrograms(jail).run(["sleep", "60"], workspace, b"", {}, 0.5, FakeCancelToken())


def test_when_the_worker_is_killed_nothing_of_its_jail_survives(tmp_path: Path, workspace: Path) -> None:
    with house() as defended:
        defended.arm(workspace)
        os.mkfifo(workspace / "ready")
        words = [sys.executable, "-c", WORKER, str(tmp_path), *defended.argv(Attack("surviving_daemon"))]
        worker = subprocess.Popen(words, cwd=ROOT)
        assert (workspace / "ready").read_text() == "alive"
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        with (workspace / "alive").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # held until the last of them is gone


def test_what_a_killed_worker_left_behind_is_removed_by_the_next_one(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "scratch" / "w-1.abcd" / "cell-old").mkdir(parents=True)
    jail = BubblewrapSandbox("w-2", tmp_path / "scratch")
    assert run(jail, workspace, "true") == (0, "")
    [left] = (tmp_path / "scratch").iterdir()
    assert [path.name for path in left.iterdir()] == ["furniture"]


def test_many_programs_run_side_by_side_each_in_a_cell_of_its_own(jail: BubblewrapSandbox, tmp_path: Path) -> None:
    def one(number: int) -> tuple[int, str]:
        workspace = tmp_path / f"tree-{number}"
        workspace.mkdir()
        return run(jail, workspace, "sh", "-c", f"echo {number} > mine; ls ..; ls /proc | grep -c '^[0-9]'")

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(one, range(16)))
    assert [(code, words.split()[0]) for code, words in seen] == [(0, f"tree-{number}") for number in range(16)]
    assert all(int(words.split()[1]) <= 4 for _, words in seen), "it saw processes of others"


def test_a_driver_that_gives_up_leaves_no_process_and_no_planted_git(jail: BubblewrapSandbox, workspace: Path) -> None:
    def drive() -> None:
        with jail.open(workspace, {}) as sandboxed:
            words = sandboxed.argv(["sh", "-c", "mkdir .git; echo there; sleep 60"])
            child = subprocess.Popen(words, env=dict(sandboxed.env), stdout=subprocess.PIPE)
            children.append(child)
            assert child.stdout
            assert child.stdout.readline() == b"there\n"
            raise Interrupted("another thread's mail")

    children: list[subprocess.Popen[bytes]] = []
    with pytest.raises(Interrupted):
        drive()
    assert children[0].communicate()[0] == b""
    assert children[0].returncode != 0
    assert list(workspace.iterdir()) == []


def test_a_library_that_wants_a_path_gets_one_and_its_environment_ends_there(
    jail: BubblewrapSandbox, workspace: Path
) -> None:
    with jail.open(workspace, {"LANG": "C"}) as sandboxed:
        program = sandboxed.program(["sh", "-c", 'echo "$0 $1"; env; cat /proc/1/environ'])
        out = subprocess.run(
            [program, "more", "words"], env={"TOKEN": "sk-real"}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=True,
        ).stdout  # fmt: skip
    assert out.startswith("more words\n")
    assert "LANG=C\n" in out
    assert "sk-real" not in out


def test_files_that_would_run_as_their_owner_are_made_plain(jail: BubblewrapSandbox, workspace: Path) -> None:
    run(jail, workspace, "sh", "-c", "cp /bin/true mine; chmod 4755 mine; mkdir shut; chmod 0 shut")
    assert (workspace / "mine").stat().st_mode & 0o7777 == 0o755
    assert (workspace / "shut").stat().st_mode & 0o700 == 0o700


def test_a_second_folder_may_be_written_and_is_measured_too(
    jail: BubblewrapSandbox, tmp_path: Path, workspace: Path
) -> None:
    session = tmp_path / "session"
    session.mkdir()
    programs = SandboxedPrograms(jail)
    reach = SandboxPolicy(writable=(session,))
    programs.run(["touch", str(session / "kept")], workspace, b"", {}, 60, FakeCancelToken(), reach)
    assert (session / "kept").exists()
    fill = f"for n in 1 2 3; do head -c 30000000 /dev/zero > {session}/large-$n; done"
    with pytest.raises(Permanent, match="60 MB in files"):
        programs.run(["sh", "-c", fill], workspace, b"", {}, 60, FakeCancelToken(), reach)


def test_a_disk_that_others_filled_ends_the_program_and_nobody_is_blamed(tmp_path: Path, workspace: Path) -> None:
    (workspace / "mine").write_text("as it was")
    jail = working_jail(tmp_path / "scratch", replace(SMALL, free_bytes=10**18))
    with pytest.raises(MachineFault, match="make room"):
        run(jail, workspace, "sleep", "60")
    assert (workspace / "mine").read_text() == "as it was"


def test_a_full_disk_does_not_hide_that_the_job_must_end(tmp_path: Path, workspace: Path) -> None:
    jail = working_jail(tmp_path / "scratch", replace(SMALL, free_bytes=10**18))
    with pytest.raises(Cancelled), jail.open(workspace, {}) as sandboxed:  # noqa: PT012
        subprocess.run(sandboxed.argv(["sleep", "60"]), env=dict(sandboxed.env), check=False)
        raise Cancelled("the customer wrote cancel")


def test_where_bubblewrap_is_missing_an_outside_program_is_refused_with_words(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    jail = BubblewrapSandbox("w-1", tmp_path / "scratch")
    assert jail.why_not() == "bubblewrap (bwrap) is not installed"
    with pytest.raises(Permanent, match="allow_unjailed_agents = true"):
        run(jail, workspace, "touch", "began")
    assert not (workspace / "began").exists()


def test_a_bubblewrap_that_is_installed_but_does_not_work_is_found_out_by_the_trial(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent))
    jail = BubblewrapSandbox("w-1", tmp_path / "scratch")
    assert jail.why_not().endswith("ended with 1: bwrap: No permissions to create new namespace")
    with pytest.raises(Permanent, match="No permissions"):
        run(jail, workspace, "touch", "began")
    monkeypatch.undo()  # it was mended: nobody has to start the worker again
    assert "No permissions" in jail.why_not(), "each look would cost a trial"
    monkeypatch.setattr(sandbox, "_TRIED_AGAIN_SECONDS", 0.0)
    assert run(jail, workspace, "touch", "began")[0] == 0
    assert (workspace / "began").exists()


def test_where_the_operator_allows_it_a_program_runs_without_a_jail(workspace: Path) -> None:
    jail = UnconfinedSandbox("w-1")
    assert run(jail, workspace, "sh", "-c", "cat > said; pwd") == (0, f"{workspace}\n")
    assert (workspace / "said").read_text() == "from outside"
    with jail.open(workspace, {}) as sandboxed:
        sleeper = subprocess.Popen(sandboxed.argv(["sleep", "60"]), env=dict(sandboxed.env))
    assert sleeper.wait() == -signal.SIGKILL


@pytest.mark.parametrize("kind", ["jailed", "open"])
def test_no_other_user_reads_a_key_in_the_list_of_processes(
    kind: str, jail: BubblewrapSandbox, workspace: Path
) -> None:
    place: Sandbox = jail if kind == "jailed" else UnconfinedSandbox("w-1")
    key = f"sk-{secrets.token_hex(16)}"
    for started_as in ("words", "file"):
        with place.open(workspace, {"MY_MODEL_KEY": key}) as sandboxed:
            words = sandboxed.argv(WAITS) if started_as == "words" else [str(sandboxed.program(WAITS))]
            child = subprocess.Popen(
                words, env=dict(sandboxed.env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert child.stdout
            assert child.stdout.readline().strip() == key
            seen = subprocess.run(
                ["sh", "-c", "cat /proc/[0-9]*/cmdline"], user=ANOTHER_USER, capture_output=True, check=False
            ).stdout
            child.communicate("\n")
            assert b"$MY_MODEL_KEY; read" in seen, "the program itself is in the list"
            assert key.encode() not in seen
