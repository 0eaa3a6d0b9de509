"""Releases: the same sentences hold in memory, in a folder and in buckets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.releases import MemoryReleases

from webordinary.adapters.files.releases import FolderReleases
from webordinary.jobs.ports import Releases
from webordinary.jobs.site_files import Mark, Release, Stage, keep_manifest, release_name

A, B = "a" * 40, "b" * 40


@pytest.fixture(params=["memory", "folder", "aws"])
def releases(request: pytest.FixtureRequest, tmp_path: Path) -> Releases:
    if request.param == "aws":
        emulator = request.getfixturevalue("ministack")
        from tests.aws.site_bucket import SiteBucket

        return SiteBucket(emulator, tmp_path).worker(keep=3)
    return MemoryReleases(keep=3) if request.param == "memory" else FolderReleases(tmp_path / "sites", keep=3)


def finished(releases: Releases, commit: str, fence: int = 1) -> Release:
    staged = releases.stage("amelia", Stage.EDIT, fence)
    if staged.exists():
        (staged / "index.html").write_text(commit)
        keep_manifest(staged, {"index.html": Mark(commit, len(commit))})
    return releases.finish("amelia", Stage.EDIT, staged, commit)


def test_nothing_is_shown_before_the_first_release(releases: Releases) -> None:
    assert releases.current("amelia", Stage.EDIT) is None
    assert releases.list("amelia", Stage.EDIT) == ()
    assert releases.find("amelia", Stage.EDIT, A) is None


def test_a_finished_release_is_shown_once_it_is_pointed_at(releases: Releases) -> None:
    release = finished(releases, A)
    assert releases.current("amelia", Stage.EDIT) is None
    assert releases.activate(release, 1)
    assert releases.current("amelia", Stage.EDIT) == release.path
    assert releases.find("amelia", Stage.EDIT, A) == release


def test_the_same_commit_has_one_release(releases: Releases) -> None:
    assert finished(releases, A) == finished(releases, A, fence=2)
    assert len(releases.list("amelia", Stage.EDIT)) == 1


def test_pointing_at_what_is_shown_already_is_no_change_for_visitors(releases: Releases) -> None:
    release = finished(releases, A)
    assert releases.activate(release, 1)
    assert not releases.activate(release, 2)


def test_a_stale_worker_cannot_turn_the_site_back(releases: Releases) -> None:
    old, new = finished(releases, A), finished(releases, B)
    releases.activate(new, 7)
    assert not releases.activate(old, 6)
    assert releases.current("amelia", Stage.EDIT) == new.path


def test_a_higher_fence_may_show_an_older_release_again(releases: Releases) -> None:
    old, new = finished(releases, A), finished(releases, B)
    releases.activate(old, 1)
    releases.activate(new, 2)
    assert releases.activate(old, 3)
    assert releases.current("amelia", Stage.EDIT) == old.path


def test_stages_and_projects_do_not_see_one_another(releases: Releases) -> None:
    releases.activate(finished(releases, A), 1)
    assert releases.current("amelia", Stage.PUBLIC) is None
    assert releases.current("bob", Stage.EDIT) is None


def test_the_public_site_gets_what_the_edit_site_shows_as_a_release_of_its_own_commit(
    releases: Releases,
) -> None:
    assert releases.promote("amelia", Stage.EDIT, Stage.PUBLIC, 1, B) is None
    releases.activate(finished(releases, A), 1)
    promoted = releases.promote("amelia", Stage.EDIT, Stage.PUBLIC, 2, B)
    assert promoted == releases.promote("amelia", Stage.EDIT, Stage.PUBLIC, 3, B)
    assert promoted
    assert promoted.name == release_name(B)
    assert releases.activate(promoted, 3)
    assert releases.current("amelia", Stage.PUBLIC) == promoted.path
    assert [release.name for release in releases.list("amelia", Stage.PUBLIC)] == [release_name(B)]


def test_old_releases_go_and_the_shown_one_never_does(releases: Releases) -> None:
    first = finished(releases, A)
    releases.activate(first, 100)
    for number in range(6):
        releases.activate(finished(releases, f"{number}" * 40), number)
    names = [release.name for release in releases.list("amelia", Stage.EDIT)]
    assert names == ["5" * 12, "4" * 12, "3" * 12, "a" * 12]
    assert releases.current("amelia", Stage.EDIT) == first.path


def test_a_preview_is_a_stage_of_its_own_and_is_dropped_whole(releases: Releases) -> None:
    first, second = Stage.of_thread("1" * 16), Stage.of_thread("2" * 16)
    for fence, preview in enumerate((first, second, first), start=1):
        staged = releases.stage("amelia", preview, fence)
        if staged.exists():
            keep_manifest(staged, {"index.html": Mark(A, 1)})
            (staged / "index.html").write_text("a")
        releases.activate(releases.finish("amelia", preview, staged, f"{fence}" * 40), fence)
    assert set(releases.previews("amelia")) == {first, second}
    assert releases.current("amelia", Stage.EDIT) is None
    releases.drop("amelia", first)
    releases.drop("amelia", first)
    assert releases.previews("amelia") == (second,)
    assert releases.current("amelia", first) is None
    assert releases.find("amelia", first, "3" * 40) is None
