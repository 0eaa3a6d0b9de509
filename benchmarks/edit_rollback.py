"""How soon do visitors see an earlier release again?

Workload: a plain site of 500 files with its full set of releases; the operator goes back one release, then a customer's
edit publishes a new one. `flip_ms`: from the call until the earlier release is shown. `all_ms`: until main has followed
too. Beside it an edit's own overhead on the same site. Unit: milliseconds.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness import bar, interleaved, options, report, summary, working_folder
from parts.edits import Workbench
from webordinary.adapters.git.origins import GitSourceRollback
from webordinary.adapters.sqlite.claims import SqliteProjectLeases
from webordinary.jobs.site_files import KEPT_RELEASES, Stage
from webordinary.model.claims import ProjectLease
from webordinary.model.projects import Project
from webordinary.operations.releases import Rollback

FILES = 500


@dataclass(slots=True)
class TimedMain:
    """Main follows once the flip is done: when it is asked, visitors see the earlier release."""

    inside: GitSourceRollback
    asked_at: float = 0.0

    def restore(self, project: Project, stage: Stage, name: str, lease: ProjectLease) -> str | None:
        """As inside."""
        self.asked_at = time.perf_counter()
        return self.inside.restore(project, stage, name, lease)


class RollbackTimer:
    def __init__(self, workbench: Workbench, folder: Path) -> None:
        self._on, self._numbers = workbench, itertools.count(1)
        self._main = TimedMain(GitSourceRollback(folder / "mirrors", "operator"))
        self._rollback = Rollback(
            SqliteProjectLeases(workbench.db, lambda worker: False),
            workbench.releases,
            self._main,
            lambda: datetime.now(UTC),
            time.sleep,
        )

    def go_back(self) -> tuple[float, float]:
        """Milliseconds until visitors see it, and until main has followed."""
        began = time.perf_counter()
        done = self._rollback.roll_back(self._on.project, Stage.EDIT, "", f"operator-{next(self._numbers)}")
        ended = time.perf_counter()
        assert done.flipped, done
        assert not done.problem, done
        return (self._main.asked_at - began) * 1000, (ended - began) * 1000


def main() -> None:
    chosen = options(__doc__ or "", repeats=15)
    files, kept = chosen.pick(FILES, 20), chosen.pick(KEPT_RELEASES, 2)
    with working_folder(chosen) as folder:
        workbench = Workbench(folder, files)
        worker, operator = workbench.worker("warm"), RollbackTimer(workbench, folder)
        for _ in range(kept):
            worker.edit()
        taken = interleaved(chosen, {"rollback": operator.go_back, "edit": lambda: (worker.edit(), 0.0)})
        workbench.close()
    flips, whole = zip(*taken["rollback"], strict=True)
    report(
        "milliseconds from the operator's word to the earlier release",
        {"files": files, "releases": kept},
        {
            "flip_ms": summary(flips),
            "all_ms": summary(whole),
            "edit_ms": summary([wall for wall, _ in taken["edit"]]),
            "flip_bar": bar(summary(flips)["p99"], at_most=1000.0),
        },
        chosen,
    )


if __name__ == "__main__":
    main()
