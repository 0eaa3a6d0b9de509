"""How fast does each page of the console answer with 100,000 mails, 500 sites and 50 open live streams?

Workload: mails that were done, with their events, jobs and replies, of 500 sites; the page's server in a process of its
own, with 50 pages open; each page is asked for one after another. Beside it the same server over an empty folder.
Unit: milliseconds from request to the last byte; the bar is on the p99. Megabytes and CPU seconds of the server.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from email.message import EmailMessage
from hashlib import sha256
from itertools import islice
from pathlib import Path

from harness import Options, bar, options, progress, report, summary, working_folder
from webordinary.adapters.records import mail_to_json
from webordinary.adapters.sqlite.rows import packed
from webordinary.compose.embedded import EmbeddedContainer, open_embedded
from webordinary.config import Config
from webordinary.model.mail import Command, ParsedMail
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import Project, Sender
from webordinary.operations import onboarding

BOTH = ["/", "/mails", "/pool", "/sites"]
"""Asked of both servers; the CPU time of these is compared."""
PAGE_AT_MOST_MS, GROWTH_AT_MOST = 50.0, 2.0
SERVER = """
import sys
from pathlib import Path
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.entrypoints.dashboard.ports import EventFeed
from webordinary.entrypoints.dashboard.web import PageServer, create_app
from webordinary.entrypoints.running import bound
from webordinary.entrypoints.server import dashboard_of
with open_embedded(Config(data=Path(sys.argv[1]))) as services:
    feed, socket = EventFeed(), bound("127.0.0.1", 0)
    page = PageServer(create_app(dashboard_of(services, feed)), feed, [socket])
    page.start()
    print(socket.getsockname()[1], flush=True)
    sys.stdin.read()
    page.stop()
"""


def main() -> None:
    chosen = options(__doc__ or "", repeats=200)
    mails, sites, streams = chosen.pick(100_000, 30), chosen.pick(500, 3), chosen.pick(50, 2)
    with working_folder(chosen) as folder:
        some = fill(folder / "full", mails, sites)
        fill(folder / "empty", 0, 0)
        empty = measure(folder / "empty", BOTH, streams, chosen)
        pages = [*BOTH, "/mails?page=3000", "/mails?q=spring", "/mails?state=done&project=site7", "/pool?span=30d"]
        pages += ["/attention", "/sites/site1", f"/mails/{some}", "/api/status"]
        full = measure(folder / "full", pages, streams, chosen)
    results = {
        "pages_ms": {
            path: {**figures, "bar": bar(figures["p99"], at_most=PAGE_AT_MOST_MS)}
            for path, figures in full["pages"].items()
        },
        "empty_pages_ms": empty["pages"],
        "megabytes": {
            "full": full["megabytes"],
            "empty": empty["megabytes"],
            "bar": bar(full["megabytes"] / empty["megabytes"], at_most=GROWTH_AT_MOST),
        },
        "cpu_ms_a_page": {
            "full": full["cpu_ms"],
            "empty": empty["cpu_ms"],
            "bar": bar(full["cpu_ms"] / max(empty["cpu_ms"], 0.1), at_most=GROWTH_AT_MOST),
        },
    }
    workload = {"mails": mails, "sites": sites, "streams": streams, "requests_a_page": chosen.repeats}
    report("milliseconds until a page of the console is there", workload, results, chosen)


def measure(data: Path, pages: list[str], streams: int, chosen: Options) -> dict:  # type: ignore[type-arg]
    with served(data) as (port, pid), ExitStack() as open_streams:
        for _ in range(streams):
            stream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            open_streams.callback(stream.close)
            stream.request("GET", "/events")
            stream.getresponse().read(1)
        for path in pages:
            asked(port, path)
        times, spent = {}, 0.0
        for path in pages:
            began = cpu_seconds(pid)
            times[path] = summary([asked(port, path) for _ in range(chosen.repeats)])
            used = cpu_seconds(pid) - began
            times[path]["cpu_ms"] = round(1000 * used / chosen.repeats, 2)
            spent += used if path in BOTH else 0.0
            progress(f"{path}: {times[path]['p99']} ms, {times[path]['cpu_ms']} ms of CPU")
        status = (Path("/proc") / str(pid) / "status").read_text()
        kilobytes = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return {
        "pages": times,
        "megabytes": round(kilobytes / 1000, 1),
        "cpu_ms": round(1000 * spent / (len(BOTH) * chosen.repeats), 2),
    }


def asked(port: int, path: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    began = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    took = time.perf_counter() - began
    connection.close()
    assert answer.status == 200, (path, answer.status)
    return took * 1000


def cpu_seconds(pid: int) -> float:
    fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@contextmanager
def served(data: Path) -> Iterator[tuple[int, int]]:
    argv = [sys.executable, "-c", SERVER, str(data)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        yield int(server.stdout.readline()), server.pid
        server.stdin.close()


def fill(data: Path, mails: int, sites: int) -> str:
    """A folder with the sample site, `sites` more, and mails that were done; returns one of these."""
    with open_embedded(Config(data=data)) as services:
        onboarding.ensure_sample(services)
        now = services.clock.now()
        for number in range(sites):
            key = ProjectUser(f"site{number}", "owner")
            services.directory.add_project(Project(key.project_id, f"{key.project_id}.git"), now)
            services.directory.add_sender(Sender(f"owner{number}@example.com", key), now)
        numbers, last = iter(range(mails)), ""
        while batch := list(islice(numbers, 5000)):
            last = put_mails(services, batch, sites, now.timestamp() - 40 * 86_400)
            progress(f"{batch[-1] + 1} of {mails} mails")
        services.mail_index.catch_up(bites=1_000_000)
        return last


def put_mails(services: EmbeddedContainer, batch: list[int], sites: int, start: float) -> str:
    email_id = ""
    with services.db.write() as conn:
        for number in batch:
            email_id, at, site = sha256(b"%d" % number).hexdigest(), start + number * 30, number % sites
            sender, subject = f"owner{site}@example.com", f"Wish {number} for spring"
            mail = ParsedMail(
                f"<{number}@example.com>", sender, "Owner", subject, None, (), (),
                "Please change the title to Spring Sale. Thank you! " * 3, "", Command.EDIT, 0, automatic=False,
            )  # fmt: skip
            reply = EmailMessage()
            reply["From"], reply["To"], reply["Subject"] = "edit@localhost", sender, f"Re: {subject}"
            reply.set_content("Done on your edit site.")
            rows = {
                "raw_mails": {
                    "email_id": email_id, "path": f"mail/{email_id}.eml", "peer": "127.0.0.1", "mail_from": sender,
                    "recipient": "edit@localhost", "size": 500, "received_at": at, "started": 1, "placed": 1,
                },
                "parsed_mails": {
                    "email_id": email_id, "message_id": mail.message_id, "sender": sender, "subject": subject,
                    "record": packed(mail_to_json(mail).encode()), "parsed_at": at,
                },
                "jobs": {
                    "job_id": job_id_of(email_id), "key": f"site{site}#owner", "ord": number + 1,
                    "thread_ord": number + 1, "thread_id": f"{number:016x}", "email_id": email_id, "command": "edit",
                    "state": "settled", "outcome": "succeeded", "called_back": 1, "recorded_at": at,
                    "result": json.dumps({"summary": "Done."}), "settled_at": at + 1,
                },
                "outbox": {
                    "email_id": email_id, "kind": "answer", "recipient": sender, "message_id": f"<r{number}@localhost>",
                    "raw": reply.as_bytes(), "created_at": at + 1, "sent_at": at + 1, "next_try_at": at + 1,
                },
            }  # fmt: skip
            for table, row in rows.items():
                marks = ", ".join("?" * len(row))
                conn.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
            kinds = ("MailReceived", "MailParsed", "JobQueued", "ClaimTaken", "JobStarted", "AgentFinished")
            for kind in (*kinds, "ChangeCommitted", "SiteBuilt", "SitePublished", "JobSettled", "ReplySent"):
                conn.execute(
                    "INSERT INTO events (at, kind, email_id, key, data) VALUES (?, ?, ?, ?, '{}')",
                    (at, kind, email_id, f"site{site}#owner"),
                )
    return email_id


if __name__ == "__main__":
    main()
