"""What a jail shows in place of the host's own: names for its one user, and devices that nobody in it owns."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from webordinary.adapters.local.jail.bubblewrap import HOME, USER

_ETC = {
    "passwd": f"site:x:{USER}:{USER}:site:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "group": f"site:x:{USER}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost site\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_NOBODY = 65534


def furnish(folder: Path) -> None:
    """Write it all into an empty folder."""
    (folder / "etc").mkdir(parents=True)
    for name, text in _ETC.items():
        (folder / "etc" / name).write_text(text, encoding="utf-8")
    if os.geteuid() == 0:
        _make_devices(folder / "dev")


def _make_devices(folder: Path) -> None:
    """Root owns the host's devices, and so would a jail of root: it could `chmod 0 /dev/null` for everybody."""
    folder.mkdir()
    for name, numbers in _DEVICES.items():
        node = folder / name
        os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(*numbers))
        os.chown(node, _NOBODY, _NOBODY)
        node.chmod(0o666)
