"""Previews of conversations in a bucket: a folder each, a list of them, and an end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.emulator import RunningEmulator  # noqa: E402
from tests.aws.site_bucket import Requests, SiteBucket, fill  # noqa: E402
from webordinary.adapters.aws import names  # noqa: E402
from webordinary.adapters.aws.site.releases import (  # noqa: E402
    EXPIRES,
    FRESH,
    S3Releases,
)
from webordinary.jobs.site_files import Stage  # noqa: E402

BEGAN = datetime(2026, 4, 1, 9, 0, tzinfo=UTC)
FIRST, SECOND = Stage.of_thread("1" * 16), Stage.of_thread("2" * 16)
A, B = "a" * 64, "b" * 64
HOME = {"index.html": "home", "photo.png": "a photo"}


@pytest.fixture
def world(ministack: RunningEmulator, tmp_path: Path) -> SiteBucket:
    return SiteBucket(ministack, tmp_path, ("amelia",), now=BEGAN)


def preview(releases: S3Releases, stage: Stage, name: str, site: Mapping[str, str]) -> None:
    staged = releases.stage("amelia", stage, 1)
    fill(staged, site)
    releases.activate(releases.finish("amelia", stage, staged, name), 1)


def test_a_preview_lies_where_the_edge_looks_and_no_site_lies_there(world: SiteBucket) -> None:
    preview(world.worker(), FIRST, A, HOME)
    store = world.store("amelia", FIRST)
    assert store.partition("/")[2] == names.site_store("1", "amelia", FIRST).partition("/")[2]
    assert world.shown(FIRST) == HOME
    assert world.shown() == {}


def test_another_worker_publishes_what_a_preview_shows_without_building_it(world: SiteBucket) -> None:
    preview(world.worker(), FIRST, A, HOME)
    other = world.worker()
    promoted = other.promote("amelia", FIRST, Stage.PUBLIC, 2, B)
    assert promoted
    other.activate(promoted, 2)
    assert world.shown(Stage.PUBLIC) == HOME


def test_a_change_writes_what_changed_and_after_a_month_all(world: SiteBucket) -> None:
    worker = world.worker()
    preview(worker, FIRST, A, HOME)
    requests = Requests(world.s3)
    world.now = BEGAN + FRESH - timedelta(days=1)
    preview(worker, FIRST, B, {**HOME, "index.html": "new"})
    assert not [path for way, path in requests.made if way == "PUT" and path.endswith("photo.png")]
    for later in (1, 2):
        world.now = BEGAN + FRESH + timedelta(days=later)
        preview(worker, FIRST, f"{later}" * 64, {**HOME, "index.html": f"newer {later}"})
    written = [path for way, path in requests.made if way == "PUT" and path.endswith("photo.png")]
    assert len(written) == 1, "a month begins anew with the files"


def test_a_preview_whose_files_the_bucket_may_have_forgotten_is_not_used(world: SiteBucket) -> None:
    """S3 counts from when an object was written, so a file that did not change goes before the manifest."""
    preview(world.worker(), FIRST, A, HOME)
    world.now = BEGAN + FRESH + timedelta(days=1)
    later = world.worker()
    assert later.find("amelia", FIRST, A) is None
    assert later.current("amelia", FIRST) is None
    assert later.promote("amelia", FIRST, Stage.PUBLIC, 2, B) is None
    assert timedelta(days=60) < EXPIRES, "a file may be as old as FRESH when its preview last changes"


def test_a_dropped_preview_leaves_nothing_and_one_that_is_not_there_costs_a_look(world: SiteBucket) -> None:
    worker = world.worker()
    for stage in (FIRST, SECOND):
        preview(worker, stage, A, HOME)
    world.worker().drop("amelia", FIRST)
    left = world.s3.list_objects_v2(Bucket=world.sites, Prefix=f".previews/amelia/{FIRST}/")
    assert "Contents" not in left
    assert world.worker().previews("amelia") == (SECOND,)
    requests = Requests(world.s3)
    world.worker().drop("amelia", FIRST)
    assert [way for way, _ in requests.made] == ["GET"]


def test_two_workers_list_their_previews_at_the_same_moment(world: SiteBucket) -> None:
    ours, theirs, met = world.worker(), world.worker(), list[bool]()

    def meanwhile(**_: object) -> None:
        if not met:
            met.append(True)
            preview(theirs, SECOND, B, HOME)

    world.s3.meta.events.register("before-call.s3.PutObject", meanwhile)
    preview(ours, FIRST, A, HOME)
    assert ours.previews("amelia") == (FIRST, SECOND)
