"""When a worker looks at its running jobs."""

from __future__ import annotations

import random
from typing import cast

from webordinary.capacity.clockwork import MIDNIGHT, VirtualTime
from webordinary.model.claims import Claim, ClaimStatus, Started
from webordinary.model.errors import JobTimedOut
from webordinary.model.jobs import Job, JobState
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.worker.hold import RunningHold
from webordinary.worker.holdings import Holdings
from webordinary.worker.limits import Limits
from webordinary.worker.settings import Settings
from webordinary.worker.surroundings import Surroundings

SCOTT = ProjectUser("amelia", "scott")
LIMIT, HEARTBEAT = 30.0, 60.0


def test_a_job_that_was_told_to_end_is_not_looked_at_again_until_the_next_heartbeat() -> None:
    time, holdings = VirtualTime(), Holdings()
    limits = Limits(surroundings(time), holdings)
    claim = Claim(SCOTT, "w1", 1, 0, ClaimStatus.HELD, MIDNIGHT, MIDNIGHT, MIDNIGHT)
    job = Job("job-1", SCOTT, 1, 1, "thread", "mail", Command.EDIT, JobState.RUNNING, MIDNIGHT)
    hold = RunningHold(Started(claim, job), time, deadline=LIMIT, lease_until=lambda: 1e9)
    holdings.begin(hold, 0.0)
    assert limits.next_look() == LIMIT
    time.after(LIMIT, lambda: None)
    time.run(LIMIT, lambda: False)
    limits.enforce()
    assert isinstance(hold.reason, JobTimedOut)
    assert limits.next_look() == HEARTBEAT


def surroundings(time: VirtualTime) -> Surroundings:
    """Only what limits touch."""
    settings = Settings(job_limit=LIMIT, heartbeat=HEARTBEAT)
    nothing = cast("object", None)
    return Surroundings("w1", settings, nothing, nothing, nothing, time, nothing, nothing, random.Random(1))  # type: ignore[arg-type]
