"""What does an edit cost around its agent: everything but the agent itself and the site's own build?

Workload: a plain site of 500 files in a repository on this machine; each edit is one mail that changes one page, from
the start of its job to its settlement: workspace, commit, lease, join, push, release, events. `warm`: the worker has
served this key before. `cold`: a worker that has neither a workspace nor a mirror of the project. `git` is the plain
floor beside it: the same commit and push by hand in a clone, four git processes, nothing checked. Unit: milliseconds;
`processor_ms` is what all processes together really worked, which a busy machine does not change.

On ext4 leave a minute between two runs: it gives no inode out again that was freed within the last half minute, and
looks at each of them first. After the thousands of files that a run removes at its end, `cold` shows that search.
"""

from __future__ import annotations

import itertools
import resource
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import bar, interleaved, options, ratios, report, summary, working_folder
from parts.edits import Bench, Workbench

FILES = 500


@dataclass(frozen=True, slots=True)
class Took:
    """One edit."""

    wall_ms: float
    processor_ms: float


def measured(run: Callable[[], float]) -> Took:
    """The edit's own measure of time, with the processor time of this process and its children."""
    before = _processor_seconds()
    wall = run()
    return Took(wall, (_processor_seconds() - before) * 1000)


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Clone:
    """What a person does by hand."""

    def __init__(self, origin: Path, folder: Path) -> None:
        self._folder, self._numbers = folder, itertools.count()
        subprocess.run(["git", "clone", "--quiet", str(origin), str(folder)], check=True)

    def edit(self) -> float:
        """Fetch, change, commit, push."""
        page = self._folder / "part-0" / "page-0.html"
        began = time.perf_counter()
        self._git("fetch", "--quiet")
        self._git("reset", "--quiet", "--hard", "origin/main")
        page.write_text(f"<!doctype html><h1>By hand {next(self._numbers)}</h1>")
        self._git("-c", "user.name=p", "-c", "user.email=p@example.com", "commit", "--quiet", "-am", "by hand")
        self._git("push", "--quiet", "origin", "HEAD:main")
        return (time.perf_counter() - began) * 1000

    def _git(self, *args: str) -> None:
        subprocess.run(["git", "-C", str(self._folder), *args], check=True, capture_output=True)


def main() -> None:
    chosen = options(__doc__ or "", repeats=30)
    files = chosen.pick(FILES, 20)
    with working_folder(chosen) as folder:
        workbench = Workbench(folder, files)
        warm, clone = workbench.worker("warm"), Clone(folder / "origin.git", folder / "clone")
        numbers = itertools.count(1)

        def cold() -> float:
            number = next(numbers)
            newcomer = Bench(workbench, f"cold-{number}", mirrors=folder / f"mirrors-{number}")
            return newcomer.edit(fence=number, user="zoe")

        runs = interleaved(
            chosen,
            {
                "warm": lambda: measured(warm.edit),
                "cold": lambda: measured(cold),
                "git": lambda: measured(clone.edit),
            },
        )
        workbench.close()
    wall = {name: [took.wall_ms for took in tooks] for name, tooks in runs.items()}
    report(
        "milliseconds around the agent and the build, for one edit",
        {"files": files, "origin": "on the same disk", "page": "one changed"},
        {
            **{f"{name}_ms": summary(values) for name, values in wall.items()},
            **{f"{name}_processor_ms": summary([t.processor_ms for t in runs[name]]) for name in runs},
            "warm_over_git": ratios(wall["warm"], wall["git"]),
            "warm_bar": bar(summary(wall["warm"])["median"], at_most=150.0),
            "cold_bar": bar(summary(wall["cold"])["median"], at_most=400.0),
        },
        chosen,
    )


if __name__ == "__main__":
    main()
