"""How long does one mail wait while other customers flood the pool?

Workload: jobs of 20 ms. One key has 500 jobs in its queue before one worker with one slot; then four keys have 500
each before two workers with two slots. Meanwhile another key gets a single job, again and again, each once the one
before it has begun. Unit: milliseconds from recording to the start.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import Options, bar, options, progress, report, summary, working_folder
from parts.pool import WorkerProcess, World, jobs_for
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

JOB_SECONDS = 0.02
MOST_JOBS = 12
"""How many jobs of the flood may come first: those of the moment in which keys do not change, twice, and one more."""
SINGLE = ProjectUser("single", "owner")


@dataclass(frozen=True, slots=True)
class Flood:
    """Customers that flood, and what serves them."""

    keys: int
    workers: int
    slots: int


FLOODS = {"1 flooder, 1 slot": Flood(1, 1, 1), "4 flooders, 2 x 2 slots": Flood(4, 2, 2)}


def measure(folder: Path, flood: Flood, jobs: int, singles: int) -> list[float]:
    """The waits of single mails, in milliseconds."""
    world, names = World(folder), [f"container-{number}" for number in range(flood.workers)]
    workers = [WorkerProcess(folder, name, slots=flood.slots, work_seconds=JOB_SECONDS) for name in names]
    for job in jobs_for(flood.keys, jobs, interleaved=True):
        world.record(job)
    for worker in workers:
        worker.go()
    waits = [_wait_of(world, workers, number) for number in range(singles)]
    for worker in workers:
        worker.stop()
    world.close()
    return waits


def _wait_of(world: World, workers: Sequence[WorkerProcess], number: int) -> float:
    name, began = f"job-single-{number}", time.monotonic()
    world.enqueue(NewJob(name, SINGLE, f"thread-{number}", f"mail-{number}", Command.EDIT))
    deadline = began + 60
    while time.monotonic() < deadline:
        for run in (run for worker in workers for run in worker.runs()):
            if run.job_id == name:
                return (run.began - began) * 1000
        time.sleep(0.02)
    raise TimeoutError(f"{name} was not begun in a minute")


def main() -> None:
    """Run and report."""
    chosen: Options = options(__doc__ or "", repeats=1)
    jobs, singles = chosen.pick((500, 20), (20, 1))
    results: dict[str, Any] = {}
    for name, flood in FLOODS.items():
        progress(name)
        with working_folder(chosen) as folder:
            waits = measure(folder, flood, jobs, singles)
        longest = max(waits)
        results[name] = {
            "wait_ms": summary(waits),
            "longest_ms": round(longest, 1),
            "bar": bar(JOB_SECONDS * 1000 * MOST_JOBS / longest, at_least=1.0),
        }
    workload = {"jobs_of_each_flooder": jobs, "singles": singles, "job_ms": JOB_SECONDS * 1000}
    report("How long does one mail wait while other customers flood the pool?", workload, results, chosen)


if __name__ == "__main__":
    main()
