"""The first program in a sandbox: says that it is there, hands out the listener for the proxy, becomes the program.

Runs by itself (`python -I -S inside.py LIMITS PORT PROGRAM ARG…`) and imports nothing of ours. Without the answer
from outside it ends, so that no program ever runs unwatched. The answer carries the program's environment, as every
user of the machine can read arguments, and the system call filter.
"""

import _signal  # type: ignore[import-not-found]  # the small halves of `signal` and `socket`: this runs before every program
import _socket
import ctypes
import os
import resource
import struct
import sys

HANDSHAKE_SOCKET = "/run/webordinary/handshake"
READY = b"R"
ANSWER = struct.Struct("!1sII")
"""READY, the bytes of the system call filter, the bytes of the environment; then both."""
_SET_SECCOMP, _MODE_FILTER = 22, 2
_CPU_GRACE_SECONDS = 5


def greet(port: int) -> tuple[bytes, dict[bytes, bytes]]:
    """Tell the guard outside who we are (it reads our process id from the socket), and wait for its answer."""
    guard = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    guard.connect(HANDSHAKE_SOCKET)
    attached = []
    if port:
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        attached = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener.fileno()))]
    guard.sendmsg([READY], attached)
    ready, rules, settings = ANSWER.unpack(receive(guard, ANSWER.size))
    if ready != READY:
        sys.exit("the sandbox was closed before its program began")
    calls, env = receive(guard, rules), receive(guard, settings)
    guard.close()
    return calls, dict(item.split(b"=", 1) for item in env.split(b"\0") if item)


def receive(guard: _socket.socket, size: int) -> bytes:
    """Exactly so many bytes."""
    received = bytearray()
    while len(received) < size:
        chunk = guard.recv(size - len(received))
        if not chunk:
            sys.exit("the sandbox was closed before its program began")
        received += chunk
    return bytes(received)


def filter_calls(program: bytes) -> None:
    """Let the kernel check every system call from now on, also those of all children."""
    code = ctypes.create_string_buffer(program, len(program))
    filter_ = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.create_string_buffer(filter_, len(filter_))) != 0:
        sys.exit(f"the kernel takes no system call filter ({os.strerror(ctypes.get_errno())})")


def limit(limits: str) -> None:
    """Set `NAME=number` limits, never above the current hard ones.

    The kernel sends SIGXCPU at the soft CPU limit and SIGKILL at the hard one. The hard one is higher, so that the
    exit code of a program without CPU time differs from that of a program that the kernel killed for want of memory.
    """
    for item in limits.split(","):
        name, _, number = item.partition("=")
        kind = getattr(resource, f"RLIMIT_{name}")
        soft = int(number)
        most = soft + _CPU_GRACE_SECONDS if name == "CPU" else soft
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            soft, most = min(soft, hard), min(most, hard)
        resource.setrlimit(kind, (soft, most))


def main() -> None:
    """Become the program."""
    limits, port, *program = sys.argv[1:]
    os.setpgrp()  # so that an interrupt from outside reaches all that the program starts
    calls, env = greet(int(port))
    limit(limits)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ, _signal.SIGXCPU):  # a program would inherit an ignored signal
        _signal.signal(number, _signal.SIG_DFL)
    filter_calls(calls)
    try:
        os.execvpe(program[0], program, env)  # noqa: S606
    except OSError as problem:
        hint = "if it is not below /usr, name its folder in jail_readable"
        sys.stderr.write(f"{program[0]} cannot be started in the sandbox ({problem.strerror}); {hint}\n")
        sys.exit(127)


if __name__ == "__main__":
    main()
