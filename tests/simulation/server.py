"""The house: the process that takes mail, runs the workflow engine and delivers replies."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from tests.simulation.durable import Durable
from tests.simulation.process import Ear, Port, Process, SimulatedBell
from webordinary.asl.engine import Engine
from webordinary.asl.ports import Execution
from webordinary.asl.runner import FailedExecutions
from webordinary.compose.background import RETRIES
from webordinary.mail.intake import accept
from webordinary.mail.outbox import deliver_due
from webordinary.model.events import Events
from webordinary.model.mail import Delivery, Envelope, TransportKind
from webordinary.pool.ports import Pool
from webordinary.workflow.answering import Answering
from webordinary.workflow.definition import REPEATABLE, embedded, steps
from webordinary.workflow.queueing import Queueing
from webordinary.workflow.reading import Reading
from webordinary.workflow.start import BrokenExecution, start, start_missing

DEFINITION = embedded()
ENGINE_THREADS = 3
LOOK_SECONDS = 30.0
"""A worker killed between its answer and the wake-up wakes nobody, so the engine looks by itself."""


class SimulatedServer:
    """Everything of `webordinary up` that writes; lost with its process and built anew by the next."""

    def __init__(self, process: Process, durable: Durable, pool: Pool, events: Events, seed: str) -> None:
        self.process = process
        self.ear = Ear(process)
        self._events = events
        self._raw_mails = Port(durable.raw_mails, "raw_mails", process)
        self._outbox = Port(durable.outbox, "outbox", process)
        self._transport = Port(durable.sent, "transport", process)
        self._dead_letters = Port(durable.dead_letters, "dead_letters", process)
        self._store = Port(durable.executions, "executions", process)
        self._letters_written = process.stop_event()
        mail_deps = durable.mail_deps(process)
        interruptions = Port(durable.interruptions, "interruptions", process)
        self._answering = Answering(
            mail_deps, self._outbox, pool, self._dead_letters, interruptions, events, process.now, self._wake_outbox,
            uptime=durable.uptime(process),
        )  # fmt: skip
        handlers = steps(
            Reading(mail_deps, pool.jobs, events, process.now),
            Queueing(pool, interruptions, events, process.now, self._answering.tell_held),
            self._answering,
        )
        on_finished = self._abandon if durable.tells_of_bad_ends else _say_nothing
        self._engine = Engine(
            self._store, DEFINITION, handlers,
            clock=process, repeatable=REPEATABLE, random=random.Random(seed), on_finished=on_finished,
        )  # fmt: skip
        self._in_work: set[str] = set()
        self._back_off = FailedExecutions(RETRIES.delay)
        self._wait_seconds = 0.0

    def open(self) -> None:
        """Begin to work."""
        self.process.spawn("engine", self._run_engine)
        self.process.spawn("outbox", self._run_outbox)
        self.process.spawn("sweeper", self._run_sweeper)

    def take(self, raw: bytes, envelope: Envelope, accepted: SimulatedBell) -> None:
        """A mail arrives; the bell is the 250 that the sender hears."""
        self.process.spawn("smtp", lambda: self._guarded(lambda: self._take(raw, envelope, accepted)))

    def stop_execution(self, name: str) -> None:
        """The operator stops a workflow."""
        self.process.spawn("operator", lambda: self._guarded(lambda: self._stop_execution(name)))

    def _take(self, raw: bytes, envelope: Envelope, accepted: SimulatedBell) -> None:
        told = Delivery(
            TransportKind.SMTP, envelope.peer, envelope.mail_from, (envelope.recipient,), envelope.received_at
        )
        for mail in accept(raw, told, mails=self._raw_mails, events=self._events):
            accepted.set()
            start(mail.email_id, self._engine, self._raw_mails)
            self.ear.poke()

    def _stop_execution(self, name: str) -> None:
        if self._store.load(name):
            self._engine.stop(name, "Stopped", "by the operator")
            self.ear.poke()

    # -- the engine's threads, as EngineRunner hands them out -----------------------------------------

    def _run_engine(self) -> None:
        while True:
            self._wait_seconds = 1.0
            self._guarded(self._hand_out)
            self.ear.wait(self._wait_seconds)

    def _hand_out(self) -> None:
        now = self.process.now()
        passed_over = self._in_work | self._back_off.until_later(now)
        due, next_at = self._store.due(now, len(passed_over) + ENGINE_THREADS)
        free = ENGINE_THREADS - len(self._in_work)
        for name in [name for name in due if name not in passed_over][:free]:
            self._in_work.add(name)
            self.process.spawn(f"advance {name}", partial(self._advance, name))
        moments = [now + timedelta(seconds=LOOK_SECONDS)]
        moments += [at for at in (self._back_off.next_end(now), next_at) if at]
        self._wait_seconds = max(0.0, (min(moments) - self.process.now()).total_seconds())

    def _advance(self, name: str) -> None:
        well = self._guarded(lambda: self._engine.advance(name))
        if well:
            self._back_off.forgive(name)
        else:
            self._back_off.add(name, self.process.now())
        self._in_work.discard(name)
        self.ear.poke()

    def _abandon(self, execution: Execution) -> None:
        assert isinstance(execution.input, dict)
        ended = BrokenExecution(execution.name, execution.status, cause=execution.cause or "")
        self._answering.abandon(execution.input, ended)

    # -- outbox and sweeper ---------------------------------------------------------------------------

    def _wake_outbox(self) -> None:
        self._letters_written.set()

    def _run_outbox(self) -> None:
        while True:
            self._letters_written = self.process.stop_event()
            self._guarded(self._deliver)
            self._letters_written.wait(LOOK_SECONDS)

    def _deliver(self) -> None:
        while deliver_due(self._outbox, self._transport, self.process.now(), self._events):
            pass

    def _run_sweeper(self) -> None:
        while True:
            self._guarded(lambda: start_missing(self._engine, self._raw_mails))
            self.process.sleep(LOOK_SECONDS)

    def _guarded(self, do: Callable[[], object]) -> bool:
        """The broad except of an entry point."""
        try:
            do()
        except Exception as problem:
            self.process.note("failed", outcome=problem)
            return False
        return True


def _say_nothing(execution: Execution) -> None:
    """The word is lost."""
