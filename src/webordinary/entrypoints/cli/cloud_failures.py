"""What a command says when AWS, or an emulator of it, cannot be spoken to."""

from __future__ import annotations

import sys

from webordinary.entrypoints.cli.exits import Exit


def worded(problem: Exception) -> tuple[str, Exit] | None:
    """A sentence with what to do, and the exit code; None if it is something else."""
    if "botocore" not in sys.modules:
        return None  # then nobody has tried
    from webordinary.adapters.aws.outages import outage_behind  # noqa: PLC0415 - an extra, and slow to import

    if outage := outage_behind(problem):
        return f"{outage.what}; {outage.todo}", Exit.FAILED if outage.answers else Exit.NOT_RUNNING
    return None
