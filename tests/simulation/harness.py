"""One world: processes that come and go, the stores that stay, and the rules watched at every step."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.fakes.repositories import MemoryRepository
from tests.simulation.customers import SimulatedCustomers
from tests.simulation.durable import Durable
from tests.simulation.events import TracedEvents
from tests.simulation.faults import CommitFaults, Unforeseen, Weather
from tests.simulation.journal import SimulationJournal
from tests.simulation.messages import MessageCarrier, SimulatedNotifier
from tests.simulation.pool_rules import PoolRules, WatchedTokens
from tests.simulation.process import Ear, Port, Process
from tests.simulation.progress import SimulationProgress
from tests.simulation.scenario import Scenario, draw
from tests.simulation.scheduler import Broken, ProcessState, Scheduler
from tests.simulation.server import SimulatedServer
from tests.simulation.site import KilledPushes, SimulatedAgent, SimulatedBuilder
from tests.simulation.site_rules import SiteRules
from webordinary.adapters.files.wake import EngineCallbacks
from webordinary.jobs.job import SiteJobs
from webordinary.jobs.run import JobDeps
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.jobs import Job
from webordinary.model.mail import Attachment, Instruction
from webordinary.model.projects import Project, SenderRole
from webordinary.operations.onboarding import pause
from webordinary.pool.ports import Pool
from webordinary.worker.ports import WorkerDeps
from webordinary.worker.slot import Slot
from webordinary.worker.worker import Worker

TIMEOUT_SECONDS = 4 * 3600.0
AFTERMATH_SECONDS = 10.0
QUICK_JOBS = 0.6
"""The share of publications that rely on what was read at the start of the job."""
Switch = Callable[[Durable], object]


@dataclass(eq=False, slots=True)
class Employed:
    """A worker process that lives, or lived."""

    place: int
    process: Process
    ear: Ear
    worker: Worker
    stopping: bool = False


class SimulationHarness:
    """Built from a scenario; `run` plays it to its end and returns the broken invariant, if one is."""

    def __init__(
        self,
        scenario: Scenario,
        switch: Switch | None = None,
        slot: Callable[[Slot], Slot] | None = None,
        worker: Callable[[Worker], None] | None = None,
    ) -> None:
        """`switch`, `slot` and `worker` take a safeguard away, from the stores, every slot or every worker."""
        self.scenario, self._slot, self._worker = scenario, slot, worker
        self.rng = random.Random(f"world {scenario.seed}")
        self.journal = SimulationJournal()
        self.weather = Weather(scenario.climate, self.rng)
        self.scheduler = Scheduler(self._before_time_moves)
        self.durable = Durable(self.is_dead)
        self._processes: dict[ProcessState, Process] = {}
        self.durable.db.set_commit_hook(CommitFaults(self._at_work))
        if switch:
            switch(self.durable)
        self.employed: dict[str, Employed] = {}
        self.house: SimulatedServer | None = None
        self.heaven = Process("world", self.scheduler, Weather(scenario.climate, self.rng), self.journal)
        self.heaven.weather.calm_down()
        self.post = MessageCarrier(self.scheduler, self.weather, self.heaven.life)
        self.pool_rules = PoolRules(self)
        self.site_rules = SiteRules(self)
        self.progress = SimulationProgress(self)
        self.customers = SimulatedCustomers(self)
        self._incarnations = 0
        self._down_until = 0.0
        self._wanted: dict[str, bool] = {}

    # -- running --------------------------------------------------------------------------------------

    def run(self) -> Broken | None:
        """Play the scenario: with its faults, then without, until everything rests."""
        before = random.getstate()
        random.seed(self.scenario.seed)  # jitter that is not injected must repeat as well
        try:
            self._play()
        except Broken as broken:
            return broken
        finally:
            random.setstate(before)
            self.scheduler.close()
        return self.scheduler.broken

    def _play(self) -> None:
        self._open_house()
        for place in range(self.scenario.workers):
            self.add_worker(place)
        self.customers.arrive()
        self.scheduler.run(self.scenario.faults_end_at, lambda: self.scenario.calm and self.progress.at_rest)
        self.weather.calm_down()
        self.heaven.note("the faults end here")
        until = self.scenario.faults_end_at + TIMEOUT_SECONDS
        self.scheduler.run(until, lambda: self.progress.at_rest)
        self.scheduler.run(self.scheduler.now + AFTERMATH_SECONDS, lambda: False)
        if self.scheduler.broken is None:
            self.progress.check_the_end()

    def _before_time_moves(self, to: float) -> None:
        self.progress.nobody_starves(to)

    # -- processes --------------------------------------------------------------------------------------

    def is_dead(self, worker: str) -> bool:
        """What a lock file tells on one host; machines know nothing of each other."""
        known = self.employed.get(worker)
        return self.scenario.same_host and (known is None or not known.process.alive)

    def end_survivors(self, worker: str, jobs: Collection[str] | None = None) -> None:
        """Nothing of a simulated worker survives it."""

    def working(self) -> list[Employed]:
        """Workers that live and are not stopped."""
        return [one for one in self.employed.values() if one.process.awake]

    def new_process(self, name: str) -> Process:
        """A process with clocks of its own; machines apart are skewed, processes of one host are not."""
        self._incarnations += 1
        skew = 0.0 if self.scenario.same_host else self.weather.skew()
        process = Process(f"{name}.{self._incarnations}", self.scheduler, self.weather, self.journal, skew)
        self._processes[process.life] = process
        return process

    def _at_work(self) -> Process | None:
        task = self.scheduler.running
        return self._processes.get(task.life) if task else None

    def _open_house(self) -> None:
        process = self.new_process("house")
        pool, events = self._pool(process), TracedEvents(process)
        self.house = SimulatedServer(process, self.durable, pool, events, f"house {process.name} {self.scenario.seed}")
        self._when_gone(process, 20.0, self._open_house)
        self.house.open()

    def add_worker(self, place: int) -> None:
        """One more worker comes."""
        process = self.new_process(f"w{place}")
        ear = Ear(process)
        deps = WorkerDeps(
            worker_id=process.name,
            settings=self.scenario.settings,
            pool=self._pool(process),
            work=Port(self._site_work(process), "work", process),
            events=TracedEvents(process),
            clock=process,
            threads=process,
            wakeups=ear,
            rng=random.Random(f"{process.name} {self.scenario.seed}"),
        )
        worker = Worker(deps)
        if self._worker:
            self._worker(worker)
        if mutated := self._slot:
            carry = worker._carry
            worker._carry = lambda slot, token: carry(mutated(slot), token)
        worker.run_once = _honest(worker.run_once)  # type: ignore[method-assign]
        self.employed[process.name] = Employed(place, process, ear, worker)
        self._when_gone(process, 40.0, lambda: self._replace(process.name))

        def serve() -> None:
            worker.run()
            process.note("ends in good order")
            self.scheduler.crash(process.life)

        process.spawn("loop", serve)

    def go_down(self, until: float) -> None:
        """The whole system ends at once, and nothing of it is started again before `until`."""
        self._down_until = until
        self.weather.struck(until)
        running = [self.house.process] if self.house else []
        for process in [*running, *(one.process for one in self.employed.values())]:
            if process.alive:
                process.note("DOWN")
                self.scheduler.crash(process.life)

    def pause(self, project_id: str, *, paused: bool) -> None:
        """The operator's command, which may be killed on its way; who sees that it had no effect gives it again."""
        self._wanted[project_id] = paused
        process = self.new_process("operator")
        pool, directory = self._pool(process), Port(self.durable.directory, "directory", process)
        services = cast("Any", SimpleNamespace(
            directory=directory, clock=process, jobs=pool.jobs, pool=pool, events=TracedEvents(process)
        ))  # fmt: skip

        def command() -> None:
            with suppress(WebOrdinaryError, Unforeseen):
                pause(services, project_id, paused=paused)
            self.scheduler.crash(process.life)

        def again() -> None:
            if self._project_of(project_id).paused is not self._wanted[project_id]:
                self.pause(project_id, paused=self._wanted[project_id])

        self._when_gone(process, 10.0, again)
        process.spawn("command", command)

    def _replace(self, gone: str) -> None:
        self.add_worker(self.employed[gone].place)

    def _when_gone(self, process: Process, longest: float, then: Callable[[], None]) -> None:
        """A supervisor starts another one after a while; on one host the others see the death at once."""

        def supervise() -> None:
            if self.scenario.same_host:
                for other in self.working():
                    self.post.send(other.ear, f"died {process.name}")
            down_seconds = max(0.0, self._down_until - self.scheduler.now)
            self.heaven.sleep(down_seconds + self.rng.uniform(0.0, longest))
            then()

        process.life.when_gone = lambda: self.scheduler.spawn(
            self.heaven.life, f"supervisor of {process.name}", supervise
        )

    # -- what a process is given --------------------------------------------------------------------------

    def _pool(self, process: Process) -> Pool:
        durable, watched = self.durable, self.pool_rules.check
        jobs = Port(durable.jobs, "jobs", process, watched)
        tokens = Port(WatchedTokens(durable.executions, durable.state), "tokens", process)
        claims = Port(durable.claims, "claims", process, watched)
        hints = Port(durable.hints, "hints", process, watched)
        return Pool(
            jobs=jobs,
            pending_callbacks=jobs,
            claims=claims,
            hints=hints,
            tickets=Port(SimulatedNotifier(self, process, claims, hints), "tickets", process),
            interrupts=Port(durable.interrupts, "interrupts", process, watched),
            callbacks=EngineCallbacks(tokens, self._wake_engine, process.now),
            liveness=self,
        )

    def _wake_engine(self) -> None:
        if self.house:
            self.post.send(self.house.ear, "answered")

    def _site_work(self, process: Process) -> SiteJobs:
        durable, watched = self.durable, self.site_rules.check
        remotes = {
            name: Port(KilledPushes(remote, process), f"origin {name}", process, watched)
            for name, remote in durable.remotes.items()
        }
        repository = MemoryRepository(durable.origins, remotes, lambda: process.weather.rng.random() < QUICK_JOBS)
        releases = Port(durable.releases, "releases", process, watched)
        deps = JobDeps(
            workspaces=repository,
            main=repository,
            live=repository,
            leases=Port(durable.leases, "leases", process),
            releases=releases,
            agents={"simulated": SimulatedAgent(process, repository, self.customers.letters, durable.state)},
            builders={"simulated": SimulatedBuilder(process, durable.releases)},
            project_of=self._project_of,
            attachment_path=Path,
            site_url=lambda project_id, stage: f"http://{stage}.{project_id}/",
            role_of=lambda *_: SenderRole.BOTH,
            ledger=durable.ledger,
            wait=process.sleep,
        )
        return SiteJobs(deps, self._instruction_of, TracedEvents(process), process.now)

    def _project_of(self, project_id: str) -> Project:
        project = self.durable.directory.project(project_id)
        assert project is not None
        return project

    def _instruction_of(self, job: Job) -> Instruction:
        mail = self.durable.parsed_mails.load(job.email_id)
        assert mail is not None, f"{job.job_id} runs before its mail was read"
        files = tuple(line for line in self.durable.manifest.of(job.email_id) if isinstance(line, Attachment))
        return Instruction(mail.text, mail.subject, mail.sender, job.command, files)


def _honest(run_once: Callable[[], None]) -> Callable[[], None]:
    """The loop forgives every error; here only those that somebody foresaw, or that the weather made."""

    def run() -> None:
        try:
            run_once()
        except (WebOrdinaryError, Unforeseen):
            raise
        except Exception as problem:
            raise Broken(f"the worker's loop raised {problem!r}") from problem

    return run


def run_seed(seed: int) -> tuple[Broken | None, SimulationHarness]:
    """One seed's world, played to its end."""
    world = SimulationHarness(draw(seed))
    return world.run(), world
