"""A real Postfix on loopback, with its own configuration and queue in a temporary folder; needs root."""

from __future__ import annotations

import shutil
import smtplib
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.processes import own_port

MAIN = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
myhostname = mx.example.com
mydestination =
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
relay_domains = example.com
smtpd_relay_restrictions = permit_mynetworks, reject
smtp_bind_address = 127.0.0.1
alias_maps =
alias_database =
queue_run_delay = 2s
minimal_backoff_time = 2s
maximal_backoff_time = 2s
{more}
"""
SERVICES = """
127.0.0.1:{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
{more}
"""


@dataclass
class Postfix:
    folder: Path
    port: int

    def send(self, sender: str, recipient: str, raw: bytes) -> None:
        with smtplib.SMTP("127.0.0.1", self.port, timeout=60) as smtp:
            smtp.sendmail(sender, [recipient], raw)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def until_logged(self, words: str) -> str:
        """The log once it says so."""
        deadline = time.monotonic() + 60
        while words not in (said := self.log()):
            assert time.monotonic() < deadline, said
            time.sleep(0.05)
        return said


@contextmanager
def running_postfix(settings: str, services: str = "") -> Iterator[Postfix]:
    folder = Path(tempfile.mkdtemp(prefix="postfix-"))
    folder.chmod(0o755)
    (folder / "queue").mkdir(mode=0o755)
    (folder / "data").mkdir(mode=0o700)
    shutil.chown(folder / "data", "postfix")
    (folder / "main.cf").write_text(MAIN.format(folder=folder, more=settings))
    command = ["postfix", "-c", str(folder)]
    with own_port() as port:
        (folder / "master.cf").write_text(SERVICES.format(port=port, more=services))
        server = Postfix(folder, port)
        try:
            subprocess.run([*command, "start"], check=True, capture_output=True, timeout=60)
            server.until_logged("daemon started")
            yield server
        finally:
            subprocess.run([*command, "stop"], check=False, capture_output=True, timeout=60)
            shutil.rmtree(folder)
