"""A data folder as the running system would leave it, for the page to look at.

`python -m tests.unit.dashboard.tables FOLDER [PORT]` fills a folder and serves the page on it, to look at it.
"""

from __future__ import annotations

import base64
import itertools
import json
import sys
import threading
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

from webordinary.adapters.records import mail_to_json
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.overview import SqliteOverview
from webordinary.adapters.sqlite.rows import packed
from webordinary.entrypoints.dashboard.ports import Dashboard, EventFeed, Example
from webordinary.jobs.site_files import Stage
from webordinary.mail.write import OutgoingFile
from webordinary.model.jobs import JobResult
from webordinary.model.mail import Command, ParsedMail
from webordinary.model.names import ProjectUser, email_id_of, job_id_of

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
SCOTT = "scott@example.com"
MAILBOX = "edit@localhost"
AMELIA_SCOTT = ProjectUser("amelia", "scott")
COMMIT = "5f0c1d2e3b4a59687a6b5c4d3e2f1a0b9c8d7e6f"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
DIFF = """diff --git a/index.html b/index.html
index 1111111..2222222 100644
--- a/index.html
+++ b/index.html
@@ -3,7 +3,8 @@
   <main>
-    <h1>Pottery by Amelia</h1>
+    <h1>Spring <Sale></h1>
+    <img src="/photos/vase.png" alt="">
     <p>Bowls and cups, thrown by hand.</p>
diff --git a/photos/vase.png b/photos/vase.png
new file mode 100644
Binary files /dev/null and b/photos/vase.png differ
"""
EXAMPLES = (
    Example("Change a title", "New title", "Please change the title to Spring Sale."),
    Example(
        "A title and a photo",
        "Title and photo",
        "Please set the title to Spring Sale and add this photo to the home page.",
        (OutgoingFile("vase.png", "image/png", PIXEL),),
    ),
    Example("Too much asked", "An idea", "Make it pop a bit more, you know what I mean!"),
)


@dataclass
class DashboardTables:
    """The tables of one data folder, filled by hand, and a dashboard over them."""

    folder: Path
    now: datetime = NOON
    sent: list[tuple[bytes, str, str]] = field(default_factory=list)
    raw: dict[str, bytes] = field(default_factory=dict)
    releases: dict[tuple[str, Stage], Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.database = MemoryDatabase()
        self.overview = SqliteOverview(self.database)
        self.feed = EventFeed()
        self._numbers = itertools.count(1)
        settings = json.dumps({"project_id": "amelia", "repo": "amelia.git"})
        self.put("projects", project_id="amelia", settings=settings, created_at=0.0)
        self.put("senders", address=SCOTT, project_id="amelia", user_id="scott", created_at=0.0)

    def dashboard(self, **changes: object) -> Dashboard:
        values: dict[str, Any] = {
            "overview": self.overview,
            "feed": self.feed,
            "send_mail": self.send_mail,
            "mail_of": self.raw.get,
            "diff_of": lambda project, commit: DIFF,
            "blob_of": lambda digest: PIXEL,
            "current_release": lambda project, stage: self.releases.get((project, stage)),
            "examples": EXAMPLES,
            "clock": lambda: self.now,
        }
        return Dashboard(**{**values, **changes})

    def send_mail(self, raw: bytes, mail_from: str, recipient: str) -> str:
        self.sent.append((raw, mail_from, recipient))
        return self.mail(f"Sent {len(self.sent)}")

    def put(self, table: str, **values: object) -> None:
        names = ", ".join(values)
        with self.database.write() as conn:
            conn.execute(
                f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", tuple(values.values())
            )

    def at(self, seconds: float) -> float:
        return (self.now + timedelta(seconds=seconds)).timestamp()

    def mail(self, subject: str, text: str = "Please.", received: float = -5.0, parsed: bool = True) -> str:
        message_id = f"<mail-{next(self._numbers)}@example.com>"
        raw = f"From: {SCOTT}\nSubject: {subject}\nMessage-ID: {message_id}\n\n{text}\n".encode()
        email_id = email_id_of(message_id, SCOTT, MAILBOX, raw)
        self.raw[email_id] = raw
        self.put(
            "raw_mails",
            email_id=email_id,
            path=f"mail/{email_id}.eml",
            peer="127.0.0.1",
            mail_from=SCOTT,
            recipient=MAILBOX,
            size=len(raw),
            received_at=self.at(received),
            started=1,
        )
        self.event("MailReceived", email_id, received)
        if parsed:
            self._parse(email_id, message_id, subject, text, received)
        return email_id

    def _parse(self, email_id: str, message_id: str, subject: str, text: str, received: float) -> None:
        mail = ParsedMail(
            message_id=message_id,
            sender=SCOTT,
            sender_name="Scott",
            subject=subject,
            sent_at=None,
            in_reply_to=(),
            references=(),
            text=text,
            elided="-- \nScott",
            command=Command.EDIT,
            attachment_count=0,
            automatic=False,
        )
        record = packed(mail_to_json(mail).encode())
        self.put(
            "parsed_mails",
            email_id=email_id,
            message_id=message_id,
            sender=SCOTT,
            subject=subject,
            record=record,
            parsed_at=self.at(received),
        )
        self.event("MailParsed", email_id, received + 0.01)

    def attach(self, email_id: str, position: int, **record: object) -> None:
        self.put("attachments", email_id=email_id, position=position, record=json.dumps(record))

    def job(self, email_id: str, state: str, result: JobResult | None = None, **values: object) -> None:
        order = next(self._numbers)
        row: dict[str, Any] = {
            "job_id": job_id_of(email_id),
            "key": str(AMELIA_SCOTT),
            "ord": order,
            "thread_ord": order,
            "thread_id": "0" * 16,
            "email_id": email_id,
            "command": "edit",
            "state": state,
            "result": json.dumps(asdict(result)) if result else None,
            "called_back": 1,
            "recorded_at": self.at(-4.9),
        }
        self.put("jobs", **{**row, **values})

    def worker(self, name: str, ended: bool = False) -> str:
        worker = f"container-{name.replace(' ', '-')}"
        self.put(
            "workers",
            worker=worker,
            name=name,
            pid=4000 + next(self._numbers),
            slots=4,
            started_at=self.at(-600),
            ended_at=self.at(-1) if ended else None,
        )
        return worker

    def claim(self, key: ProjectUser, worker: str, lease: float = 50.0) -> None:
        self.put(
            "claims",
            key=str(key),
            worker=worker,
            fence=1_772_452_795,
            beat=1,
            status="held",
            claimed_at=self.at(-30),
            last_activity_at=self.at(-1),
            lease_expires_at=self.at(lease),
        )

    def event(self, kind: str, email_id: str | None, seconds: float, worker: str | None = None, **data: object) -> None:
        self.put(
            "events",
            at=self.at(seconds),
            kind=kind,
            email_id=email_id,
            key=str(AMELIA_SCOTT) if email_id else None,
            worker=worker,
            data=json.dumps(data),
        )

    def reply(self, email_id: str, text: str, sent: float | None = -4.0) -> None:
        message = EmailMessage(policy=SMTP)
        message["From"] = f"WebOrdinary <{MAILBOX}>"
        message["To"] = SCOTT
        message["Subject"] = "Re: your mail"
        message.set_content(text)
        message.add_alternative("<p>html</p>", subtype="html")
        self.put(
            "outbox",
            email_id=email_id,
            kind="result",
            recipient=SCOTT,
            message_id=f"<reply-to-{email_id[:8]}@localhost>",
            raw=message.as_bytes(),
            created_at=self.at(-4.1),
            sent_at=None if sent is None else self.at(sent),
            next_try_at=self.at(-4.1),
        )

    def published(self, subject: str, received: float = -5.0, worker: str | None = None) -> str:
        """A mail that went all the way."""
        email_id = self.mail(subject, "Please change the title to Spring <Sale>.\n\nThank you, Scott", received)
        self.event("JobQueued", email_id, received + 0.05)
        self.event("JobStarted", email_id, received + 0.12, worker)
        self.event("AgentFinished", email_id, received + 0.3, worker, summary="1 file changed")
        self.event("ChangeCommitted", email_id, received + 0.35, worker, commit=COMMIT)
        self.event("SitePublished", email_id, received + 0.5, worker, release=COMMIT[:12])
        self.event("ReplySent", email_id, received + 0.8)
        result = JobResult("The title is now Spring Sale.", COMMIT, "http://edit.amelia.localhost:8080/")
        self.job(
            email_id,
            "settled",
            result,
            outcome="succeeded",
            worker=worker,
            queued_at=self.at(received + 0.05),
            started_at=self.at(received + 0.12),
            settled_at=self.at(received + 0.55),
        )
        self.reply(
            email_id,
            "Hello Scott,\n\nthe title is now “Spring Sale”.\n\nSee http://edit.amelia.localhost:8080/.\n",
            received + 0.8,
        )
        return email_id


def lively(world: DashboardTables) -> DashboardTables:
    """One of everything that the page can show."""
    first, second = world.worker("worker 1"), world.worker("worker 2")
    world.claim(AMELIA_SCOTT, second)
    world.published("Opening hours", -4000, first)
    old = world.mail("Make it pop", "Make it pop a bit more!", -1900)
    world.job(
        old,
        "settled",
        JobResult("I did not understand.", question="What should change?"),
        outcome="failed",
        worker=first,
        queued_at=world.at(-1899.9),
        started_at=world.at(-1899.8),
        settled_at=world.at(-1899.7),
    )
    world.reply(old, "Hello Scott,\n\nI did not understand this. Nothing was changed.", -1899.5)
    photo = world.published("Title and photo", -120, second)
    world.attach(photo, 0, name="vase.png", media_type="image/png", kind="image", size=len(PIXEL), digest="d" * 64)
    world.attach(photo, 1, name="setup.exe", reason="Programs are not accepted.")
    stranger = world.mail("Buy this", received=-90)
    world.event("MailRefused", stranger, -89.9, reason="unknown sender")
    running = world.mail("Photos of the new glaze", received=-2)
    world.event("ClaimTaken", running, -1.7, second)
    world.job(running, "running", worker=second, queued_at=world.at(-1.8), started_at=world.at(-1.6))
    world.event("ChangeCommitted", running, -0.2, second)
    queued = world.mail("And one more thing about the footer", received=-1)
    world.job(queued, "queued", queued_at=world.at(-0.9))
    return world


def main() -> None:
    from webordinary.entrypoints.dashboard.web import PageServer, create_app
    from webordinary.entrypoints.running import bound

    folder, port = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    folder.mkdir(parents=True)
    world = DashboardTables(folder, now=datetime.now(UTC))
    if "empty" not in sys.argv:
        lively(world)
    page, sites = bound("127.0.0.1", port), bound("127.0.0.1", 0)
    ports = {"port": page.getsockname()[1], "preview_port": sites.getsockname()[1]}
    dashboard = world.dashboard(clock=lambda: datetime.now(UTC), **ports)
    PageServer(create_app(dashboard), world.feed, [page, sites]).start()
    sys.stdout.write(f"ready http://127.0.0.1:{ports['port']}/ {ports['preview_port']}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
