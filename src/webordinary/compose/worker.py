"""One generic worker, put together."""

from __future__ import annotations

import os
import random
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from webordinary.adapters.agents.acp_agent import AcpAgent, AcpSettings
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.adapters.agents.claude_access import AwsCredentials, KeyCommand, model_access
from webordinary.adapters.agents.claude_agent import AutoAgent, ClaudeAgent, ClaudeSettings, may_run
from webordinary.adapters.agents.command import CommandAgent
from webordinary.adapters.agents.session_store import SessionStore
from webordinary.adapters.files.liveness import DeathWatch, lock_worker_home
from webordinary.adapters.files.screenshots import ChromiumScreenshotter, find_browser
from webordinary.adapters.files.stores import SESSIONS, FolderSessionFiles
from webordinary.adapters.files.system import SystemThreadSpawner
from webordinary.adapters.files.wake import WORKERS, WorkerWakeups, listener_name
from webordinary.adapters.git import GitRepository, WorkspaceCache
from webordinary.adapters.sandbox.bubblewrap import MEGABYTE
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox, SandboxedPrograms
from webordinary.compose.container import Container, site_url
from webordinary.compose.embedded import open_embedded
from webordinary.compose.sandbox import browser_sandbox_of, builders_of, sandbox_of
from webordinary.config import Config
from webordinary.jobs.job import Instructions, SiteJobs, ThreadSessions
from webordinary.jobs.ports import Agent, AgentLimits, Sandbox, SessionFiles
from webordinary.jobs.run import JobDeps, Screenshots
from webordinary.jobs.sandbox_policy import Network
from webordinary.jobs.site_files import Stage
from webordinary.mail.ports import sender_of
from webordinary.model.errors import NameTaken
from webordinary.model.jobs import JobState
from webordinary.model.names import ProjectUser
from webordinary.model.projects import SenderRole
from webordinary.model.snapshot import WorkerEntry
from webordinary.worker.ports import WorkerDeps, WorkerSettings
from webordinary.worker.worker import Worker


def agents_of(
    config: Config, sandbox: Sandbox, home: Path, env: Mapping[str, str], sessions: SessionFiles | None = None
) -> dict[str, Agent]:
    """By the names that projects use. `env` is the operator's environment; agents see of it what is named.

    `sessions` keeps their state between the mails of a thread, by default in the data folder.
    """
    homes = SessionStore(sessions or FolderSessionFiles(config.data / SESSIONS), home / ".agents")
    sandboxed = isinstance(sandbox, BubblewrapSandbox)
    why_no_sandbox = sandbox.why_not if isinstance(sandbox, BubblewrapSandbox) else str
    key = KeyCommand(config.agent_key_command, env) if config.agent_key_command else None
    aws = AwsCredentials()
    claude = ClaudeAgent(
        sandbox,
        homes,
        lambda: model_access(env, key, aws),
        ClaudeSettings(config.agent_model, shell=sandboxed, grace_seconds=config.interrupt_grace_seconds),
    )
    builtin = BuiltinAgent()
    agents: dict[str, Agent] = {
        "builtin": builtin,
        "claude": claude,
        "auto": AutoAgent(claude, builtin, partial(may_run, env, aws, why_no_sandbox, has_key_command=key is not None)),
    }
    if config.agent_command:
        given = {name: env[name] for name in config.agent_environment if name in env}
        network = Network(hosts=frozenset(config.agent_hosts))
        grace = config.interrupt_grace_seconds
        agents["command"] = CommandAgent(config.agent_command, SandboxedPrograms(sandbox, grace), given, network)
        agents["acp"] = AcpAgent(sandbox, homes, AcpSettings(config.agent_command, given, network, sandboxed, grace))
    return agents


def limits_of(config: Config) -> AgentLimits:
    """The limits of an agent's run for one mail."""
    return AgentLimits(config.agent_seconds, turns=config.agent_turns, cost_usd=config.agent_cost_usd)


SAVING_SECONDS = 10.0
"""What a stopping worker needs, after its agents' grace, to keep what they did; less than its parent waits."""


def run_embedded_worker(
    config: Config,
    name: str,
    slots: int,
    stop: threading.Event,
    *,
    sole: bool = False,
    began: Callable[[str], None] = lambda _: None,
) -> None:
    """Run one generic worker until `stop` is set; what runs is finished or saved, and every claim released.

    Raises NameTaken where it must be the `sole` one of its name; `began` is called once it is there, with what
    keeps it from work, if anything does.
    """
    with ExitStack() as closing:
        services = closing.enter_context(open_embedded(config))
        worker_id = _worker_id(services.clock.now())
        home = lock_worker_home(config.data / "workspaces")
        closing.callback(home.close)
        services.workers.enter(worker_id)
        closing.callback(services.workers.leave, worker_id)
        listener = services.bus.listen(listener_name(worker_id))  # first: a worker that is seen can be told something
        closing.callback(listener.close)
        introduced = WorkerEntry(worker_id, name, os.getpid(), slots)
        other = services.worker_rows.enter(
            introduced, services.clock.now(), lambda one: sole and not services.workers.is_dead(one.worker)
        )
        if other:
            raise NameTaken(other.name, other.pid)
        began("")
        deaths = DeathWatch(services.workers)
        closing.callback(deaths.close)
        services.bus.notify(WORKERS, "peer")
        deps = WorkerDeps(
            worker_id=worker_id,
            settings=settings_of(config, slots, min(20.0, config.lease_seconds / 3)),
            pool=services.pool,
            work=site_work(services, worker_id, home.path),
            events=services.events,
            clock=services.clock,
            threads=SystemThreadSpawner(),
            wakeups=WorkerWakeups(listener, deaths, partial(services.workers.beat, worker_id)),
            rng=random.Random(),  # noqa: S311  jitter needs no secrecy
        )
        worker = Worker(deps)
        threading.Thread(target=stop_on, args=(stop, worker), name="stop", daemon=True).start()
        worker.run()
        services.worker_rows.leave(worker_id, services.clock.now())


def stop_on(stopping: threading.Event, worker: Worker) -> None:
    """Stop the worker when the event is set."""
    stopping.wait()
    worker.stop()


def _worker_id(now: datetime) -> str:
    return f"container-{now:%Y%m%d%H%M%S}-{secrets.token_hex(4)}"


def settings_of(config: Config, slots: int, reconcile_seconds: float) -> WorkerSettings:
    """A worker's settings."""
    return WorkerSettings(
        slots=slots,
        lease=config.lease_seconds,
        renew=config.renew_seconds,
        idle_release=config.idle_release_seconds,
        job_limit=config.job_limit_seconds,
        stop_grace=config.interrupt_grace_seconds + SAVING_SECONDS,
        reconcile=reconcile_seconds,
        retry_base=config.retry_seconds,
    )


def site_work(services: Container, worker_id: str, home: Path) -> SiteJobs:
    """What a worker does for a customer."""
    deps = site_kit(services, worker_id, home)
    return SiteJobs(deps, instructions_of(services).of, services.events, services.clock.now)


def instructions_of(services: Container) -> Instructions:
    """Reads the instructions of jobs from the stored mails."""
    mail_deps = services.mail_deps
    return Instructions(
        mail_deps.parsed_mails,
        mail_deps.manifest,
        mail_deps.threads,
        mail_deps.raw_mails,
        mail_deps.mailbox,
        services.pool.jobs,
    )


def _site_url(services: Container, project_id: str, stage: Stage) -> str:
    """The customer's own domains are looked up for links to the public site only."""
    project = services.directory.project(project_id) if stage is Stage.PUBLIC else None
    return site_url(services.config, project_id, stage, project.domains if project else ())


def site_kit(services: Container, worker_id: str, home: Path) -> JobDeps:
    """All that one worker needs to turn instructions into sites."""
    config = services.config
    cache = WorkspaceCache(home, config.workspace_cache_mb * MEGABYTE, lambda key: is_in_work(services, key))
    repository = GitRepository(config.data / "mirrors", home, worker_id, services.credentials, cache)
    sandbox = sandbox_of(config, worker_id, home)
    return JobDeps(
        workspaces=repository,
        main=repository,
        live=repository,
        leases=services.leases,
        releases=services.releases,
        agents=agents_of(config, sandbox, home, os.environ, services.session_files),
        builders=builders_of(config, sandbox, home),
        project_of=services.directory.project,
        attachment_path=services.attachment_path,
        site_url=partial(_site_url, services),
        sessions=ThreadSessions(services.threads),
        build_logs=services.build_logs,
        screenshots=screenshots_of(services, worker_id, home),
        ledger=services.ledger,
        limits=limits_of(config),
        daily_cap_usd=config.daily_cap_usd,
        role_of=lambda project_id, address: _role_of(services, project_id, address),
        user_of=lambda project_id, address: _user_of(services, project_id, address),
        longest_ahead=_longest_ahead(services),
        put_off=lambda key: sum(job.due_at is not None for job in services.jobs.open_jobs(key)),
    )


def _longest_ahead(services: Container) -> timedelta:
    """How long a mail with a date is kept: in a data folder as long as it is open, on AWS as the settings say."""
    awaited, kept = services.profile.longest_awaited, timedelta(days=services.config.retention_days)
    return awaited if services.profile.data_is_local else min(awaited, kept)


def _role_of(services: Container, project_id: str, address: str) -> SenderRole:
    """The role of a sender; one who was removed meanwhile publishes nothing."""
    sender = sender_of(services.directory, project_id, address)
    return sender.role if sender else SenderRole.EDITOR


def _user_of(services: Container, project_id: str, address: str) -> str:
    sender = sender_of(services.directory, project_id, address)
    return sender.key.user_id if sender else ""


def is_in_work(services: Container, key: ProjectUser) -> bool:
    """Whether a job of this key runs, here or elsewhere."""
    return any(job.state is JobState.RUNNING for job in services.jobs.open_jobs(key))


def screenshots_of(services: Container, worker_id: str, home: Path) -> Screenshots | None:
    """Takes pictures of changed pages, if the machine has a browser and the settings want it."""
    config = services.config
    browser = find_browser() if config.pictures != "off" else None
    if browser is None:
        return None
    sandbox = browser_sandbox_of(config, worker_id, home)
    screenshotter = ChromiumScreenshotter(browser, sandbox, home / ".pictures", services.read_release)
    return Screenshots(screenshotter, services.blobs.put, config.picture_seconds, always=config.pictures == "on")


@contextmanager
def scripted_environment(environ: Mapping[str, str], page: Path, old: str, new: str) -> Iterator[Mapping[str, str]]:
    """The environment of a Claude Code whose scripted model replaces `old` by `new` in a page; needs no key."""
    from webordinary.adapters.agents.scripted_model import ScriptedApi, Use  # noqa: PLC0415 - for `agent test` only

    turns = [
        Use("Read", {"file_path": str(page)}, "I look at the page first."),
        Use("Edit", {"file_path": str(page), "old_string": old, "new_string": new}),
        Use("StructuredOutput", {"outcome": "changed", "message": f"The page says “{new}” now."}),
    ]
    with ScriptedApi(turns) as api:
        plain = {name: value for name, value in environ.items() if not name.startswith(("ANTHROPIC_", "CLAUDE_"))}
        yield plain | {"ANTHROPIC_API_KEY": "scripted", "ANTHROPIC_BASE_URL": api.url}
