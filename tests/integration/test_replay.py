"""`webordinary replay`: a stored mail once more, without any effect."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.site import SiteHarness, open_site_harness
from webordinary.entrypoints.cli.main import main

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SiteHarness]:
    with open_site_harness(tmp_path / "data") as harness:
        yield harness


def replay(site: SiteHarness, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["replay", *words, "--data", str(site.data)])
    said = capsys.readouterr()
    return code, said.out, said.err


def everything(site: SiteHarness) -> tuple[object, ...]:
    """What a replay must leave as it is."""
    refs = subprocess.run(
        ["git", "-C", str(site.data / "origins" / "amelia.git"), "for-each-ref"], check=True, capture_output=True
    ).stdout
    with site.services.db.read() as conn:
        rows = [tuple(row) for table in ("jobs", "outbox", "threads") for row in conn.execute(f"SELECT * FROM {table}")]
    return refs, rows, site.shown(), sorted(path.name for path in site.data.iterdir() if not path.name.startswith("."))


def test_a_change_is_made_again_from_where_it_started_and_nothing_is_touched(
    site: SiteHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    job = site.mail("change the homepage title to Spring Sale")
    site.mail("change the homepage title to Autumn")
    before = everything(site)
    code, out, _ = replay(site, capsys, job.job_id)
    assert code == 0
    assert re.search(r"^\+\s*<h1>Spring Sale</h1>$", out, re.MULTILINE)
    assert "The reply would be:" in out
    assert "Changed the title of the homepage to “Spring Sale”." in out
    assert everything(site) == before


def test_the_same_as_json_by_the_mails_id(site: SiteHarness, capsys: pytest.CaptureFixture[str]) -> None:
    job = site.mail("change the homepage title to Spring Sale")
    code, out, _ = replay(site, capsys, job.email_id, "--json")
    assert code == 0
    told = json.loads(out)
    assert told["outcome"] == "succeeded"
    assert [step["kind"] for step in told["steps"]][-1] == "SitePublished"
    assert "Spring Sale" in told["diff"]


def test_a_mail_that_was_not_understood_says_so_again(site: SiteHarness, capsys: pytest.CaptureFixture[str]) -> None:
    job = site.mail("make it pop")
    code, out, _ = replay(site, capsys, job.job_id)
    assert code == 0
    assert "No change." in out
    assert "make it pop" in out


def test_an_undo_can_be_replayed(site: SiteHarness, capsys: pytest.CaptureFixture[str]) -> None:
    site.mail("change the homepage title to Spring Sale", "<one@example.com>")
    undone = site.mail("undo")
    assert replay(site, capsys, undone.job_id)[0] == 0


def test_as_much_of_the_mails_id_as_status_shows_is_enough(
    site: SiteHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    job = site.mail("change the homepage title to Spring Sale")
    assert replay(site, capsys, job.email_id[:12])[0] == 0
    code, _, err = replay(site, capsys, "no such mail")
    assert code == 1
    assert "no mail begins with 'no such mail'" in err


def test_a_folder_that_is_there_is_not_worked_in(
    site: SiteHarness, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = replay(site, capsys, "job-0", "--keep", str(tmp_path))
    assert code == 2
    assert "is there already" in err


def test_the_folder_is_kept_on_demand(site: SiteHarness, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    job = site.mail("change the homepage title to Spring Sale")
    kept = tmp_path / "kept"
    assert replay(site, capsys, job.job_id, "--keep", str(kept))[0] == 0
    assert "Spring Sale" in (kept / "sites" / "amelia" / "edit" / "current" / "index.html").read_text()


def test_a_job_that_is_not_there_is_said(site: SiteHarness, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = replay(site, capsys, "job-0")
    assert code == 1
    assert "there is no job" in err


def test_a_publish_is_not_replayed(site: SiteHarness, capsys: pytest.CaptureFixture[str]) -> None:
    site.mail("change the homepage title to Spring Sale")
    job = site.mail("publish")
    code, _, err = replay(site, capsys, job.job_id)
    assert code == 1
    assert "only changes" in err
