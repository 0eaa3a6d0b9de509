"""A real Dovecot on loopback, with its own configuration in a temporary folder."""

from __future__ import annotations

import getpass
import imaplib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.certificates import Certificate, certificate
from tests.processes import own_port

USER, PASSWORD, TOKEN = "edit@example.com", "kiln & glaze", "ya29.a-token"
CONFIG = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
instance_name = {name}
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <{certificate.cert}
ssl_key = <{certificate.key}
disable_plaintext_auth = no
auth_mechanisms = plain login{mechanisms}
mail_location = maildir:{folder}/mail
default_internal_user = {internal}
default_internal_group = {internal_group}
default_login_user = {login}
first_valid_uid = 1
mail_max_userip_connections = 50
{more}
default_vsz_limit = 0
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%u {folder}/users
}}
{oauth}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/home allow_all_users=yes
}}
"""
OAUTH = """
passdb {{
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = {folder}/oauth.conf
}}
"""


@dataclass
class Dovecot:
    folder: Path
    port: int
    tls_port: int
    certificate: Certificate
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            ["dovecot", "-F", "-c", str(self.folder / "dovecot.conf")], stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.tls_port), 5).close()
            except OSError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline, "Dovecot does not listen"
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.communicate(timeout=60)
            self.process = None

    def client(self) -> imaplib.IMAP4:
        """Another reader of the same mailbox."""
        client = imaplib.IMAP4("127.0.0.1", self.port, timeout=60)
        client.login(USER, PASSWORD)
        client.select("INBOX")
        return client

    def put(self, *mails: bytes, folder: str = "INBOX") -> None:
        client = self.client()
        for mail in mails:
            assert client.append(folder, "", None, mail)[0] == "OK"
        client.logout()

    def forget_indexes(self) -> None:
        """As a restored or migrated mailbox: the mails are there, with another UIDVALIDITY and without keywords."""
        self.stop()
        mail = self.folder / "mail"
        for file in mail.glob("dovecot*"):
            file.unlink()
        for file in (mail / "cur").iterdir():
            file.rename(file.with_name(file.name.partition(":")[0] + ":2,"))
        self.start()

    def uidvalidity(self) -> bytes:
        client = self.client()
        _, (number, *_) = client.response("UIDVALIDITY")
        client.logout()
        return bytes(number or b"")

    def flags(self, folder: str = "INBOX") -> Sequence[bytes]:
        """One line for each mail."""
        client = self.client()
        client.select(folder, readonly=True)
        lines = client.fetch("1:*", "(FLAGS)")[1] if any(client.search(None, "ALL")[1]) else []
        client.logout()
        return [line for line in lines if isinstance(line, bytes)]


@contextmanager
def running_dovecot(token_url: str = "", more: str = "") -> Iterator[Dovecot]:
    """`token_url` answers for OAuth2 tokens: `{"sub": user}` or 401. `more` is further configuration."""
    folder = Path(tempfile.mkdtemp(prefix="dovecot-"))
    with own_port() as plain, own_port() as tls:
        server = Dovecot(folder, plain, tls, certificate(folder))
        try:
            _configure(server, token_url, more)
            server.start()
            yield server
        finally:
            server.stop()
            shutil.rmtree(folder)


def _configure(server: Dovecot, token_url: str, more: str) -> None:
    folder, is_root = server.folder, os.getuid() == 0
    folder.chmod(0o755)
    me = getpass.getuser()
    for name in ("mail", "home"):
        (folder / name).mkdir()
        if is_root:
            shutil.chown(folder / name, "nobody")
    (folder / "users").write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
    (folder / "oauth.conf").write_text(f"tokeninfo_url = {token_url}?access_token=\nusername_attribute = sub\n")
    (folder / "dovecot.conf").write_text(
        CONFIG.format(
            folder=folder,
            name=folder.name,
            more=more,
            certificate=server.certificate,
            port=server.port,
            tls_port=server.tls_port,
            internal="dovecot" if is_root else me,
            internal_group="dovecot" if is_root else me,
            login="dovenull" if is_root else me,
            uid="nobody" if is_root else os.getuid(),
            gid="nogroup" if is_root else os.getgid(),
            mechanisms=" xoauth2" if token_url else "",
            oauth=OAUTH.format(folder=folder) if token_url else "",
        )
    )
