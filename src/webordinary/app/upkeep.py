"""What keeps a running system in order: pauses, retention, the dead noted, everything counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from webordinary.adapters.local.agents.session_files import SESSIONS, forget_homes
from webordinary.adapters.local.git.upkeep import tend_mirrors
from webordinary.adapters.sqlite.outages import SqliteOutages
from webordinary.app.embedded import Embedded
from webordinary.app.services import Services
from webordinary.model.errors import Permanent
from webordinary.model.events import Event
from webordinary.model.overview import Levels
from webordinary.pool.ports import RESUMED
from webordinary.pool.reconciler import Reconciler


def pause(services: Services, project_id: str, *, paused: bool) -> int:
    """Stop or resume the work on a site; returns how many people's jobs a resume set free."""
    project = services.directory.project(project_id)
    if project is None:
        raise Permanent(f"there is no site {project_id!r}: see `webordinary project list`")
    services.directory.add_project(replace(project, paused=paused), services.clock.now())
    return 0 if paused else let_go(services, project_id)


def let_go(services: Services, project_id: str) -> int:
    """Let what waits on a site look again now; returns how many people's jobs did."""
    keys = services.jobs.let_go(project_id)
    for job in (job for key in keys for job in services.jobs.open_jobs(key, limit=1)):
        services.pool.tickets.ticket(job, RESUMED)
    Reconciler(services.pool, services.events).run_once(services.clock.now())
    return len(keys)


def keep_house(services: Embedded) -> None:
    """Forget what is past its retention, a bounded bite at a time; events once they are counted in the tally."""
    now = services.clock.now()
    before = now - timedelta(days=services.config.retention_days)
    services.jobs.forget(before)
    services.event_log.forget(before)
    services.interruptions.forget(before)
    services.executions.prune(before)
    forget_homes(services.config.data / SESSIONS, before)
    services.workers.forget(before)
    services.alarms.forget(before)
    services.build_logs.forget(before)
    note_dead_workers(services)
    tend_mirrors(services.config.data / "mirrors", services.config.data / "workspaces")


def note_dead_workers(services: Embedded) -> None:
    """Write down which workers died without goodbye."""
    for worker in services.workers.present():
        if services.lock_files.is_dead(worker.worker):
            services.workers.leave(worker.worker, services.clock.now())
            services.lock_files.clear_dead(worker.worker)
            services.events.emit(Event("WorkerDied", worker=worker.worker, data={"pid": worker.pid}))


def levels_of(services: Embedded) -> Levels:
    """How much of everything there is now."""
    alive = [w for w in services.workers.present() if not services.lock_files.is_dead(w.worker)]
    return services.levels.look(len(alive))


def excuse_outage(services: Embedded) -> None:
    """Before the workers start: no job is blamed for having run when everything went down."""
    if count := SqliteOutages(services.db).excuse(services.lock_files.is_dead):
        services.events.emit(Event("OutageExcused", data={"jobs": count}))
