"""How many mails a second are taken durably: over SMTP with 20 connections, and from a full IMAP mailbox?

Workload: mails of 2 kB from 20 customers. SMTP: the intake of `webordinary up` in a process of its own; a mail counts
when its 250 came, so its bytes, its row and the start of its workflow are synced. IMAP: the reader of `up` on a real
Dovecot; a mail counts when it is stored and flagged.
Unit: mails per second, clients and servers on the same machine; the bars are on the medians.
"""

from __future__ import annotations

import os
import smtplib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from harness import Options, bar, interleaved, options, report, summary, working_folder
from webordinary.compose.background import mail_readers
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests know how to start a Dovecot
from tests.integration.dovecot import PASSWORD, USER, running_dovecot

CONNECTIONS = 20
SMTP_AT_LEAST, IMAP_AT_LEAST = 400.0, 100.0
SERVER = """
import sys
from pathlib import Path
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.entrypoints.server import smtp_server
with open_embedded(Config.load(overrides={"data": sys.argv[1], "mailbox": sys.argv[2], "smtp_port": "0",
                                          "smtp_sender_hourly": "0"})) as services:
    server = smtp_server(services)
    server.start()
    print(server.port, flush=True)
    sys.stdin.read()
    server.stop()
"""


def main() -> None:
    chosen = options(__doc__ or "", repeats=5)
    mails = chosen.pick(2000, 40)
    with working_folder(chosen) as folder:
        runs = iter(range(1000))
        candidates = {
            "smtp": lambda: smtp_rate(folder / f"smtp-{next(runs)}", mails),
            "imap": lambda: imap_rate(folder / f"imap-{next(runs)}", mails),
        }
        found = {name: summary(rates) for name, rates in interleaved(chosen, candidates).items()}
    bars = {"smtp": SMTP_AT_LEAST, "imap": IMAP_AT_LEAST}
    results = {name: {**figures, "bar": bar(figures["median"], at_least=bars[name])} for name, figures in found.items()}
    report("mails a second, taken durably", workload(chosen, mails), results, chosen)


def workload(chosen: Options, mails: int) -> dict[str, object]:
    return {"mails": mails, "bytes": len(letter(0)), "connections": CONNECTIONS, "repeats": chosen.repeats}


def letter(number: int) -> bytes:
    sender = f"customer{number % CONNECTIONS}@example.com"
    text = f"Change the title to Spring Sale {number}\n" + "Thank you. " * 140
    mail = CustomerMail(sender, USER, f"Wish {number}", text, message_id=f"<{number}-{os.getpid()}@example.com>")
    return write_mail(mail, datetime.now(UTC))


def prepared(data: Path) -> Config:
    config = Config(data=data, mailbox=USER)
    with open_embedded(config) as services:
        now = services.clock.now()
        services.directory.add_project(Project("amelia", str(data / "amelia.git")), now)
        for number in range(CONNECTIONS):
            key = ProjectUser("amelia", f"customer{number}")
            services.directory.add_sender(Sender(f"customer{number}@example.com", key), now)
    return config


def smtp_rate(data: Path, mails: int) -> float:
    prepared(data)
    letters = [letter(number) for number in range(mails)]
    with serving(data) as port, ThreadPoolExecutor(CONNECTIONS) as clients:
        began = time.monotonic()
        list(clients.map(lambda first: send(port, letters[first::CONNECTIONS], first), range(CONNECTIONS)))
        seconds = time.monotonic() - began
    require(data, mails)
    return mails / seconds


@contextmanager
def serving(data: Path) -> Iterator[int]:
    command = [sys.executable, "-c", SERVER, str(data), USER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)


def send(port: int, letters: list[bytes], customer: int) -> None:
    with smtplib.SMTP("127.0.0.1", port, local_hostname="localhost", timeout=120) as smtp:
        for raw in letters:
            smtp.sendmail(f"customer{customer}@example.com", [USER], raw)


def imap_rate(data: Path, mails: int) -> float:
    config = prepared(data)
    with running_dovecot() as server:
        server.client().logout()  # makes the mailbox
        for number in range(mails):
            file = server.folder / "mail" / "new" / f"{number:08}.M{number}.bench"
            file.write_bytes(letter(number))
            file.chmod(0o666)
        settings = {
            "imap_host": "127.0.0.1", "imap_port": server.port, "imap_security": "none", "imap_user": USER,
            "imap_password": PASSWORD,
        }  # fmt: skip
        reading = Config(data=config.data, mailbox=USER, **settings)  # type: ignore[arg-type]
        with open_embedded(reading) as services, ExitStack() as held:
            (loop,) = mail_readers(services, held)
            began = time.monotonic()
            loop._service.run_once(services.clock.now())
            seconds = time.monotonic() - began
    require(data, mails)
    return mails / seconds


def require(data: Path, mails: int) -> None:
    with closing(sqlite3.connect(data / "webordinary.db")) as database:
        (stored,) = database.execute("SELECT count(*) FROM raw_mails").fetchone()
    assert stored == mails, f"{stored} of {mails} mails are stored"


if __name__ == "__main__":
    main()
