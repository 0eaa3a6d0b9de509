"""How soon does a worker begin with a message that arrives while little happens, and what does waiting cost?

Workload: 20 messages a second over 50 keys, in an order thrown by dice, two worker processes. Measured from the moment
the producer begins to record a message to the first line of the work. Beside it plain SQLite, woken by a Unix datagram.
Then nothing arrives at all: the share of one core that a worker uses. Units: milliseconds, per cent of a core.
"""

from __future__ import annotations

import itertools
import random
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from harness import Options, bar, interleaved, options, percentile, report, summary, working_folder
from parts import raw_queue
from parts.pool import WorkerProcess, World, jobs_for, violations, wait_until_drained
from webordinary.worker.ports import WorkerSettings

WORKERS = 2
SLOTS = WorkerSettings().slots
KEYS = 50
PER_SECOND = 20


def paced(count: int) -> Iterator[int]:
    """Count at the pace of the workload."""
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
        yield number


@dataclass(frozen=True, slots=True)
class Waited:
    """Start latencies of one run in milliseconds, what its busier worker used when idle, and what went wrong."""

    latencies: list[float]
    idle_percent: float = 0.0
    wrong: int = 0


def pool(folder: Path, count: int, idle_seconds: float, seed: int) -> Waited:
    """The real pool."""
    world = World(folder)
    workers = [WorkerProcess(folder, f"container-{number}", slots=SLOTS) for number in range(WORKERS)]
    for worker in workers:
        worker.go()
    jobs = jobs_for(KEYS, -(-count // KEYS), interleaved=True)[:count]
    random.Random(seed).shuffle(jobs)
    sent = {}
    for number in paced(count):
        sent[jobs[number].job_id] = time.time()
        world.enqueue(jobs[number])
    wait_until_drained(world)
    idle = _idle_share(workers, idle_seconds)
    runs = [run for worker in workers for run in worker.runs()]
    for worker in workers:
        worker.stop()
    world.close()
    latencies = [(run.began_at - sent[run.job_id]) * 1000 for run in runs]
    return Waited(latencies, idle, sum(violations(runs).values()))


def _idle_share(workers: Sequence[WorkerProcess], seconds: float) -> float:
    time.sleep(min(1.0, seconds))  # what the load left behind is done
    before = [worker.cpu_seconds() for worker in workers]
    time.sleep(seconds)
    after = [worker.cpu_seconds() for worker in workers]
    return max(b - a for a, b in zip(before, after, strict=True)) / seconds * 100


def raw(folder: Path, count: int, seed: int) -> Waited:
    """One plain table."""
    path, context = folder / "raw.db", get_context("spawn")
    queue = raw_queue.RawQueue(path)
    queue.create()
    doors = [str(folder / f"{number}.sock") for number in range(WORKERS)]
    answers = context.Queue()
    servers = [context.Process(target=_serve_raw, args=(path, door, answers)) for door in doors]
    for server in servers:
        server.start()
    while not all(Path(door).exists() for door in doors):
        time.sleep(0.01)
    names = [f"site-{number % KEYS}#owner" for number in range(count)]
    random.Random(seed).shuffle(names)
    bell, sent = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), []
    for number in paced(count):
        sent.append(time.time())
        queue.put(names[number], str(number))
        for door in doors:
            bell.sendto(b"", door)
    time.sleep(0.2)
    for door in doors:
        bell.sendto(b"end", door)
    starts = [start for _ in servers for start in answers.get()]
    for server in servers:
        server.join()
    queue.close()
    assert len(starts) == count, f"{count - len(starts)} messages were not served"
    return Waited([(at - sent[int(number)]) * 1000 for number, at in starts])


def _serve_raw(path: Path, door: str, answers: Queue[list[tuple[str, float]]]) -> None:
    answers.put(raw_queue.serve(path, door))


def main() -> None:
    """Run and report."""
    chosen = options(__doc__ or "", repeats=3)
    count, idle_seconds = chosen.pick((300, 10.0), (5, 0.2))
    with working_folder(chosen) as folder:
        results = measure(chosen, folder, count, idle_seconds)
    workload = {"keys": KEYS, "per_second": PER_SECOND, "messages": count, "workers": WORKERS, "slots": SLOTS}
    report("How soon does a worker begin, and what does waiting cost?", workload, results, chosen)


def measure(chosen: Options, folder: Path, count: int, idle_seconds: float) -> dict[str, Any]:
    """Both candidates, run by run."""
    numbers = itertools.count()

    def new_folder() -> Path:
        place = folder / f"{next(numbers)}"
        place.mkdir()
        return place

    found = interleaved(
        chosen,
        {
            "raw": lambda: raw(new_folder(), count, chosen.seed),
            "pool": lambda: pool(new_folder(), count, idle_seconds, chosen.seed),
        },
    )
    ours = sorted(latency for run in found["pool"] for latency in run.latencies)
    theirs = sorted(latency for run in found["raw"] for latency in run.latencies)
    share = percentile(ours, 0.5) / percentile(theirs, 0.5)
    return {
        "pool_ms": summary(ours),
        "raw_ms": summary(theirs),
        "p50_over_raw": bar(share, at_most=2.0),
        "p99_ms": bar(percentile(ours, 0.99), at_most=25.0),
        "idle_percent_of_a_core": bar(max(run.idle_percent for run in found["pool"]), at_most=1.0),
        "violations": sum(run.wrong for run in found["pool"]),
    }


if __name__ == "__main__":
    main()
