"""The right of a job to go on, which a test can end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from webordinary.model.errors import WebOrdinaryError


@dataclass
class FakeCancelToken:
    """See CancelToken; it can be ended by `end`."""

    worker: str = "w-1"
    fence: int = 10
    job_id: str = "job-1"
    ended: WebOrdinaryError | None = None
    stops: list[Callable[[], None]] = field(default_factory=list)

    def check(self) -> None:
        if self.ended:
            raise self.ended

    def end(self, reason: WebOrdinaryError) -> None:
        self.ended = reason
        for stop in self.stops:
            stop()

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        self.stops.append(stop)
        if self.ended:
            stop()
        try:
            yield
        finally:
            self.stops.remove(stop)
