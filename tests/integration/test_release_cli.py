"""`webordinary release`: looking at releases, and going back."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from tests.harness.site import SiteHarness, open_site_harness
from webordinary.adapters.builders import PlainFiles
from webordinary.adapters.sqlite.claims import SqliteProjectLeases
from webordinary.entrypoints.cli.main import main
from webordinary.jobs.site_files import Stage
from webordinary.jobs.source import BuildFailed, Built, SourceTree
from webordinary.model.claims import CancelToken, OperatorToken
from webordinary.model.errors import MustWait
from webordinary.model.jobs import JobOutcome

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SiteHarness]:
    with open_site_harness(tmp_path / "data") as harness:
        yield harness


def git(site: SiteHarness, *args: str) -> str:
    origin = site.data / "origins" / "amelia.git"
    return subprocess.run(["git", "-C", str(origin), *args], check=True, capture_output=True, text=True).stdout.strip()


def run(site: SiteHarness, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["release", *words, "--data", str(site.data)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_kept_releases_are_listed_with_the_shown_one_marked(
    site: SiteHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    first = site.shown()
    site.mail("change the homepage title to Spring Sale")
    code, out, _ = run(site, capsys, "list", "amelia", "--json")
    assert code == 0
    listed = json.loads(out)
    assert [one["release"] for one in listed] == [site.shown(), first]
    assert [one["shown"] for one in listed] == [True, False]
    assert all(one["files"] for one in listed)
    assert listed[0]["change"] == "change the homepage title to Spring Sale"
    code, out, _ = run(site, capsys, "list", "amelia")
    assert "now" in out
    assert "change the homepage title to Spring Sale" in out


@pytest.mark.parametrize("words", [("list", "nope"), ("rollback", "nope")])
def test_a_site_that_never_was_is_told(
    site: SiteHarness, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    code, _, err = run(site, capsys, *words)
    assert code == 1
    assert err == "webordinary: there is no site 'nope'; see `webordinary project list`\n"


def test_a_rollback_shows_the_earlier_release_and_the_next_change_starts_from_there(
    site: SiteHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    site.mail("change the homepage title to Spring Sale")
    good, tree = site.shown(), git(site, "rev-parse", "main^{tree}")
    site.mail("change the homepage title to Oops", "<oops@example.com>")
    code, out, _ = run(site, capsys, "rollback", "amelia")
    assert code == 0
    assert f"shows {good} again" in out
    assert site.shown() == good
    assert git(site, "rev-parse", "main^{tree}") == tree
    assert git(site, "rev-list", "--merges", "main") == ""
    after = site.mail("change “See what is new” to “See more”")
    assert after.result
    assert after.result.commit == git(site, "rev-parse", "main")
    assert "<h1>Spring Sale</h1>" in site.page()
    assert "See more" in site.page()


def test_a_rollback_to_a_named_release_twice_changes_nothing_more(
    site: SiteHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    first = site.shown()
    site.mail("change the homepage title to Spring Sale")
    site.mail("change the homepage title to Autumn")
    code, out, _ = run(site, capsys, "rollback", "amelia", first[:8])
    assert code == 0
    gone = out.partition("Not shown any more:")[2].splitlines()[1:]
    assert gone == [f"  Changed the title of the homepage to “{title}”." for title in ("Spring Sale", "Autumn")]
    assert "would publish" not in out, "nothing is left to publish"
    main_before = git(site, "rev-parse", "main")
    code, out, _ = run(site, capsys, "rollback", "amelia", first, "--json")
    assert code == 0
    assert json.loads(out) | {"project": ""} == {
        "project": "", "stage": "edit", "release": first, "changed": False, "commit": None, "problem": "",
        "not_shown_any_more": [], "shown_again": [], "not_public": [],
    }  # fmt: skip
    assert git(site, "rev-parse", "main") == main_before


class SlowBuilder(PlainFiles):
    """Builds when it may."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        self.begun.set()
        assert self.may_end.wait(60)
        return super().build(tree, into, previous, token)


def test_a_rollback_does_not_wait_for_a_build_which_goes_on_from_what_is_shown_then(
    site: SiteHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    site.mail("change the homepage title to Spring Sale")
    good = site.shown()
    site.mail("change the homepage title to Oops", "<oops@example.com>")
    builder, usual = SlowBuilder(), site.deps.builders
    site.deps = replace(site.deps, builders={"plain": builder})
    started = site.begin("change “See what is new” to “See more”")
    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(site.work().perform, started, site.token(started))
        assert builder.begun.wait(60)
        code, out, _ = run(site, capsys, "rollback", "amelia")
        assert (code, site.shown()) == (0, good), out
        builder.may_end.set()
        with pytest.raises(MustWait, match="an operator"):
            job.result(60)
    assert site.shown() == good
    site.deps = replace(site.deps, builders=usual)
    done = site.end(started, site.work().perform(started, site.token(started)))
    assert done.outcome is JobOutcome.SUCCEEDED
    assert "<h1>Spring Sale</h1>" in site.page()
    assert "See more" in site.page()
    assert git(site, "rev-list", "--merges", "main") == ""
    jobs = git(site, "log", "--format=%(trailers:key=Job-Id,valueonly,separator=)", "main").split()
    assert len(jobs) == len(set(jobs)) == 3


def test_the_public_site_goes_back_with_its_own_line_and_without_touching_main(
    site: SiteHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("change the homepage title to Spring Sale", "publish", "change the homepage title to Oops", "publish"):
        site.mail(text)
    main_before = git(site, "rev-parse", "main")
    assert "Oops" in site.page(Stage.PUBLIC)
    assert run(site, capsys, "rollback", "amelia", "--stage", "public")[0] == 0
    assert "<h1>Spring Sale</h1>" in site.page(Stage.PUBLIC)
    assert git(site, "rev-parse", "main") == main_before
    assert "<h1>Spring Sale</h1>" in git(site, "show", "live:index.html")
    capsys.readouterr()
    _, out, _ = run(site, capsys, "list", "amelia", "--stage", "public", "--json")
    assert all(one["change"].startswith("Publish: ") for one in json.loads(out))


def test_an_undo_after_a_rollback_does_not_bring_it_back(site: SiteHarness, capsys: pytest.CaptureFixture[str]) -> None:
    site.mail("change the homepage title to Oops", "<oops@example.com>")
    run(site, capsys, "rollback", "amelia")
    before = site.page()
    assert site.mail("undo").outcome
    assert site.page() == before


def test_when_the_source_cannot_follow_the_site_is_back_and_the_operator_is_told(
    site: SiteHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    first = site.shown()
    site.mail("change the homepage title to Oops")
    (site.data / "origins" / "amelia.git").rename(site.data / "elsewhere")
    code, _, err = run(site, capsys, "rollback", "amelia")
    assert code == 1
    assert "did not follow" in err
    assert site.shown() == first


@pytest.mark.parametrize("words", [("rollback", "amelia"), ("rollback", "amelia", "fff"), ("list", "nobody")])
def test_what_is_not_there_is_said(
    site: SiteHarness, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    code, _, err = run(site, capsys, *words)
    assert code == 1
    assert err.startswith("webordinary: ")


def test_an_operators_lease_lasts_as_long_as_the_operators_process(site: SiteHarness) -> None:
    dead: set[str] = set()
    leases = SqliteProjectLeases(site.services.db, dead.__contains__)
    now = site.services.clock.now()
    held = leases.take("amelia", OperatorToken("operator-1"), now)
    assert held
    assert leases.take("amelia", FakeCancelToken(), now) is None
    dead.add("operator-1")
    taken = leases.take("amelia", FakeCancelToken(), now)
    assert taken
    assert taken.fence > held.fence
