"""SiteKit: all that a job needs to turn an instruction into a published site."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from webordinary.model.jobs import Job
from webordinary.model.mail import Attachment
from webordinary.model.projects import Project
from webordinary.site.ports import (
    Agent,
    Builder,
    BuildLogs,
    Ledger,
    MainLine,
    ProjectLeases,
    Releases,
    Sessions,
    Workspaces,
)
from webordinary.site.releases import Stage
from webordinary.site.studio import Studio
from webordinary.site.task import AgentLimits


class FreeOfCharge:
    """For agents that cost nothing."""

    def spend(self, job: Job, usd: float, now: datetime) -> None:
        """Nothing to write down."""

    def on_day(self, project_id: str, day: date) -> float:
        """Nothing."""
        return 0.0

    def of_job(self, job_id: str) -> float:
        """Nothing."""
        return 0.0


class NoSessions:
    """For agents that remember nothing."""

    def session_of(self, thread_id: str) -> str:
        """Every mail is the first."""
        return ""

    def keep_session(self, thread_id: str, session: str) -> None:
        """Nothing to keep."""


class NoLogs:
    """Where nobody reads them."""

    def add(self, job_id: str, text: str) -> None:
        """Nothing to keep."""


@dataclass(frozen=True, slots=True)
class SiteKit:
    """The ports of one worker; `agents` and `builders` by the names that projects use."""

    workspaces: Workspaces
    main: MainLine
    leases: ProjectLeases
    releases: Releases
    agents: Mapping[str, Agent]
    builders: Mapping[str, Builder]
    project_of: Callable[[str], Project]
    attachment_path: Callable[[Attachment], Path]
    site_url: Callable[[str, Stage], str]
    sessions: Sessions = field(default_factory=NoSessions)
    build_logs: BuildLogs = field(default_factory=NoLogs)
    studio: Studio | None = None
    ledger: Ledger = field(default_factory=FreeOfCharge)
    daily_cap_usd: float = 0.0
    limits: AgentLimits = field(default_factory=AgentLimits)
    wait: Callable[[float], None] = time.sleep
