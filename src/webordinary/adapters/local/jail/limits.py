"""What one run in a jail may use up, and what is raised when it wants more."""

from __future__ import annotations

from dataclasses import dataclass

from webordinary.model.errors import Permanent

MEGABYTE = 1_000_000


class JailLimitReached(Permanent):
    """A program in a jail used up what it may have; it was ended and its workspace emptied."""


@dataclass(frozen=True, slots=True)
class JailLimits:
    """Wall clock and output are the caller's; these are the jail's."""

    processes: int = 512
    memory_bytes: int = 4_000 * MEGABYTE
    """Of all processes together."""
    disk_bytes: int = 5_000 * MEGABYTE
    """The workspace and what else is writable, with what was there before."""
    files: int = 300_000
    depth: int = 100
    file_bytes: int = 1_000 * MEGABYTE
    open_files: int = 4096
    cpu_seconds: int = 7200
    """Of one process."""
    scratch_bytes: int = 512 * MEGABYTE
    """Each of /tmp, /dev/shm and the home folder; they are memory."""
    free_bytes: int = 200 * MEGABYTE
    """Below this the disk counts as full; nobody is blamed for that who kept to `disk_bytes`."""

    def rlimits(self) -> dict[str, int]:
        """What the kernel enforces per process, by the names of `resource`."""
        return {
            "NPROC": self.processes,  # the kernel exempts root; the watchdog does not
            "DATA": self.memory_bytes,
            "FSIZE": self.file_bytes,
            "NOFILE": self.open_files,
            "CPU": self.cpu_seconds,
            "CORE": 0,
        }
