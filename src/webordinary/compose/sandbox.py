"""Where outside programs run: the sandbox, and the builders that work in it."""

from __future__ import annotations

import logging
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from webordinary.adapters.builders import BuildEnv, Dependencies, builders
from webordinary.adapters.files.screenshots import BROWSER_BYTES
from webordinary.adapters.sandbox.bubblewrap import MEGABYTE, SandboxLimits
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox, SandboxedPrograms, UnconfinedSandbox
from webordinary.config import Config
from webordinary.jobs.ports import Builder, Sandbox
from webordinary.model.errors import MachineFault

_log = logging.getLogger(__name__)


def sandbox_of(config: Config, worker_id: str, home: Path) -> Sandbox:
    """Where a worker's outside programs run; without walls only where none stand and the operator said so."""
    limits = _limits_of(config)
    readable = [Path(path) for path in config.jail_readable]
    sandbox = BubblewrapSandbox(worker_id, home / ".jail", limits, readable, [config.data])
    if config.allow_unjailed_agents and (reason := _why_none_works(sandbox)):
        _log.warning("outside agents and builds run without a sandbox, as the settings allow: %s", reason)
        return UnconfinedSandbox(worker_id, limits)
    return sandbox  # where none works, it refuses every program by itself


def browser_sandbox_of(config: Config, worker_id: str, home: Path) -> BubblewrapSandbox:
    """Where a worker's browser runs; never without walls."""
    return BubblewrapSandbox(worker_id, home / ".jail", replace(_limits_of(config), mapped_bytes=BROWSER_BYTES))


def _limits_of(config: Config) -> SandboxLimits:
    return SandboxLimits(
        processes=config.jail_processes,
        memory_bytes=config.jail_memory_mb * MEGABYTE,
        disk_bytes=config.jail_disk_mb * MEGABYTE,
    )


def _why_none_works(sandbox: BubblewrapSandbox) -> str:
    """Empty also while the machine cannot even try it: a passing fault must not take the walls away."""
    with suppress(MachineFault):
        return sandbox.why_not()
    return ""


def builders_of(config: Config, sandbox: Sandbox, home: Path) -> dict[str, Builder]:
    """All builders; those that run outside programs do so in the sandbox, or say why they cannot.

    `home` is this process's alone: what a killed worker left of a build in it is removed.
    """
    builds = home / ".builds"
    shutil.rmtree(builds, ignore_errors=True)
    build_env = BuildEnv(
        SandboxedPrograms(sandbox, config.interrupt_grace_seconds),
        builds,
        sandbox.why_not if isinstance(sandbox, BubblewrapSandbox) else str,
        config.build_seconds,
    )
    return builders(
        build_env, Dependencies(config.data / "cache" / "npm", config.install_scripts), config.build_command
    )


def why_no_sandbox() -> str:
    """Why outside agents and builds cannot run in a sandbox on this machine, tried for real; empty if they can."""
    with tempfile.TemporaryDirectory(prefix="webordinary-") as folder:
        return BubblewrapSandbox("trial", Path(folder) / "jail").why_not()
