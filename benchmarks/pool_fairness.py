"""How long does one mail wait while another customer floods the pool?

Workload: one worker with one slot and jobs of 20 ms. One key has 500 jobs in its queue. Meanwhile another key gets a
single job, again and again, each once the one before it has begun. Unit: milliseconds from recording to the start.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from harness import Options, bar, options, report, summary, working_folder
from parts.pool import WorkerProcess, World, jobs_for
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

JOB_SECONDS = 0.02
MOST_JOBS = 12
"""How many jobs of the flood may come first: those of the moment in which keys do not change, twice, and one more."""
SINGLE = ProjectUser("single", "owner")


def measure(folder: Path, flood: int, singles: int) -> list[float]:
    """The waits of single mails, in milliseconds."""
    world = World(folder)
    worker = WorkerProcess(folder, "container-1", slots=1, work_seconds=JOB_SECONDS)
    for job in jobs_for(1, flood, interleaved=False):
        world.record(job)
    worker.go()
    waits = [_wait_of(world, worker, number) for number in range(singles)]
    worker.stop()
    world.close()
    return waits


def _wait_of(world: World, worker: WorkerProcess, number: int) -> float:
    name, began = f"job-single-{number}", time.monotonic()
    world.enqueue(NewJob(name, SINGLE, f"thread-{number}", f"mail-{number}", Command.EDIT))
    deadline = began + 60
    while time.monotonic() < deadline:
        for run in worker.runs():
            if run.job_id == name:
                return (run.began - began) * 1000
        time.sleep(0.02)
    raise TimeoutError(f"{name} was not begun in a minute")


def main() -> None:
    """Run and report."""
    chosen: Options = options(__doc__ or "", repeats=1)
    flood, singles = chosen.pick((500, 20), (20, 1))
    with working_folder(chosen) as folder:
        waits = measure(folder, flood, singles)
    longest = max(waits)
    results: dict[str, Any] = {
        "wait_ms": summary(waits),
        "longest_ms": round(longest, 1),
        "bar": bar(JOB_SECONDS * 1000 * MOST_JOBS / longest, at_least=1.0),
    }
    workload = {"flood": flood, "singles": singles, "job_ms": JOB_SECONDS * 1000, "workers": 1, "slots": 1}
    report("How long does one mail wait while another customer floods the pool?", workload, results, chosen)


if __name__ == "__main__":
    main()
