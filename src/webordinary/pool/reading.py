"""Reading a key's whole queue, however long it is."""

from __future__ import annotations

from collections.abc import Iterator

from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Jobs

_PAGE = 1000


def all_open(jobs: Jobs, key: ProjectUser) -> Iterator[Job]:
    """The open jobs of a key, page by page. One that goes to the tail meanwhile is met there, perhaps again."""
    after = 0
    while page := jobs.open_jobs(key, _PAGE, after):
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].order
