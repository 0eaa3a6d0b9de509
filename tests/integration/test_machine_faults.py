"""What the machine does to a job is not held against its mail: killed programs and trials, full disks."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.git.command import Git, GitFailed
from webordinary.adapters.sandbox.bubblewrap import MEGABYTE, SandboxLimitExceeded, SandboxLimits
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox, SandboxedPrograms
from webordinary.model.errors import (
    MACHINE_FAULT_SECONDS,
    MachineFault,
    MachineFaultRetries,
    Permanent,
    ProgramKilled,
    is_machine_fault,
)


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.needs("bwrap")
def test_a_killed_trial_says_nothing_about_the_jail_and_the_next_call_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jail = BubblewrapSandbox("w-1", tmp_path / "jail")
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin" / "bwrap", "kill -9 $$")
    with monkeypatch.context() as path:
        path.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        with pytest.raises(MachineFault, match="killed"):
            jail.why_not()
    assert jail.why_not() == ""


@pytest.mark.needs("bwrap")
def test_a_program_that_is_killed_in_its_jail_is_told_apart_from_one_that_fails(tmp_path: Path) -> None:
    programs, workspace = SandboxedPrograms(BubblewrapSandbox("w-1", tmp_path / "jail")), tmp_path / "site"
    workspace.mkdir()

    def run(text: str) -> int:
        return programs.run(["/bin/sh", "-c", text], workspace, b"", {}, 60.0, FakeCancelToken())[0]

    with pytest.raises(ProgramKilled, match="killed from outside"):
        run("kill -9 $$")
    assert run("exit 3") == 3
    assert run("kill -11 $$") in (-signal.SIGSEGV, 128 + signal.SIGSEGV)


@pytest.mark.needs("bwrap")
def test_a_program_that_its_jail_ends_for_want_of_too_much_is_to_blame_itself(tmp_path: Path) -> None:
    limits = SandboxLimits(memory_bytes=100 * MEGABYTE)
    programs, workspace = SandboxedPrograms(BubblewrapSandbox("w-1", tmp_path / "jail", limits)), tmp_path / "site"
    workspace.mkdir()
    hog = "head -c 300000000 /dev/zero > /dev/shm/a; sleep 60"
    with pytest.raises(SandboxLimitExceeded):
        programs.run(["/bin/sh", "-c", hog], workspace, b"", {}, 60.0, FakeCancelToken())


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("before", ["", "trap '' XCPU; "])
def test_a_program_that_uses_up_its_cpu_time_is_to_blame_itself(tmp_path: Path, before: str) -> None:
    limits = SandboxLimits(cpu_seconds=1)
    programs, workspace = SandboxedPrograms(BubblewrapSandbox("w-1", tmp_path / "jail", limits)), tmp_path / "site"
    workspace.mkdir()
    with pytest.raises(SandboxLimitExceeded, match="CPU time"):
        programs.run(["/bin/sh", "-c", f"{before}while :; do :; done"], workspace, b"", {}, 60.0, FakeCancelToken())


@pytest.mark.needs("bwrap")
def test_the_kernels_cpu_limit_does_not_look_like_a_program_that_was_killed_from_outside(tmp_path: Path) -> None:
    programs, workspace = SandboxedPrograms(BubblewrapSandbox("w-1", tmp_path / "jail")), tmp_path / "site"
    workspace.mkdir()
    with pytest.raises(SandboxLimitExceeded, match="CPU time"):
        programs.run(["/bin/sh", "-c", "kill -XCPU $$"], workspace, b"", {}, 60.0, FakeCancelToken())


@pytest.mark.needs("bwrap")
def test_a_driver_whose_program_was_ended_by_the_guard_reports_no_fault_of_the_machine(tmp_path: Path) -> None:
    limits = SandboxLimits(memory_bytes=100 * MEGABYTE)
    jail, workspace = BubblewrapSandbox("w-1", tmp_path / "jail", limits), tmp_path / "site"
    workspace.mkdir()
    hog = "head -c 300000000 /dev/zero > /dev/shm/a; sleep 60"

    def drive() -> None:
        with jail.open(workspace, {}) as sandboxed:
            subprocess.run(sandboxed.argv(["/bin/sh", "-c", hog]), env=dict(sandboxed.env), check=False, timeout=60)
            raise ProgramKilled("the agent")

    with pytest.raises(SandboxLimitExceeded) as raised:
        drive()
    assert not is_machine_fault(raised.value)


def test_a_killed_git_and_one_without_disk_space_memory_or_descriptors_are_faults_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = Git(tmp_path / "repository", "w-1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    script(tmp_path / "git", "kill -9 $$")
    with pytest.raises(ProgramKilled):
        git("status")
    for words in (
        "fatal: write error: No space left on device",
        "fatal: sha1 file tmp_idx write error. Out of diskspace",
        "fatal: unable to fork",
        "fatal: packfile a.pack cannot be mapped, check sys.vm.max_map_count and/or RLIMIT_DATA: ",
        "git: error while loading shared libraries: libc.so.6: failed to map segment from shared object",
        "git: error while loading shared libraries: libz.so.1: cannot open shared object file: Error 24",
    ):
        script(tmp_path / "git", f"echo '{words}' >&2; exit 128")
        with pytest.raises(GitFailed) as full:
            git("status")
        assert is_machine_fault(full.value)
    script(tmp_path / "git", "echo 'fatal: bad object' >&2; exit 128")
    with pytest.raises(GitFailed) as broken:
        git("status")
    assert not is_machine_fault(broken.value)


def test_a_step_that_fails_by_the_machine_is_called_again_for_a_day() -> None:
    now = [0.0]
    retries = MachineFaultRetries(lambda: now[0])
    full = OSError(errno.ENOSPC, "No space left on device")
    for now[0] in (0.0, 3600.0, MACHINE_FAULT_SECONDS - 1):
        assert retries.calls_again("a, ParseEmail", full)
    now[0] = MACHINE_FAULT_SECONDS
    assert not retries.calls_again("a, ParseEmail", full)
    assert not retries.calls_again("b, ParseEmail", Permanent("not a mail"))


def test_a_step_that_failed_by_the_machine_and_went_well_for_a_day_has_another_day() -> None:
    now = [0.0]
    retries = MachineFaultRetries(lambda: now[0])
    full = OSError(errno.ENOSPC, "No space left on device")
    assert retries.calls_again("a, ParseEmail", full)
    now[0] = MACHINE_FAULT_SECONDS
    assert retries.calls_again("a, ParseEmail", full)
