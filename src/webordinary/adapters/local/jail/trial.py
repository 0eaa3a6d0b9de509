"""The trial of a jail: a program in it looks whether it is really shut."""

from __future__ import annotations

import subprocess

from webordinary.adapters.local.jail.bubblewrap import python

_LOOK = """
import os, _socket
status = open("/proc/self/status").read()
assert "CapEff:\\t0000000000000000" in status, "it has capabilities"
assert "NoNewPrivs:\\t1" in status, "it may gain privileges"
assert os.getuid() != 0, "it runs as root"
assert not os.path.exists("/etc/shadow"), "it sees /etc"
try:
    open("/proc/sys/kernel/core_pattern", "r+")
except OSError:
    pass
else:
    raise AssertionError("it may set the kernel up")
probe = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
try:
    probe.connect(("192.0.2.1", 9))
except OSError:
    print("shut")
else:
    raise AssertionError("it has a way to the network")
"""
PROGRAM = (python(), "-I", "-S", "-c", _LOOK)


def no_reason(tried: subprocess.CompletedProcess[bytes]) -> str:
    """Empty if the trial went well, else why not."""
    if tried.returncode == 0 and tried.stdout.strip() == b"shut":
        return ""
    words = tried.stderr.decode(errors="replace").strip().splitlines()
    return f"a trial of bwrap ended with {tried.returncode}: {words[-1][:300] if words else 'no words'}"
