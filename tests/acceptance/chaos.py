"""Customers write while workers are killed, frozen, stopped and started, and now and then the server too."""

from __future__ import annotations

import contextlib
import email
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tests.acceptance.waiting import in_flight
from tests.harness.chaos import ChaosCustomer, ChaosHarness, Hand, until
from webordinary.model.errors import WebOrdinaryError

LEASE_SECONDS = 3.0
SETTINGS = {
    "lease_seconds": LEASE_SECONDS,
    "renew_seconds": 1.0,
    "interrupt_grace_seconds": 1.0,
    "idle_release_seconds": 5.0,
}
WORKERS = 3
OPEN_MAILS = 6  # a customer waits for answers before more than these are on their way
THREADS = 30  # a customer's conversations
DRAIN_SECONDS = 240.0
STOPPED = (0, -signal.SIGTERM)  # the latter while it still started, and held nothing
Act = Callable[[Hand, threading.Event], None]
KEYS = {"scott@example.com": "amelia", "bob@example.com": "amelia", "ann@example.com": "bakery"}


@dataclass(frozen=True)
class Promise:
    """An accepted mail: it asks for one note at the end of its conversation's file."""

    message_id: str
    mark: str
    file: str
    steps: int
    project: str
    email_id: str


class Postbox:
    """The Maildir outbox, read on from where it was: which mail was answered, and how."""

    def __init__(self, harness: ChaosHarness) -> None:
        self._folder = harness.data / "outbox" / "new"
        self._seen: set[str] = set()
        self._guard = threading.Lock()
        self.answers: dict[str, list[str]] = {}

    def read(self) -> dict[str, list[str]]:
        """The texts of all answers, by the Message-ID they answer."""
        with self._guard:
            with contextlib.suppress(OSError):  # its disk is away
                self._read_on()
            return self.answers

    def _read_on(self) -> None:
        for path in sorted(self._folder.iterdir()) if self._folder.is_dir() else []:
            if path.name not in self._seen:
                reply = email.message_from_bytes(path.read_bytes())
                self._seen.add(path.name)
                self.answers.setdefault(str(reply["In-Reply-To"]), []).append(_text(reply))


@dataclass
class ChaosCustomers:
    """They write on several threads at a time; a follow-up may come at once."""

    harness: ChaosHarness
    postbox: Postbox
    rng: random.Random
    promises: list[Promise] = field(default_factory=list)
    refused: int = 0
    impatient: bool = True
    """Whether they write on before they were answered."""

    def run(self, writer: ChaosCustomer, over: threading.Event) -> None:
        """One customer's day."""
        name, rng = writer.address.split("@")[0], random.Random(self.rng.random())
        threads: list[list[Promise]] = []
        while not over.is_set():
            if self._waiting(threads) < OPEN_MAILS:
                mark = f"{name}.{writer.count}"  # also of a mail that was cut off, and may be accepted all the same
                again = self._open_to_more(threads) if rng.random() < 0.6 else []
                thread = rng.choice(again) if again else []
                if (again or len(threads) < THREADS) and (promise := self._write(writer, mark, thread, rng)):
                    thread.append(promise)
                    threads += [] if again else [thread]
            over.wait(rng.uniform(0.05, 0.6))

    def _open_to_more(self, threads: list[list[Promise]]) -> list[list[Promise]]:
        answers = {} if self.impatient else self.postbox.read()
        return [thread for thread in threads if self.impatient or thread[-1].message_id in answers]

    def _waiting(self, threads: list[list[Promise]]) -> int:
        answers = self.postbox.read()
        return sum(promise.message_id not in answers for thread in threads for promise in thread)

    def _write(self, writer: ChaosCustomer, mark: str, thread: list[Promise], rng: random.Random) -> Promise | None:
        root, file = (thread[0].message_id, thread[0].file) if thread else ("", f"notes/{mark}.html")
        steps, pause = rng.choice((1, 2, 5)), round(rng.uniform(0.0, 0.15), 3)
        try:
            sent = writer.note(mark, root, file=file, steps=steps, pause=pause)
        except WebOrdinaryError:
            self.refused += 1
            return None
        promise = Promise(sent, mark, file, steps, KEYS[writer.address], writer.email_id)
        self.promises.append(promise)
        return promise


@dataclass
class Trouble:
    """Does to the processes what machines and operators do, one thing at a time."""

    harness: ChaosHarness
    rng: random.Random
    done: Counter[str] = field(default_factory=Counter)
    ends_workers: ClassVar[bool] = True

    def run(self, over: threading.Event) -> None:
        """Until it is over; then everything runs again."""
        acts = self.acts()
        while not over.wait(self.rng.uniform(0.1, 1.5)):
            [act] = self.rng.choices([act for act, _ in acts], [weight for _, weight in acts])
            self.done[act.__name__] += 1
            act(self.rng.choice(self.harness.hands), over)
            self._hire()
        self.mend()
        self._hire()

    def mend(self) -> None:
        """What an operator or a supervisor does after it."""

    def acts(self) -> Sequence[tuple[Act, int]]:
        """What it does, and how often."""
        return [(self.kill, 8), (self.freeze, 5), (self.kill_frozen, 1), (self.stop, 2), (self.kill_server, 1)]

    def kill(self, hand: Hand, over: threading.Event) -> None:
        hand.kill()

    def freeze(self, hand: Hand, over: threading.Event) -> None:
        """Some sleep past their lease, some do not."""
        hand.signal(signal.SIGSTOP)
        over.wait(LEASE_SECONDS * self.rng.uniform(0.3, 1.8))
        hand.signal(signal.SIGCONT)

    def kill_frozen(self, hand: Hand, over: threading.Event) -> None:
        hand.signal(signal.SIGSTOP)
        over.wait(LEASE_SECONDS * self.rng.uniform(0.3, 1.8))
        hand.kill()

    def stop(self, hand: Hand, over: threading.Event) -> None:
        code = hand.stop()
        assert code in STOPPED, f"{hand.name} was told to stop and ended with {code}"

    def kill_server(self, hand: Hand, over: threading.Event) -> None:
        self.harness.kill_server()
        self.harness.open()

    def _hire(self) -> None:
        if self.harness.up and self.harness.up.process.poll() is not None:
            self.harness.open()
        self.harness.hands[:] = [hand for hand in self.harness.hands if hand.process.poll() is None]
        while len(self.harness.hands) < WORKERS:
            self.harness.hire()


@dataclass
class Chaos:
    """One run of it all."""

    folder: Path
    seed: int
    say: Callable[[str], None] = lambda line: None
    furnish: Callable[[Path], ChaosHarness] = lambda folder: ChaosHarness(folder, SETTINGS)
    trouble_of: Callable[[ChaosHarness, random.Random], Trouble] = Trouble

    def __post_init__(self) -> None:
        self.harness = self.furnish(self.folder)
        self.postbox = Postbox(self.harness)
        rng = random.Random(self.seed)
        self.customers = ChaosCustomers(self.harness, self.postbox, random.Random(rng.random()))
        self.trouble = self.trouble_of(self.harness, random.Random(rng.random()))
        self._failures: list[BaseException] = []

    def run(self, seconds: float, report_each: float = 10.0) -> None:
        """Load and trouble for that long, then quiet until all is answered; raises what went wrong on the way."""
        harness, over = self.harness, threading.Event()
        harness.open()
        harness.onboard("amelia", "bob", "bob@example.com")
        harness.onboard("bakery", "ann", "ann@example.com")
        for _ in range(WORKERS):
            harness.hire()
        threads = [self._beside(self.customers.run, ChaosCustomer(harness, address), over) for address in KEYS]
        threads.append(self._beside(self.trouble.run, over))
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not self._failures:
            over.wait(min(report_each, left))
            self.say(self.progress())
        over.set()
        for thread in threads:
            thread.join(timeout=120)
        if self._failures:
            raise self._failures[0]
        until(self._all_answered, "the answers to all mails", DRAIN_SECONDS)
        until(self._at_rest, "the mails that were accepted without a promise", DRAIN_SECONDS)

    def progress(self) -> str:
        """One line."""
        promised, answered = len(self.customers.promises), len(self.postbox.read())
        acts = ", ".join(f"{name} {count}" for name, count in sorted(self.trouble.done.items()))
        return (
            f"{promised} mails accepted, {self.customers.refused} not, {answered} answered; {acts or 'no trouble yet'}"
        )

    def _all_answered(self) -> bool:
        return {promise.message_id for promise in self.customers.promises} <= self.postbox.read().keys()

    def _at_rest(self) -> bool:
        assert self.harness.up
        return in_flight(self.harness.up) == 0

    def _beside(self, run: Callable[..., None], *args: object) -> threading.Thread:
        def guarded() -> None:
            try:
                run(*args)
            except BaseException as problem:
                self._failures.append(problem)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread


def _text(reply: email.message.Message) -> str:
    parts = [part for part in reply.walk() if part.get_content_type() == "text/plain"]
    with contextlib.suppress(LookupError):
        return bytes(parts[0].get_payload(decode=True) or b"").decode()
    return ""
