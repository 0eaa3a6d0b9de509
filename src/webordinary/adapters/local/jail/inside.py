"""The first program in a jail: says that it is there, hands out the listener for the proxy, becomes the program.

Runs by itself (`python -I -S inside.py LIMITS PORT PROGRAM ARG…`) and imports nothing of ours. Without the answer
from outside it ends, so that no program ever runs unwatched.
"""

import _signal  # type: ignore[import-not-found]  # the small halves of `signal` and `socket`: this runs before every program
import _socket
import os
import resource
import struct
import sys

DOOR = "/run/webordinary/door"
READY = b"R"


def greet(port: int) -> None:
    """Tell the other side of the door who we are (it reads our process id from the socket) and wait for it."""
    door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    door.connect(DOOR)
    attached = []
    if port:
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        attached = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener.fileno()))]
    door.sendmsg([READY], attached)
    if door.recv(1) != READY:
        sys.exit("the jail was closed before its program began")
    door.close()


def limit(limits: str) -> None:
    """Set `NAME=number` limits, hard ones, never above those that already hold."""
    for item in limits.split(","):
        name, _, number = item.partition("=")
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        most = int(number) if hard == resource.RLIM_INFINITY else min(int(number), hard)
        resource.setrlimit(kind, (most, most))


def main() -> None:
    """Become the program."""
    limits, port, *program = sys.argv[1:]
    os.setpgrp()  # so that an interrupt from outside reaches all that the program starts
    greet(int(port))
    limit(limits)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, and a program would inherit that
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execvp(program[0], program)  # noqa: S606
    except OSError as problem:
        hint = "if it is not below /usr, name its folder in jail_readable"
        sys.stderr.write(f"{program[0]} cannot be started in the jail ({problem.strerror}); {hint}\n")
        sys.exit(127)


if __name__ == "__main__":
    main()
