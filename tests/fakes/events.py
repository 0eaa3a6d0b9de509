"""An event sink that keeps what was emitted."""

from __future__ import annotations

from webordinary.model.events import Event


class EventRecorder(list[Event]):
    def emit(self, event: Event) -> None:
        self.append(event)

    def kinds(self) -> list[str]:
        return [event.kind for event in self]
