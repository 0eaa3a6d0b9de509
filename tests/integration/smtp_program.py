"""A process that takes mail as `up` does and stores it; it prints its port and ends with its standard input."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.mails import SqliteRawMails
from webordinary.entrypoints.smtp import SmtpServer, SmtpSettings
from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import accept
from webordinary.model.events import Event


class Unheard:
    """Events are of no interest here."""

    def emit(self, event: Event) -> None:
        """Drop it."""


def main(data: Path) -> None:
    """Serve until the standard input ends."""
    db = Database(data / "webordinary.db")
    db.migrate()
    take = partial(accept, mails=SqliteRawMails(db, data), events=Unheard())
    settings = SmtpSettings(Mailbox.parse("edit@localhost"), port=0)
    server = SmtpServer(settings, take, lambda _: None, lambda: datetime.now(UTC))
    server.start()
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop()
    db.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
