"""Does a message cost more when there are very many customers, or a long history?

Workload: two worker processes whose work does nothing serve 10,000 messages: of 100 keys with 100 messages each, of
10,000 keys with one each, and of 100 keys again in a file that holds a million finished jobs. Then retention: how long
the other writers are kept out while it takes a bite of 100 finished jobs. Units: microseconds, milliseconds.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from harness import Options, bar, interleaved, options, ratios, report, summary, working_folder
from parts.pool import Rates, World, fill_and_drain, jobs_for
from webordinary.worker.ports import WorkerSettings

WORKERS = 2
SLOTS = WorkerSettings().slots

# Names as in production: the hashes of mails, in no order.
HISTORY = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
INSERT INTO jobs (job_id, key, ord, thread_ord, thread_id, email_id, command, state, outcome, attempts, worker, fence,
                  called_back, task_token, result, recorded_at, queued_at, started_at, settled_at)
SELECT 'job-' || lower(hex(randomblob(10))), 'site-' || (n % 1000) || '#owner', -n, -n, lower(hex(randomblob(8))),
       lower(hex(randomblob(32))), 'edit', 'settled', 'succeeded', 1, 'container-0', n, 1, hex(randomblob(16)),
       '{"summary": "The title is changed.", "changed_files": ["index.html"]}', n, n, n, n
FROM numbers"""


def with_history(folder: Path, count: int) -> Path:
    """A data folder with so many finished jobs in it."""
    folder.mkdir()
    world = World(folder)
    with world.database.write() as conn:
        conn.execute(HISTORY, {"count": count})
    world.close()
    return folder


def serve(folder: Path, keys: int, each: int, runs: itertools.count[int]) -> Rates:
    """One run under new names."""
    folder.mkdir(exist_ok=True)
    jobs = jobs_for(keys, each, interleaved=False, prefix=f"r{next(runs)}")
    return fill_and_drain(folder, jobs, workers=WORKERS, slots=SLOTS)


def bites(folder: Path, count: int, limit: int) -> list[float]:
    """Milliseconds that retention took per bite."""
    world, took = World(folder), []
    for _ in range(count):
        began = time.perf_counter()
        forgotten = world.jobs.forget(datetime.now(UTC), limit)
        took.append((time.perf_counter() - began) * 1000)
        assert forgotten == limit, f"forgot {forgotten} jobs instead of {limit}"
    world.close()
    return took


def measure(chosen: Options, folder: Path) -> dict[str, Any]:
    """All cases in turn."""
    keys, each = chosen.pick((100, 100), (3, 4))
    history, bite = chosen.pick((1_000_000, 100), (1000, 10))
    old, runs = with_history(folder / "old", history), itertools.count()
    cases: dict[str, Callable[[], Rates]] = {
        "few_keys": lambda: serve(folder / f"few-{next(runs)}", keys, each, runs),
        "many_keys": lambda: serve(folder / f"many-{next(runs)}", keys * each, 1, runs),
        "long_history": partial(serve, old, keys, each, runs),
    }
    found = interleaved(chosen, cases)
    results: dict[str, Any] = {"violations": sum(rates.wrong for case in found.values() for rates in case)}
    for phase in ("drain", "enqueue"):
        costs = {name: [1e6 / getattr(rates, phase) for rates in case] for name, case in found.items()}
        results[phase] = {f"{name}_us": summary(cost) for name, cost in costs.items()}
        for name in ("many_keys", "long_history"):
            share = ratios(costs[name], costs["few_keys"])
            results[phase][f"{name}_over_few_keys"] = bar(share["median"], at_most=1.5)
    results["forget_bite_ms"] = summary(bites(old, chosen.pick(20, 2), bite))
    return results


def main() -> None:
    """Run and report."""
    chosen = options(__doc__ or "", repeats=3)
    with working_folder(chosen) as folder:
        results = measure(chosen, folder)
    workload = {"workers": WORKERS, "slots": SLOTS, "messages": chosen.pick(10_000, 12)}
    report("Does a message cost more with many customers or a long history?", workload, results, chosen)


if __name__ == "__main__":
    main()
