"""Does a customer notice hostile mails of others?

Workload: the real `webordinary up`. A customer writes a `status` mail every quarter of a second: on a quiet system,
beside a stream of hostile mails from strangers, and beside one from another customer of the same site. The three take
turns, so that a noisy machine disturbs all alike; a stream is drained before the next turn.
Unit: seconds from the server's 250 until the reply lies in the Maildir; the bar is on the p99 over the quiet p99.
"""

from __future__ import annotations

import itertools
import smtplib
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from harness import bar, options, progress, report, summary, working_folder
from mail_to_reply import CUSTOMER, MAILBOX, StartedSystem, running
from webordinary.adapters.files.wake import WakeBus
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Sender

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests know the mails
from tests.hostile_mails import HOSTILE

STREAM = (
    "flowed", "semicolons", "allowed_semicolons", "parameters", "continued_names", "html_of_one_line",
    "html_of_deep_quotes", "quotes_and_answers", "beginnings", "wrapped_beginnings", "short_lines", "attached_mail",
)  # fmt: skip
STRANGER, OTHER_CUSTOMER = "eve@example.org", "mallory@example.com"
SECONDS_BETWEEN = {STRANGER: 0.5, OTHER_CUSTOMER: 1.0, CUSTOMER: 0.25}
AT_MOST = 2.0
DRAIN_SECONDS = 120.0


def main() -> None:
    chosen = options(__doc__ or "", repeats=10)
    mails_a_turn = chosen.pick(20, 1)
    taken: dict[str, list[float]] = {"quiet": [], STRANGER: [], OTHER_CUSTOMER: []}
    with working_folder(chosen) as folder, running(folder / "data") as system:
        entitle(system.data, OTHER_CUSTOMER)
        number = itertools.count()
        status_seconds(system, next(number))
        for turn in range(chosen.repeats):
            progress(f"turn {turn + 1} of {chosen.repeats}")
            for sender, seconds in taken.items():
                with streaming(system, sender) if sender != "quiet" else quiet():
                    seconds += [status_seconds(system, next(number)) for _ in range(mails_a_turn)]
                drain(system)
    found = {name: summary(seconds) for name, seconds in taken.items()}
    report(
        "a customer's status beside hostile mails, against a quiet system",
        {"status_mails": chosen.repeats * mails_a_turn, "stream": STREAM, "seconds_between": SECONDS_BETWEEN},
        {
            "quiet_seconds": found["quiet"],
            "beside_strangers_seconds": found[STRANGER],
            "beside_a_customer_seconds": found[OTHER_CUSTOMER],
            "beside_strangers_over_quiet": bar(found[STRANGER]["p99"] / found["quiet"]["p99"], at_most=AT_MOST),
            "beside_a_customer_over_quiet": bar(found[OTHER_CUSTOMER]["p99"] / found["quiet"]["p99"], at_most=AT_MOST),
        },
        chosen,
    )


def entitle(data: Path, address: str) -> None:
    """Let somebody else write for the sample's site."""
    with open_embedded(Config(data=data)) as services:
        services.directory.add_sender(Sender(address, ProjectUser("amelia", "mallory")), datetime.now(UTC))


def status_seconds(system: StartedSystem, number: int) -> float:
    """Seconds from the 250 until the reply to this mail is in the Maildir; a moment later than the last one."""
    time.sleep(SECONDS_BETWEEN[CUSTOMER])
    message_id = f"<status-{number}@b.example>"
    raw = write_mail(CustomerMail(CUSTOMER, MAILBOX, "How is it?", "status", message_id=message_id), datetime.now(UTC))
    bus = WakeBus(system.data / "run" / "wake")
    listener = bus.listen("page-benchmark")
    outbox, seen = system.data / "outbox" / "new", set[Path]()
    try:
        send(system, raw, CUSTOMER)
        accepted = time.monotonic()
        while not answered(outbox, seen, message_id):
            assert time.monotonic() - accepted < 60, "no reply within a minute"
            listener.wait(0.02)
        return time.monotonic() - accepted
    finally:
        listener.close()
        bus.close()


def answered(outbox: Path, seen: set[Path], message_id: str) -> bool:
    new = [path for path in outbox.glob("*") if path not in seen]
    seen.update(new)
    return any(message_id.encode() in path.read_bytes() for path in new)


def send(system: StartedSystem, raw: bytes, mail_from: str) -> None:
    with smtplib.SMTP(*system.smtp, local_hostname="localhost") as smtp:
        smtp.sendmail(mail_from, [MAILBOX], raw)


@contextmanager
def quiet() -> Iterator[None]:
    yield


@contextmanager
def streaming(system: StartedSystem, sender: str) -> Iterator[None]:
    """Hostile mails of this sender, one after another, until the block ends."""
    mails = [HOSTILE[name](sender) for name in STREAM]
    begun, stop = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as thread:
        stream = thread.submit(_stream, system, sender, mails, begun, stop)
        try:
            begun.wait()
            yield
        finally:
            stop.set()
        stream.result()  # a stream that broke off measures nothing


_numbers = itertools.count()


def _stream(
    system: StartedSystem, sender: str, mails: Sequence[bytes], begun: threading.Event, stop: threading.Event
) -> None:
    try:
        while not stop.is_set():
            number = next(_numbers)
            raw = mails[number % len(mails)].replace(b"<hostile@", f"<hostile-{number}@".encode(), 1)
            send(system, raw, sender)
            begun.set()
            stop.wait(SECONDS_BETWEEN[sender])
    finally:
        begun.set()


def drain(system: StartedSystem) -> None:
    """Until the workflow has no execution in work that was started by a stream."""
    with open_embedded(Config(data=system.data)) as services:
        deadline = time.monotonic() + DRAIN_SECONDS
        while services.executions.due(services.clock.now(), 1).names and time.monotonic() < deadline:
            time.sleep(0.2)


if __name__ == "__main__":
    main()
