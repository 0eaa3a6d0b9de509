"""What every benchmark shares: arguments, warm-up and interleaved repeats, and one JSON report on stdout."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """How much to run. `tiny` proves that the benchmark still works; its figures mean nothing."""

    tiny: bool
    repeats: int
    seed: int
    folder: Path | None

    def pick(self, full: T, tiny: T) -> T:
        """A size of the workload."""
        return tiny if self.tiny else full


def options(description: str, repeats: int) -> Options:
    """Read the command line; `repeats` is the default of a full run."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tiny", action="store_true", help="run once with next to no work, to see that it runs")
    parser.add_argument("--repeats", type=int, default=None, help=f"measured runs of each candidate ({repeats})")
    parser.add_argument("--seed", type=int, default=1, help="for workloads that throw dice (1)")
    parser.add_argument("--folder", type=Path, default=None, help="where to work: another disk, another figure")
    given = parser.parse_args()
    return Options(given.tiny, given.repeats or (1 if given.tiny else repeats), given.seed, given.folder)


@contextmanager
def working_folder(chosen: Options) -> Iterator[Path]:
    """An empty folder on the disk to be measured, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="wo-bench-", dir=chosen.folder) as name:
        yield Path(name)


def progress(words: str) -> None:
    """Say on stderr where it stands: some take a quarter of an hour, and stdout is the report's."""
    print(words, file=sys.stderr, flush=True)


def interleaved(chosen: Options, candidates: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Warm every candidate up once, then run them in turn, so that a noisy machine disturbs all alike."""
    if not chosen.tiny:
        progress(f"warming up: {', '.join(candidates)}")
        for run in candidates.values():
            run()
    results: dict[str, list[T]] = {name: [] for name in candidates}
    for number in range(chosen.repeats):
        progress(f"round {number + 1} of {chosen.repeats}")
        for name, run in candidates.items():
            results[name].append(run())
    return results


def summary(values: Sequence[float]) -> dict[str, float]:
    """What is worth knowing about a sample."""
    ordered = sorted(values)
    return {
        "median": _rounded(statistics.median(ordered)),
        "p99": _rounded(percentile(ordered, 0.99)),
        "min": _rounded(ordered[0]),
        "max": _rounded(ordered[-1]),
        "samples": len(ordered),
    }


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by `share` of the sample."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Ours over theirs, run by run: what the machine did to both cancels out."""
    return summary([one / other for one, other in zip(ours, theirs, strict=True)])


def bar(value: float, *, at_least: float | None = None, at_most: float | None = None) -> dict[str, Any]:
    """A figure beside the bar it has to clear."""
    met = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
    bounds = {"at_least": at_least, "at_most": at_most}
    return {"value": _rounded(value), **{k: v for k, v in bounds.items() if v is not None}, "met": met}


def report(question: str, workload: Mapping[str, Any], results: Mapping[str, Any], chosen: Options) -> None:
    """Print the one JSON document of a benchmark."""
    document = {
        "benchmark": Path(sys.argv[0]).stem,
        "question": question,
        "workload": workload,
        "results": results,
        "tiny": chosen.tiny,
        "repeats": chosen.repeats,
        "seed": chosen.seed,
        "commit": _commit(),
        "machine": _machine(),
    }
    json.dump(document, sys.stdout, indent=2)
    print()


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _commit() -> str:
    here = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=here, capture_output=True, text=True, check=True, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "not committed"
    return described.stdout.strip()


def _machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average": _rounded(os.getloadavg()[0]),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
