"""What mails leave on the disk is bounded by use: by the mails that are kept, not by how many there ever were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.harness.site import SiteHarness, open_site_harness
from tests.integration.test_git_workspace import OriginWithWorkers, changed
from tests.unit.jobs.fixtures import work
from webordinary.adapters.files.transports import MaildirTransport
from webordinary.adapters.git.mirrors import tend_origins
from webordinary.adapters.git.workspaces import size_of
from webordinary.compose.background import retention
from webordinary.mail.outbox import deliver_due

ROUNDS, MAILS = 3, 25
KB = 1000
MOST_DATABASE_KB, MOST_ORIGIN_KB, MOST_WORKSPACE_KB = 15, 2, 25
"""For each mail; a workspace keeps that much only until it is made anew."""
JOBS, PAGES, BLOCK = 25, 200, 4096
MOST_WORKSPACE = 16 * KB * KB
TITLE = "Change the homepage title to Sale {number}\n\nRegards\nScott\n\n{quoted}"
PROSE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
QUOTED = 3600
"""Characters under each wish, so that a mail has 4 kB; other words in each, as repetition would be compressed."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SiteHarness]:
    with open_site_harness(tmp_path / "data") as harness:
        yield harness


def write(site: SiteHarness, number: int) -> None:
    start = number * 1009 % (len(PROSE) - QUOTED)
    quoted = "".join(f"> {line}\n" for line in PROSE[start : start + QUOTED].splitlines())
    site.mail(TITLE.format(number=number, quoted=quoted), f"<{number}@growth.example>")


def keep_up(site: SiteHarness) -> None:
    """What `up` does by itself, a month later: replies leave, old mails are forgotten, origins are packed."""
    services = site.services
    deliver_due(services.outbox, MaildirTransport(site.data / "outbox"), services.clock.now(), services.events)
    retention(services).run_once(services.clock.now() + timedelta(days=services.config.retention_days + 1))
    tend_origins(site.data / "origins")


def bytes_of(site: SiteHarness) -> dict[str, int]:
    with site.services.db.read() as conn:
        pages, size = (int(conn.execute(f"PRAGMA {what}").fetchone()[0]) for what in ("page_count", "page_size"))
    return {"database": pages * size} | {part: size_of(site.data / part) for part in ("origins", "workspaces", "mail")}


def test_what_mails_leave_on_the_disk_does_not_grow_with_the_number_of_mails_ever(site: SiteHarness) -> None:
    empty, measured = bytes_of(site), []
    for first in range(0, ROUNDS * MAILS, MAILS):
        for number in range(first, first + MAILS):
            write(site, number)
        keep_up(site)
        measured.append(bytes_of(site))
    database = [at["database"] for at in measured]
    assert database[0] - empty["database"] <= MAILS * MOST_DATABASE_KB * KB
    assert database[-1] <= database[0] * 1.1, "rows of mails that were forgotten leave their space to later ones"
    grown = {part: measured[-1][part] - empty[part] for part in empty}
    assert grown["origins"] <= ROUNDS * MAILS * MOST_ORIGIN_KB * KB
    assert grown["workspaces"] <= ROUNDS * MAILS * MOST_WORKSPACE_KB * KB
    assert [path for path in (site.data / "mail").rglob("*") if path.is_file()] == []


def test_a_workspace_is_made_anew_before_what_earlier_jobs_left_fills_the_disk(tmp_path: Path) -> None:
    world = OriginWithWorkers(tmp_path)
    worker, sizes = world.worker(), list[int]()
    for job in range(JOBS):
        workspace = worker.prepare(work(world.project, f"job-{job}"))
        for page in range(PAGES):
            (workspace.path / f"page-{page}.html").write_text(f"{job} {page}\n")
        worker.save(changed(worker, workspace, "about.html", f"Us {job}\n"))
        sizes.append(size_of(workspace.path.parent))
    assert JOBS * PAGES * BLOCK > MOST_WORKSPACE
    assert max(sizes) <= MOST_WORKSPACE
