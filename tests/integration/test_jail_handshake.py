"""Programs that connect to the handshake socket of a sandbox and end before it answers."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from contextlib import closing
from pathlib import Path

import pytest

from webordinary.adapters.sandbox.guard import Handshake

CONNECTS = """
import socket
guard, listener = socket.socket(socket.AF_UNIX), socket.create_server(("127.0.0.1", 0))
guard.connect("handshake")
socket.send_fds(guard, [b"R"], [listener.fileno()])
"""


def test_a_program_that_ends_before_the_answer_leaves_nothing_open(tmp_path: Path) -> None:
    gc.collect()  # what others left
    with closing(Handshake(tmp_path, {}, b"")) as handshake, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        subprocess.run([sys.executable, "-c", CONNECTS], cwd=tmp_path, check=True)
        with pytest.raises((FileNotFoundError, ProcessLookupError)):
            handshake.answer()
        gc.collect()
    assert [str(one.message) for one in told] == []
