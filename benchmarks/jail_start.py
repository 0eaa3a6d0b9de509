"""What does a sandbox cost a program, from its start to the moment that nothing of it is left?

Workload: `true` in an empty workspace and in one of 10,000 files (the last look counts them), each bare, in a sandbox,
and in a sandbox with a proxy. Unit: milliseconds per run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from harness import interleaved, options, report, summary, working_folder
from webordinary.adapters.processes import run
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox, SandboxedPrograms
from webordinary.jobs.sandbox_policy import Network, SandboxPolicy
from webordinary.model.claims import OperatorToken

ENV: Mapping[str, str] = {"PATH": "/usr/bin:/bin"}
WITH_PROXY = SandboxPolicy(network=Network(hosts=frozenset({"model.example"})))


def bare(workspace: Path) -> float:
    """The program alone."""
    began = time.perf_counter()
    run(["true"], cwd=workspace, env=ENV, seconds=60)
    return (time.perf_counter() - began) * 1000


def sandboxed(programs: SandboxedPrograms, workspace: Path, reach: SandboxPolicy) -> float:
    """The program in a sandbox of its own."""
    began = time.perf_counter()
    programs.run(["true"], workspace, b"", ENV, 60, OperatorToken("bench", 1, "job"), reach)
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Measure and report."""
    chosen = options(__doc__ or "", repeats=50)
    files = chosen.pick(10_000, 10)
    with working_folder(chosen) as folder:
        sandbox = BubblewrapSandbox("bench", folder / "scratch")
        began = time.perf_counter()
        if reason := sandbox.why_not():
            raise SystemExit(f"no sandbox works here: {reason}")
        trial = (time.perf_counter() - began) * 1000
        programs = SandboxedPrograms(sandbox)
        empty, full = folder / "empty", folder / "full"
        for workspace, count in ((empty, 0), (full, files)):
            workspace.mkdir()
            for number in range(count):
                place = workspace / str(number // 100)
                place.mkdir(exist_ok=True)
                (place / f"{number}.html").write_text("<p>page</p>\n")
        candidates = {
            "bare": partial(bare, empty),
            "sandboxed": partial(sandboxed, programs, empty, SandboxPolicy()),
            "sandboxed_with_proxy": partial(sandboxed, programs, empty, WITH_PROXY),
            "sandboxed_with_many_files": partial(sandboxed, programs, full, SandboxPolicy()),
        }
        results = {name: summary(values) for name, values in interleaved(chosen, candidates).items()}
    question = "milliseconds from the start of a program to the moment that nothing of it is left"
    report(question, {"files": files}, {"trial_once_per_process": trial, **results}, chosen)


if __name__ == "__main__":
    main()
