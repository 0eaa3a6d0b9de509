"""How fast do two workers empty a full pool, and how fast is it filled, beside plain SQLite on the same disk?

Workload: 100 keys with 100 messages each, recorded by one producer, served by two worker processes whose work does
nothing. `by_key`: each key's messages arrive together. `in_turn`: everybody's first, everybody's second, and so on, so
that fairness makes a worker change keys ten times a second. Filled without wake-ups, emptied without new arrivals, both
by both. Units: messages per second, and CPU microseconds a message, which a busy machine disturbs less.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from harness import Options, bar, interleaved, options, ratios, report, summary, working_folder
from parts import raw_queue
from parts.pool import Rates, fill_and_drain, jobs_for
from webordinary.worker.ports import WorkerSettings

WORKERS = 2
SLOTS = WorkerSettings().slots


def pool(folder: Path, keys: int, each: int, in_turn: bool) -> Rates:
    """Fill and empty the real pool."""
    return fill_and_drain(folder, jobs_for(keys, each, interleaved=in_turn), workers=WORKERS, slots=SLOTS)


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
    began, used = time.time(), time.process_time()
    for job in jobs:
        queue.put(str(job.key), job.job_id)
    filled, used = time.time(), time.process_time() - used
    gate.wait()
    done = [answers.get() for _ in workers]
    for worker in workers:
        worker.join()
    queue.close()
    counts, ended, used_by_workers = zip(*done, strict=True)
    return Rates(
        enqueue=len(jobs) / (filled - began),
        drain=len(jobs) / (max(ended) - filled),
        enqueue_cpu=used * 1e6 / len(jobs),
        drain_cpu=sum(used_by_workers) * 1e6 / len(jobs),
        wrong=len(jobs) - sum(counts),
    )


def _drain_raw(path: Path, gate: Barrier, answers: Queue[tuple[int, float, float]]) -> None:
    gate.wait()
    gate.wait()
    used = time.process_time()
    answers.put((*raw_queue.drain(path), time.process_time() - used))


def measure(chosen: Options, folder: Path, keys: int, each: int, in_turn: bool) -> dict[str, Any]:
    """Both candidates, run by run."""
    numbers = itertools.count()

    def in_new_folder(run: Callable[[Path, int, int, bool], Rates]) -> Rates:
        place = folder / f"{in_turn}-{next(numbers)}"
        place.mkdir()
        return run(place, keys, each, in_turn)

    found = interleaved(chosen, {"raw": partial(in_new_folder, raw), "pool": partial(in_new_folder, pool)})
    results: dict[str, Any] = {}
    for phase in ("drain", "enqueue"):
        ours, theirs = ([getattr(rates, phase) for rates in found[name]] for name in ("pool", "raw"))
        shares = ratios(ours, theirs)
        results[phase] = {
            "pool_per_second": summary(ours),
            "raw_per_second": summary(theirs),
            "ratio": shares,
            "pool_cpu_us": summary([getattr(rates, f"{phase}_cpu") for rates in found["pool"]]),
            "raw_cpu_us": summary([getattr(rates, f"{phase}_cpu") for rates in found["raw"]]),
            "bar": bar(shares["median"], at_least=0.6),
        }
    return {**results, "violations": sum(rates.wrong for rates in (*found["pool"], *found["raw"]))}


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
