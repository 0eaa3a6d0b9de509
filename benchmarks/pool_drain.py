"""How fast do two workers empty a full pool, and how fast is it filled, beside plain SQLite on the same disk?

Workload: 100 keys with 100 messages each, recorded by one producer, served by two worker processes whose work does
nothing. `by_key`: each key's messages arrive together. `in_turn`: everybody's first, everybody's second, and so on, so
that fairness makes a worker change keys after nearly every message. Unit: messages per second.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from harness import Options, bar, interleaved, options, ratios, report, summary, working_folder
from parts import raw_queue
from parts.pool import World, WorkerProcess, jobs_for, violations, wait_until_drained

WORKERS = 2
SLOTS = 1


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages per second of one run, and what went wrong in it."""

    enqueue: float
    drain: float
    wrong: dict[str, int]


def pool(folder: Path, keys: int, each: int, in_turn: bool) -> Rates:
    """Fill and empty the real pool."""
    jobs = jobs_for(keys, each, interleaved=in_turn)
    world = World(folder)
    workers = [WorkerProcess(folder, f"container-{number}", slots=SLOTS) for number in range(WORKERS)]
    began = time.time()
    for job in jobs:
        world.enqueue(job)
    filled = time.time()
    for worker in workers:
        worker.go()
    wait_until_drained(world)
    seconds = world.last_settled_at() - filled
    runs = [run for worker in workers for run in worker.runs()]
    for worker in workers:
        worker.stop()
    world.close()
    wrong = {**violations(runs), "missing": len(jobs) - len({run.job_id for run in runs})}
    return Rates(len(jobs) / (filled - began), len(jobs) / seconds, wrong)


def raw(folder: Path, keys: int, each: int, in_turn: bool) -> Rates:
    """Fill and empty one plain table."""
    path, jobs = folder / "raw.db", jobs_for(keys, each, interleaved=in_turn)
    context = get_context("spawn")
    gate, answers = context.Barrier(WORKERS + 1), context.Queue()
    workers = [context.Process(target=_drain_raw, args=(path, gate, answers)) for _ in range(WORKERS)]
    queue = raw_queue.RawQueue(path)
    queue.create()
    for worker in workers:
        worker.start()
    gate.wait()  # both are up
    began = time.time()
    for job in jobs:
        queue.put(str(job.key), job.job_id)
    filled = time.time()
    gate.wait()
    done = [answers.get() for _ in workers]
    for worker in workers:
        worker.join()
    queue.close()
    missing = len(jobs) - sum(count for count, _ in done)
    return Rates(len(jobs) / (filled - began), len(jobs) / (max(at for _, at in done) - filled), {"missing": missing})


def _drain_raw(path: Path, gate: Any, answers: Any) -> None:
    gate.wait()
    gate.wait()
    answers.put(raw_queue.drain(path))


def measure(chosen: Options, folder: Path, keys: int, each: int, in_turn: bool) -> dict[str, Any]:
    """Both candidates, run by run."""
    numbers = itertools.count()

    def in_new_folder(run: Any) -> Rates:
        place = folder / f"{in_turn}-{next(numbers)}"
        place.mkdir()
        rates: Rates = run(place, keys, each, in_turn)
        return rates

    found = interleaved(chosen, {"raw": partial(in_new_folder, raw), "pool": partial(in_new_folder, pool)})
    results: dict[str, Any] = {}
    for phase in ("drain", "enqueue"):
        ours, theirs = ([getattr(rates, phase) for rates in found[name]] for name in ("pool", "raw"))
        shares = ratios(ours, theirs)
        results[phase] = {
            "pool_per_second": summary(ours),
            "raw_per_second": summary(theirs),
            "ratio": shares,
            "bar": bar(shares["median"], at_least=0.6),
        }
    wrong = [rates.wrong for rates in (*found["pool"], *found["raw"])]
    return {**results, "violations": sum(sum(one.values()) for one in wrong)}


def main() -> None:
    """Run and report."""
    chosen = options(__doc__ or "", repeats=5)
    keys, each = chosen.pick((100, 100), (3, 4))
    with working_folder(chosen) as folder:
        results = {
            "by_key": measure(chosen, folder, keys, each, in_turn=False),
            "in_turn": measure(chosen, folder, keys, each, in_turn=True),
        }
    workload = {"keys": keys, "messages_each": each, "workers": WORKERS, "slots": SLOTS, "synchronous": "FULL"}
    report("How fast do two workers empty a full pool, and how fast is it filled?", workload, results, chosen)


if __name__ == "__main__":
    main()
