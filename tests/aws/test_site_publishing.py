"""Sites in buckets, published by workers that never saw one another's folders."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.extras import needs_extra
from tests.harness.sample_project import SampleProject

needs_extra("boto3", "aws")

from tests.aws.emulator import RunningEmulator  # noqa: E402
from tests.aws.faulty_proxy import BROKEN, DROP_REQUEST, DROP_RESPONSE, faulty_proxy  # noqa: E402
from tests.aws.site_bucket import Requests, SiteBucket, clients_of, fill  # noqa: E402
from tests.harness.stores import LeasesOfRunningJobs  # noqa: E402
from tests.unit.jobs.fixtures import OTHER_THREAD, THREAD, ZOE  # noqa: E402
from webordinary.adapters.aws.site.objects import MANIFEST  # noqa: E402
from webordinary.adapters.aws.site.releases import KEPT_COPIES, LocalCopies  # noqa: E402
from webordinary.adapters.sqlite.database import MemoryDatabase  # noqa: E402
from webordinary.jobs.site_files import (  # noqa: E402
    Stage,
    manifest_of,
)
from webordinary.model.claims import ProjectLease  # noqa: E402
from webordinary.model.errors import ClaimLost, Permanent, Transient  # noqa: E402
from webordinary.model.mail import Command  # noqa: E402
from webordinary.model.projects import Project  # noqa: E402
from webordinary.operations.releases import Rollback  # noqa: E402

A, B, C = "a" * 40, "b" * 40, "c" * 40
OLD = {"index.html": "old home", "about.html": "about", "site.css": "old style"}
NEW = {"index.html": "new home", "site.css": "new style", "photo.png": "a photo"}
THIRD = {"index.html": "third home", "site.css": "old style"}


@pytest.fixture
def world(ministack: RunningEmulator, tmp_path: Path) -> SiteBucket:
    return SiteBucket(ministack, tmp_path, ("amelia",))


def test_what_was_shown_before_is_read_also_by_a_worker_that_did_not_build_it(world: SiteBucket) -> None:
    world.publish(world.worker(), A, OLD, 1)
    other = world.worker()
    before = other.current("amelia", Stage.EDIT)
    assert before
    world.publish(other, B, NEW, 2)
    assert other.read(before, "index.html") == b"old home"
    with pytest.raises(Permanent, match=r"photo\.png of release aaaaaaaaaaaa is neither here"):
        other.read(before, "photo.png")
    now = other.current("amelia", Stage.EDIT)
    assert now
    assert other.read(now, "index.html") == b"new home"


def test_one_changed_page_costs_that_page_and_the_manifest(world: SiteBucket) -> None:
    worker = world.worker()
    world.publish(worker, A, OLD, 1)
    requests = Requests(world.s3)
    assert worker.find("amelia", Stage.EDIT, B) is None
    before = worker.current("amelia", Stage.EDIT)
    world.publish(worker, B, {**OLD, "about.html": "changed"}, 2)
    assert requests.made == [("PUT", MANIFEST), ("PUT", "about.html"), ("PUT", MANIFEST)]
    assert before
    assert before.name == A[:12]


def test_assets_come_before_pages_and_stale_files_go_last(world: SiteBucket) -> None:
    worker = world.worker()
    world.publish(worker, A, OLD, 1)
    requests = Requests(world.s3)
    world.publish(worker, B, {**NEW, "new.html": "new page"}, 2)
    keys = [key for _, key in requests.made if key != MANIFEST]
    assert sorted(keys[:2]) == ["photo.png", "site.css"]
    assert keys[2:] == ["new.html", "index.html", ""], "the last request names what it removes in its body"
    assert world.shown() == {**NEW, "new.html": "new page"}


def test_another_worker_knows_what_is_shown_and_what_was(world: SiteBucket) -> None:
    first = world.worker()
    world.publish(first, A, OLD, 1)
    world.publish(first, B, NEW, 2)
    other = world.worker()
    found = other.find("amelia", Stage.EDIT, A)
    assert found
    assert [release.name for release in other.list("amelia", Stage.EDIT)] == [B[:12], A[:12]]
    assert [release.files for release in other.list("amelia", Stage.EDIT)] == [3, 3]
    assert all(release.made_at for release in other.list("amelia", Stage.EDIT))
    shown = other.current("amelia", Stage.EDIT)
    assert shown
    assert set(manifest_of(shown)) == set(NEW), "a page to take a picture of is found without the files"
    assert other.activate(found, 3)
    assert world.shown() == OLD
    assert [release.name for release in other.list("amelia", Stage.EDIT)] == [B[:12], A[:12]], "it keeps its place"


def test_going_back_moves_no_bytes(world: SiteBucket) -> None:
    first = world.worker()
    world.publish(first, A, OLD, 1)
    world.publish(first, B, {**OLD, "about.html": "changed"}, 2)
    operator = world.worker()
    requests = Requests(world.s3)
    [_, old] = operator.list("amelia", Stage.EDIT)
    assert operator.activate(old, 3)
    assert [method for method, _ in requests.made] == ["GET", "GET", "PUT", "PUT", "PUT"]
    assert world.shown() == OLD
    current = operator.current("amelia", Stage.EDIT)
    assert current == old.path


def test_the_public_site_is_copied_from_the_edit_site_by_any_worker(world: SiteBucket) -> None:
    world.publish(world.worker(), A, OLD, 1)
    other = world.worker()
    promoted = other.promote("amelia", Stage.EDIT, Stage.PUBLIC, 2, C)
    assert promoted
    assert other.activate(promoted, 2)
    assert world.shown(Stage.PUBLIC) == OLD
    third = world.worker()
    assert [release.name for release in third.list("amelia", Stage.PUBLIC)] == [promoted.name]
    world.publish(third, B, NEW, 3)
    again = third.promote("amelia", Stage.EDIT, Stage.PUBLIC, 4, "d" * 40)
    assert again
    assert third.activate(again, 4)
    assert world.shown(Stage.PUBLIC) == NEW
    fourth = world.worker()
    [_, earlier] = fourth.list("amelia", Stage.PUBLIC)
    assert fourth.activate(earlier, 5)
    assert world.shown(Stage.PUBLIC) == OLD


def test_who_published_last_elsewhere_is_noticed(world: SiteBucket) -> None:
    first, second = world.worker(), world.worker()
    world.publish(first, A, OLD, 1)
    world.publish(second, B, NEW, 2)
    world.publish(first, C, THIRD, 3)
    assert world.shown() == THIRD
    assert [release.name for release in second.list("amelia", Stage.EDIT)] == [C[:12], B[:12], A[:12]]


class Source:
    """Takes a line back, in words only."""

    def restore(self, project: Project, stage: Stage, name: str, lease: ProjectLease) -> str | None:
        return f"{stage} is {name} again"


def test_an_operator_rolls_back_from_a_machine_that_never_saw_the_site(world: SiteBucket) -> None:
    worker = world.worker()
    world.publish(worker, A, OLD, 1)
    world.publish(worker, B, NEW, 2)
    leases = LeasesOfRunningJobs(MemoryDatabase(), lambda holder: False)
    rollback = Rollback(leases, world.worker(), Source(), lambda: datetime.now(UTC), lambda seconds: None)
    done = rollback.roll_back(Project("amelia", "repo"), Stage.EDIT, "", "operator")
    assert (done.release.name, done.flipped, done.commit) == (A[:12], True, f"edit is {A[:12]} again")
    assert world.shown() == OLD


@pytest.mark.needs("git")
def test_publish_in_one_conversation_does_not_put_anothers_unfinished_work_into_the_public_bucket(
    world: SiteBucket, tmp_path: Path
) -> None:
    amelia = SampleProject(tmp_path / "amelia")

    def send(text: str, job_id: str, command: Command = Command.EDIT, **about: object) -> None:
        deps = replace(amelia.deps(), releases=world.worker())  # none of them has built what another shows
        amelia.send(text, job_id, command=command, deps=deps, **about)  # type: ignore[arg-type]

    def public(name: str) -> str:
        return world.text(Stage.PUBLIC, name)

    send("change the title of the about page to “Half a thought”", "job-1", key=ZOE, thread=OTHER_THREAD)
    send("change the homepage title to Spring Sale", "job-2")
    promised = world.shown(Stage.of_thread(THREAD))
    assert "Half a thought" not in promised["about.html"]
    send("publish", "job-3", Command.PUBLISH)
    assert promised == world.shown(Stage.PUBLIC), "the preview showed something else"
    assert world.worker().previews("amelia") == ()
    assert world.shown(Stage.of_thread(THREAD)) == {}
    assert "<h1>Spring Sale</h1>" in public("index.html")
    assert "Half a thought" not in public("about.html")
    send("publish", "job-4", Command.PUBLISH, named="all")
    assert "Half a thought" in public("about.html")
    send("undo", "job-5", Command.UNDO)
    assert "Spring Sale" not in public("index.html")
    assert "Half a thought" in public("about.html")
    [shown, *_] = world.worker().list("amelia", Stage.PUBLIC)
    assert amelia.git("rev-parse", "live").startswith(shown.name)


class Dies(Exception):
    """The worker is gone."""


@pytest.mark.parametrize("steps", range(4))
def test_whatever_step_a_worker_dies_at_another_one_finishes(world: SiteBucket, steps: int) -> None:
    world.publish(world.worker(), A, OLD, 1)
    left = iter(range(steps))

    def check() -> None:
        if next(left, None) is None:
            raise Dies

    with pytest.raises(Dies):
        world.publish(world.worker(), B, NEW, 2, check)
    other = world.worker()
    assert other.find("amelia", Stage.EDIT, B) is None, "it was never shown whole: it is built again"
    current = other.current("amelia", Stage.EDIT)
    assert current
    assert current.name == A[:12]
    world.publish(other, B, NEW, 3)
    assert world.shown() == NEW


def test_a_site_left_half_written_is_promoted_and_shown_as_it_was_whole(world: SiteBucket) -> None:
    world.publish(world.worker(), A, OLD, 1)
    left = iter(range(2))

    def check() -> None:
        if next(left, None) is None:
            raise Dies

    with pytest.raises(Dies):
        world.publish(world.worker(), B, NEW, 2, check)
    assert world.shown() != OLD
    other = world.worker()
    promoted = other.promote("amelia", Stage.EDIT, Stage.PUBLIC, 3, C)
    assert promoted
    other.activate(promoted, 3)
    assert world.shown(Stage.PUBLIC) == OLD
    [old] = other.list("amelia", Stage.EDIT)
    other.activate(old, 4)
    assert world.shown() == OLD


def test_a_stale_worker_changes_nothing_and_one_that_lost_its_claim_stops(world: SiteBucket) -> None:
    slow, quick = world.worker(), world.worker()
    world.publish(slow, A, OLD, 1)
    release = world.built(slow, B, NEW, 2)
    world.publish(quick, C, THIRD, 3)
    assert not slow.activate(release, 2)
    assert world.shown() == THIRD

    def lost() -> None:
        raise ClaimLost("amelia#scott", "slow", 4)

    with pytest.raises(ClaimLost):
        slow.activate(release, 4, lost)
    quick.activate(quick.list("amelia", Stage.EDIT)[0], 5)
    assert world.shown() == THIRD


def test_it_ends_well_on_a_bad_line(world: SiteBucket) -> None:
    with faulty_proxy(world.emulator.endpoint) as proxy:
        worker = world.worker(s3=clients_of(proxy.endpoint).s3)
        rounds = [(A, OLD, DROP_REQUEST), (B, NEW, DROP_RESPONSE), (C, THIRD, BROKEN)]
        for fence, (commit, site, fault) in enumerate(rounds, start=1):
            for operation in ("manifest.json", "index.html", "site.css", "?delete"):
                proxy.inject(fault, operation)
            world.publish(worker, commit, site, fence)
            assert world.shown() == site
        assert {name for _, name in proxy.done} == {fault.name for _, _, fault in rounds}


def test_a_release_that_nobody_knows_is_built_again(world: SiteBucket) -> None:
    release = world.built(world.worker(), A, OLD, 1)
    with pytest.raises(Transient, match="built again"):
        world.worker().activate(release, 2)


def test_an_unpublishable_path_is_refused_before_anything_is_written(world: SiteBucket) -> None:
    worker = world.worker()
    with pytest.raises(Permanent, match="no path of a site"):
        world.publish(worker, A, {"index.html": "", ".webordinary/x": ""}, 1)
    assert world.shown() == {}


def test_copies_of_sites_are_bounded_and_the_oldest_goes_to_make_the_next(tmp_path: Path, world: SiteBucket) -> None:
    worker = world.worker()
    for number in range(KEPT_COPIES + 2):
        world.built(worker, f"{number}" * 40, {"index.html": str(number)}, number)
    folder = tmp_path / f"w-{world.workers}" / "amelia" / "edit"
    assert len(list((folder / "releases").iterdir())) == KEPT_COPIES
    assert (folder / "spare" / "index.html").is_file()


def test_sites_that_nobody_published_for_long_go_when_they_take_too_much_room(tmp_path: Path) -> None:
    copies, now = LocalCopies(tmp_path / "copies", most_bytes=100), datetime.now(UTC)
    for number in range(20):
        site = (f"site-{number}", Stage.EDIT)
        staged = copies.stage(site, 1)
        fill(staged, {"index.html": "x" * 50})
        copies.finish(site, staged, "a", now)
    left = {path.parent.name for path in (tmp_path / "copies").glob("*/edit")}
    assert left == {f"site-{number}" for number in range(4, 20)}
