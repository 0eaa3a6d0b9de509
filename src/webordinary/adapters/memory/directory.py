"""Projects and entitled senders in memory, for tests and simulation."""

from __future__ import annotations

from datetime import datetime

from webordinary.model.errors import Permanent
from webordinary.model.projects import Project, Sender


class MemoryDirectory:
    """See Directory."""

    def __init__(self) -> None:
        self._projects: dict[str, Project] = {}
        self._senders: dict[tuple[str, str], Sender] = {}

    def entries(self, address: str) -> tuple[Sender, ...]:
        return tuple(sender for sender in self.senders() if sender.address == address.lower())

    def project(self, project_id: str) -> Project | None:
        return self._projects.get(project_id)

    def projects(self) -> tuple[Project, ...]:
        return tuple(project for _, project in sorted(self._projects.items()))

    def senders(self) -> tuple[Sender, ...]:
        return tuple(sender for _, sender in sorted(self._senders.items()))

    def add_project(self, project: Project, now: datetime) -> None:
        self._projects[project.project_id] = project

    def add_sender(self, sender: Sender, now: datetime) -> None:
        if sender.key.project_id not in self._projects:
            raise Permanent(f"there is no project {sender.key.project_id}: add it first")
        address = sender.address.lower()
        self._senders[sender.key.project_id, address] = Sender(address, sender.key)

    def remove_sender(self, address: str, project_id: str) -> None:
        self._senders.pop((project_id, address.lower()), None)

    def remove_project(self, project_id: str) -> None:
        self._senders = {place: sender for place, sender in self._senders.items() if place[0] != project_id}
        self._projects.pop(project_id, None)
