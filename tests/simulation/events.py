"""Events, as lines of the trace."""

from __future__ import annotations

from tests.simulation.process import Process
from webordinary.model.events import Event


class TracedEvents:
    """See Events: never fails its caller and never waits."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def emit(self, event: Event) -> None:
        """Write it into the trace."""
        about = [str(one) for one in (event.key, event.job_id or event.email_id) if one]
        self._process.note(f"* {event.kind}", *about, *(f"{n}={v}" for n, v in event.data.items()))
