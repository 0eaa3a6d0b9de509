"""Mail comes through a real Postfix: as a relay by SMTP, and through a pipe to `webordinary receive`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import webordinary
from tests.certificates import certificate
from tests.harness.embedded import AMELIA_SCOTT, SCOTT
from tests.integration.postfix import running_postfix
from webordinary.compose.embedded import open_embedded
from webordinary.config import FILE_NAME, Config
from webordinary.entrypoints.server import smtp_server
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.projects import Project, Sender

ROOT_ONLY = pytest.mark.may_skip(os.geteuid() != 0, reason="only root starts Postfix")
EDIT = "edit@example.com"


def letter(text: str) -> bytes:
    mail = CustomerMail(SCOTT, EDIT, "Title", text, message_id=f"<{text}@example.com>")
    return write_mail(mail, datetime(2026, 11, 18, 12, tzinfo=UTC))


@pytest.fixture
def config() -> Iterator[Config]:
    """A data folder with a customer, in a place that another user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="webordinary-"))
    config = Config(data=folder / "data", mailbox=EDIT, smtp_port=0)
    with open_embedded(config) as services:
        now = services.clock.now()
        services.directory.add_project(Project("amelia", "amelia.git"), now)
        services.directory.add_sender(Sender(SCOTT, AMELIA_SCOTT), now)
    (config.data / FILE_NAME).write_text(f'mailbox = "{EDIT}"\n')
    yield config
    shutil.rmtree(folder)


def stored(config: Config) -> list[tuple[str, str, bytes]]:
    with open_embedded(config) as services:
        mails = [services.raw_mails.load(one.email_id) for one in services.overview.recent_mails(None, 10)]
    return [(mail.envelope.mail_from, mail.envelope.recipient, mail.raw) for mail in mails]


@pytest.fixture(autouse=True)
def _root(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("xdist_group") and os.geteuid() != 0:
        pytest.skip("only root starts Postfix")


@pytest.mark.needs("postfix", "openssl")
@ROOT_ONLY
@pytest.mark.xdist_group("postfix")
def test_postfix_relays_with_starttls_and_returns_mail_that_is_not_ours(config: Config, tmp_path: Path) -> None:
    made = certificate(tmp_path)
    config = replace(config, smtp_cert_file=str(made.cert), smtp_key_file=str(made.key))
    with open_embedded(config) as services:
        server = smtp_server(services)
        server.start()
        settings = (
            f"relay_transport = smtp:[127.0.0.1]:{server.port}\n"
            f"smtp_tls_security_level = encrypt\nsmtp_tls_CAfile = {made.cert}\n"
        )
        try:
            with running_postfix(settings) as postfix:
                postfix.send(SCOTT, EDIT, letter("wish"))
                postfix.until_logged("status=sent (250 2.0.0 accepted as ")
                postfix.send(SCOTT, "nobody@example.com", letter("not ours"))
                postfix.until_logged("said: 550 5.1.1 no such mailbox here")
        finally:
            server.stop()
    ((mail_from, recipient, raw),) = stored(config)
    assert (mail_from, recipient) == (SCOTT, EDIT)
    assert raw.endswith(letter("wish")[-20:])


def python_for_nobody() -> list[str]:
    """A Python that another user may run; the one of this virtual environment may lie in a closed home."""
    version = f"python3.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        trial = ["su", "-s", "/bin/sh", "nobody", "-c", f"{python} -c 1"]
        if shutil.which("su") and subprocess.run(trial, check=False, capture_output=True).returncode == 0:
            return [python]
    return []


@pytest.mark.needs("postfix")
@pytest.mark.may_skip(os.geteuid() != 0 or not python_for_nobody(), reason="no Python that another user may run")
@pytest.mark.xdist_group("postfix")
def test_postfix_hands_a_mail_to_receive_and_tries_again_until_it_is_stored(config: Config) -> None:
    python = python_for_nobody()
    if not python:
        pytest.skip("no Python that another user may run")
    libraries = f"{Path(webordinary.__file__).parents[1]}:{next(p for p in sys.path if p.endswith('site-packages'))}"
    _give_to_nobody(config.data.parent)
    aside = config.data.with_name("aside")
    config.data.rename(aside)
    pipe = (
        "webordinary unix - n n - 1 pipe\n  flags=DRX user=nobody\n"
        f"  argv=/usr/bin/env PYTHONPATH={libraries} PYTHONDONTWRITEBYTECODE=1 {python[0]} -m webordinary receive\n"
        f"    --data {config.data} --from ${{sender}} --to ${{recipient}}\n"
    )
    with running_postfix(
        "relay_transport = webordinary\nwebordinary_destination_recipient_limit = 1\n", pipe
    ) as postfix:
        postfix.send(SCOTT, "edit+amelia@example.com", letter("wish"))
        postfix.until_logged("status=deferred")
        aside.rename(config.data)
        postfix.until_logged("status=sent (delivered via webordinary service")
        postfix.send(SCOTT, "nobody@example.com", letter("not ours"))
        said = postfix.until_logged("status=bounced")
    assert "no such mailbox here" in said
    ((mail_from, recipient, raw),) = stored(config)
    assert (mail_from, recipient) == (SCOTT, "edit+amelia@example.com")
    assert b"\r\nwish" in raw


@pytest.mark.needs("postfix")
@pytest.mark.may_skip(os.geteuid() != 0 or not python_for_nobody(), reason="no Python that another user may run")
@pytest.mark.xdist_group("postfix")
@pytest.mark.parametrize("known", ["mydestination = example.com\nrelay_domains =", "relay_domains ="])
def test_the_commands_of_the_docs_bring_mail_to_receive(config: Config, known: str) -> None:
    python = python_for_nobody()
    if not python:
        pytest.skip("no Python that another user may run")
    page = (Path(__file__).parents[2] / "docs" / "mail.md").read_text("utf-8")
    section = page.partition("\n## Postfix\n")[2].partition("\n## ")[0].replace("\\\n", " ")
    commands = [shlex.split(line) for line in re.findall(r"sudo postconf [^\n`]+", section)]
    local = "mydestination" in known
    given = [word for command in commands for word in command[2:] if word.partition("=")[0] not in NOT_HERE[local]]
    (row,) = re.findall(r"^echo '(.+)' \|", section, re.M)
    table = config.data.parent / "transport"
    table.write_text(row + "\n")
    subprocess.run(["postmap", f"hash:{table}"], check=True, timeout=60)
    settings = "\n".join([known, *given]).replace("/etc/postfix/transport", str(table))
    libraries = f"{Path(webordinary.__file__).parents[1]}:{next(p for p in sys.path if p.endswith('site-packages'))}"
    program = f"/usr/bin/env PYTHONPATH={libraries} PYTHONDONTWRITEBYTECODE=1 {python[0]} -m webordinary"
    pipe = re.findall(r"^webordinary unix .*?(?=^```)", section, re.M | re.S)[0]
    for theirs, ours in (
        ("/opt/webordinary/bin/webordinary", program),
        ("/var/lib/webordinary", str(config.data)),
        ("user=webordinary", "user=nobody"),
    ):
        assert theirs in pipe
        pipe = pipe.replace(theirs, ours)
    _give_to_nobody(config.data.parent)
    with running_postfix(settings, pipe) as postfix:
        postfix.send(SCOTT, "edit+token@example.com", letter("wish"))
        postfix.until_logged("status=sent (delivered via webordinary service")
    assert [recipient for _, recipient, _ in stored(config)] == ["edit+token@example.com"]


NOT_HERE = {True: {"relay_domains"}, False: {"local_recipient_maps"}}
"""Of the commands, those for a Postfix that knows the domain, and for one that does not."""


def _give_to_nobody(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, "nobody", "nogroup")
    folder.chmod(0o755)


def receive(config: Config, raw: bytes, *flags: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "webordinary", "receive", "--data", str(config.data), *flags]
    return subprocess.run(command, input=raw, capture_output=True, check=False)


def test_receive_stores_a_mail_file_as_smtp_would_and_knows_it_again(config: Config) -> None:
    lines = b"From scott@example.com Mon Nov 16 10:00:00 2026\n" + letter("wish").replace(b"\r\n", b"\n")
    answers = [receive(config, lines, "--from", SCOTT, "--to", EDIT) for _ in range(2)]
    assert [answer.returncode for answer in answers] == [os.EX_OK, os.EX_OK]
    ((mail_from, recipient, raw),) = stored(config)
    assert (mail_from, recipient, raw) == (SCOTT, EDIT, letter("wish"))


def test_receive_answers_in_the_exit_codes_of_mail_servers(config: Config) -> None:
    assert receive(config, letter("wish"), "--to", "nobody@example.com").returncode == os.EX_NOUSER
    assert receive(config, b"", "--to", EDIT).returncode == os.EX_TEMPFAIL
    assert receive(replace(config, data=config.data / "none"), letter("wish")).returncode == os.EX_TEMPFAIL
    (config.data / FILE_NAME).write_text("max_mail_bytes = 10000\n")
    assert receive(config, letter("x" * 20_000)).returncode == os.EX_DATAERR
    (config.data / FILE_NAME).write_text("nonsense = 1\n")
    assert receive(config, letter("wish")).returncode == os.EX_TEMPFAIL
