"""How long each process waits for those below it to stop: longer than they may need, so that none is ended on the way.

A worker saves its work within `app.working.SAVING_SECONDS` after its agents' grace; what lies above that is for slow
disks and for children that have to be seen to their end.
"""

from __future__ import annotations

from webordinary.app.backends import AWS
from webordinary.config import Config


def of_worker(config: Config) -> float:
    """With itself: to save its work, and on AWS to see its last poll to the end."""
    poll_seconds = config.aws_poll_seconds if config.backend == AWS else 0.0
    return config.interrupt_grace_seconds + poll_seconds + 30.0


def of_supervisor(config: Config) -> float:
    """With its workers."""
    return of_worker(config) + 10.0


def of_up(config: Config) -> float:
    """With its supervisor, which ends what did not stop, and with page and workflow."""
    return 2 * of_supervisor(config)
