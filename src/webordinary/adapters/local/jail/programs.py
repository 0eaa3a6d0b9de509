"""JailedPrograms: an outside program run to its end in a cell of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from webordinary.adapters.local.processes import JOB_MARK, OUTPUT_BYTES, run
from webordinary.model.claims import INTERRUPT_GRACE_SECONDS
from webordinary.model.errors import JobTimedOut, Permanent
from webordinary.model.hold import Hold
from webordinary.site.ports import Jail
from webordinary.site.reach import NOTHING_ELSE, Reach


class JailedPrograms:
    """The site room's Programs on a jail."""

    def __init__(self, jail: Jail, grace_seconds: float = INTERRUPT_GRACE_SECONDS) -> None:
        self._jail, self._grace = jail, grace_seconds

    def run(
        self,
        args: Sequence[str],
        cwd: Path,
        stdin: bytes,
        env: Mapping[str, str],
        seconds: float,
        hold: Hold,
        reach: Reach = NOTHING_ELSE,
    ) -> tuple[int, bytes, bytes]:
        """Exit code, output and errors; a stop asked through `hold` is SIGINT, the grace, then the end."""
        with self._jail.cell(cwd, {**env, JOB_MARK: hold.job_id}, reach) as cell:
            finished = run(
                cell.argv(args), cwd=cwd, stdin=stdin, env=cell.env, seconds=seconds, hold=hold, grace=self._grace,
                interrupt=cell.interrupt,
            )  # fmt: skip
            hold.check()  # in the cell still: the job's own end goes before a full disk
        if finished.timed_out:
            raise JobTimedOut(f"{args[0]} ran longer than {seconds:.0f} s and was ended")
        if finished.overflowed:
            raise Permanent(f"{args[0]} wrote more than {OUTPUT_BYTES} bytes and was ended")
        return finished.code, finished.out, finished.err
