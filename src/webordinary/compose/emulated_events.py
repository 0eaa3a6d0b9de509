"""Events of the workers that `aws local` starts: an emulator of AWS keeps no log of them, so the data folder does.

Nor does it read metrics out of a log: it is told those that the charts of the pool are made of.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.events import SqliteEventLog, SqliteMetrics, append
from webordinary.config import Config
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.events import Event, EventKind
from webordinary.model.names import ProjectUser
from webordinary.pool.metrics import MetricsRecorder, MetricsState

FILE = Path("emulator", "events.db")
MOST_EVENTS, TRIM_EACH = 100_000, 1000


class EmulatedEvents:
    """A database that holds nothing but events, the newest MOST_EVENTS."""

    def __init__(self, file: Path, counted: Callable[[str], None] = lambda _: None) -> None:
        """`counted` brings the metrics of a line to the emulator."""
        self._db, self._counted = Database(file), counted
        self._db.migrate()
        self.log = SqliteEventLog(self._db)
        self._meter = MetricsRecorder(SqliteMetrics(self._db))
        self._stored = 0

    def store(self, line: str) -> None:
        """Keep the event that a worker printed as a line of JSON; any other line has none. Never fails its caller."""
        unreadable = (ValueError, TypeError, KeyError, AttributeError, WebOrdinaryError)
        with suppress(*unreadable):
            self._counted(line)
        with suppress(*unreadable):
            append(self._db, _event_of(json.loads(line)))
            self._stored += 1
            if self._stored % TRIM_EACH == 0:
                self.log.keep_last(MOST_EVENTS)

    def counts(self) -> MetricsState:
        """What happened since the oldest event that is kept."""
        return self._meter.read()

    def close(self) -> None:
        """Close the database."""
        self._db.close()


def has_emulated_events(config: Config) -> bool:
    """Whether the settings mean an emulator whose events are in this data folder."""
    return bool(config.aws_endpoint) and (config.data / FILE).exists()


def emulated_events(config: Config, counted: Callable[[str], None] = lambda _: None) -> EmulatedEvents:
    """The events of this data folder's emulator; see EmulatedEvents."""
    file = config.data / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    return EmulatedEvents(file, counted)


def _event_of(record: dict[str, object]) -> Event:
    key, data = record.get("key"), record.get("data")
    names = {name: str(record[name]) for name in ("email_id", "job_id", "worker") if record.get(name)}
    return Event(
        EventKind(str(record["event"])),
        key=ProjectUser.parse(str(key)) if key else None,
        data=data if isinstance(data, dict) else {},
        **names,
    )
