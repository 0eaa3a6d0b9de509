"""A disk whose power can be cut: an ext4 file system on a loop device that loses all that was not synced.

The kernel's own shutdown call for file systems drops every page and journal entry that has not reached the disk, as
xfstests do it. What is mounted again afterwards is what a machine finds after a power cut.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import IN_CI

PROGRAMS = ("mkfs.ext4", "losetup", "mount", "umount", "unshare")
_SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125  # EXT4_IOC_SHUTDOWN: _IOR('X', 125, __u32)
_NO_LOG_FLUSH = 2
_UNMOUNT_SECONDS = 60.0
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass
class ForgetfulDisk:
    """An ext4 file system at `path`, mounted."""

    image: Path
    path: Path
    boots: int = 0

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.path)], check=True, capture_output=True)

    def cut_power(self, end_processes: Callable[[], None]) -> None:
        """Drop what was not synced, then mount what is left; `end_processes` ends all that use the disk."""
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(folder, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(folder)
        end_processes()
        self.unmount()
        self.boots += 1
        self.mount()

    def unmount(self) -> None:
        """Unmount it here, and wait until the last process that saw it in a mount namespace of its own is gone."""
        deadline, pause = time.monotonic() + _UNMOUNT_SECONDS, threading.Event()
        while not self._is_unmounted():
            assert time.monotonic() < deadline, f"{self.path} is still in use"
            pause.wait(0.05)

    def _is_unmounted(self) -> bool:
        if self.path.is_mount():
            subprocess.run(["umount", str(self.path)], check=False, capture_output=True)
        devices = subprocess.run(["losetup", "--associated", str(self.image)], check=True, capture_output=True)
        return not devices.stdout

    def as_booted(self) -> tuple[str, ...]:
        """The start of a command line whose program sees a boot of its own, one for each power cut."""
        boot = self.image.with_name(f"boot-{self.boots}")
        boot.write_text(f"00000000-0000-4000-8000-{self.boots:012d}\n")
        script = f'mount --bind "$0" {_BOOT_ID} && exec "$@"'
        return ("unshare", "--mount", "sh", "-c", script, str(boot))


@contextmanager
def forgetful_disk(folder: Path, megabytes: int = 512) -> Iterator[ForgetfulDisk]:
    """A new one below `folder`; skips, outside CI, where none can be mounted."""
    disk = ForgetfulDisk(folder / "disk.img", folder / "disk")
    disk.path.mkdir()
    with disk.image.open("wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(disk.image)], check=True, capture_output=True)
    try:
        disk.mount()
    except subprocess.CalledProcessError as failed:
        words = f"no file system can be mounted here: {failed.stderr.decode().strip()}"
        pytest.fail(words) if IN_CI else pytest.skip(words)
    try:
        yield disk
    finally:
        disk.unmount()
