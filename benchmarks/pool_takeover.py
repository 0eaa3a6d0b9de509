"""How long is a customer without a worker when the worker is killed in the middle of a job?

Workload: two worker processes, one job that takes long, `kill -9` of the worker that runs it. Measured from the kill to
the first line of the same job's work in the other process; its surviving programs are ended in between. Unit: seconds.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from harness import bar, interleaved, options, report, summary, working_folder
from parts.pool import WorkerProcess, World, jobs_for, wait_for_start

WORK_SECONDS = 30.0


def take_over(folder: Path) -> float:
    """One killed worker."""
    folder.mkdir()
    world = World(folder)
    names = ("container-1", "container-2")
    workers = {name: WorkerProcess(folder, name, slots=1, work_seconds=WORK_SECONDS) for name in names}
    for worker in workers.values():
        worker.go()
    (job,) = jobs_for(1, 1, interleaved=False)
    world.enqueue(job)
    first = wait_for_start(workers, job.job_id, attempt=1)
    killed_at = workers.pop(first.worker).kill()
    second = wait_for_start(workers, job.job_id, attempt=2)
    for worker in workers.values():
        worker.kill()
    world.close()
    return second.began - killed_at


def main() -> None:
    """Run and report."""
    chosen = options(__doc__ or "", repeats=15)
    numbers = itertools.count()
    with working_folder(chosen) as folder:
        found = interleaved(chosen, {"pool": lambda: take_over(folder / str(next(numbers)))})
        time.sleep(0.2)  # the killed ones let go of the folder
    seconds = found["pool"]
    results = {"seconds": summary(seconds), "worst": bar(max(seconds), at_most=0.3)}
    report("How long until another worker has begun a killed worker's job?", {"workers": 2}, results, chosen)


if __name__ == "__main__":
    main()
