"""Where outside programs run: the jail, and the builders that work in it."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from webordinary.adapters.local.builders import Dependencies, Workshop, builders
from webordinary.adapters.local.jail.cells import BubblewrapJail
from webordinary.adapters.local.jail.limits import MEGABYTE, JailLimits
from webordinary.adapters.local.jail.open_cells import OpenJail
from webordinary.adapters.local.jail.programs import JailedPrograms
from webordinary.config import Config
from webordinary.site.ports import Builder, Jail

_log = logging.getLogger(__name__)


def jail_of(config: Config, worker_id: str, home: Path) -> Jail:
    """Where a worker's outside programs run; without walls only where none stand and the operator said so."""
    limits = JailLimits(
        processes=config.jail_processes,
        memory_bytes=config.jail_memory_mb * MEGABYTE,
        disk_bytes=config.jail_disk_mb * MEGABYTE,
    )
    jail = BubblewrapJail(worker_id, home / ".jail", limits, [Path(path) for path in config.jail_readable])
    if config.allow_unjailed_agents and (reason := jail.why_not()):
        _log.warning("outside agents and builds run without a jail, as the settings allow: %s", reason)
        return OpenJail(worker_id, limits)
    return jail  # where none works, it refuses every program by itself


def builders_of(config: Config, jail: Jail, home: Path) -> dict[str, Builder]:
    """All builders; those that run outside programs do so in the jail, or say why they cannot."""
    workshop = Workshop(
        JailedPrograms(jail, config.interrupt_grace_seconds),
        home / ".builds",
        jail.why_not if isinstance(jail, BubblewrapJail) else str,
        config.build_seconds,
    )
    return builders(workshop, Dependencies(config.data / "cache" / "npm", config.install_scripts), config.build_command)


def why_no_jail() -> str:
    """Why outside agents and builds cannot run in a jail on this machine, tried for real; empty if they can."""
    with tempfile.TemporaryDirectory(prefix="webordinary-") as folder:
        return BubblewrapJail("trial", Path(folder) / "jail").why_not()
