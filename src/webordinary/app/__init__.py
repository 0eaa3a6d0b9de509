"""The composition root: the only place where ports meet adapters."""

from webordinary.app.engine import engine, transport
from webordinary.app.services import Services, open_services
from webordinary.app.sites import (
    BUILDER_NAMES,
    DETECTED,
    diff_of,
    ensure_sample,
    keep_credential,
    onboard,
    project_of,
    site_url,
)
from webordinary.app.upkeep import excuse_outage, keep_house, levels_of, note_dead_workers, pause
from webordinary.app.working import instruction_of, run_worker, site_kit
from webordinary.app.workshop import jail_of, why_no_jail

__all__ = [
    "BUILDER_NAMES",
    "DETECTED",
    "Services",
    "diff_of",
    "engine",
    "ensure_sample",
    "excuse_outage",
    "instruction_of",
    "jail_of",
    "keep_credential",
    "keep_house",
    "levels_of",
    "note_dead_workers",
    "onboard",
    "open_services",
    "pause",
    "project_of",
    "run_worker",
    "site_kit",
    "site_url",
    "transport",
    "why_no_jail",
]
