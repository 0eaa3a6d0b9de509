"""Releases: the same sentences hold in memory and in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from webordinary.adapters.local.releases import FolderReleases
from webordinary.adapters.memory.releases import MemoryReleases
from webordinary.site.releases import Release, Stage

A, B = "a" * 40, "b" * 40
Store = MemoryReleases | FolderReleases


@pytest.fixture(params=["memory", "folder"])
def releases(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryReleases(keep=3) if request.param == "memory" else FolderReleases(tmp_path / "sites", keep=3)


def finished(releases: Store, commit: str, fence: int = 1) -> Release:
    staged = releases.stage("amelia", Stage.EDIT, fence)
    if isinstance(releases, FolderReleases):
        (staged / "index.html").write_text(commit)
    return releases.finish("amelia", Stage.EDIT, staged, commit)


def test_nothing_is_shown_before_the_first_release(releases: Store) -> None:
    assert releases.current("amelia", Stage.EDIT) is None
    assert releases.list("amelia", Stage.EDIT) == ()
    assert releases.find("amelia", Stage.EDIT, A) is None


def test_a_finished_release_is_shown_once_it_is_pointed_at(releases: Store) -> None:
    release = finished(releases, A)
    assert releases.current("amelia", Stage.EDIT) is None
    assert releases.point(release, 1)
    assert releases.current("amelia", Stage.EDIT) == release.path
    assert releases.find("amelia", Stage.EDIT, A) == release


def test_the_same_commit_has_one_release(releases: Store) -> None:
    assert finished(releases, A) == finished(releases, A, fence=2)
    assert len(releases.list("amelia", Stage.EDIT)) == 1


def test_pointing_at_what_is_shown_already_is_no_change_for_visitors(releases: Store) -> None:
    release = finished(releases, A)
    assert releases.point(release, 1)
    assert not releases.point(release, 2)


def test_a_stale_worker_cannot_turn_the_site_back(releases: Store) -> None:
    old, new = finished(releases, A), finished(releases, B)
    releases.point(new, 7)
    assert not releases.point(old, 6)
    assert releases.current("amelia", Stage.EDIT) == new.path


def test_a_higher_fence_may_show_an_older_release_again(releases: Store) -> None:
    old, new = finished(releases, A), finished(releases, B)
    releases.point(old, 1)
    releases.point(new, 2)
    assert releases.point(old, 3)
    assert releases.current("amelia", Stage.EDIT) == old.path


def test_stages_and_projects_do_not_see_one_another(releases: Store) -> None:
    releases.point(finished(releases, A), 1)
    assert releases.current("amelia", Stage.PUBLIC) is None
    assert releases.current("bob", Stage.EDIT) is None


def test_the_public_site_gets_what_the_edit_site_shows(releases: Store) -> None:
    assert releases.promote("amelia", Stage.EDIT, Stage.PUBLIC, 1) is None
    releases.point(finished(releases, A), 1)
    promoted = releases.promote("amelia", Stage.EDIT, Stage.PUBLIC, 2)
    assert promoted == releases.promote("amelia", Stage.EDIT, Stage.PUBLIC, 3)
    assert releases.point(promoted, 3)
    assert releases.current("amelia", Stage.PUBLIC) == promoted.path


def test_old_releases_go_and_the_shown_one_never_does(releases: Store) -> None:
    first = finished(releases, A)
    releases.point(first, 100)
    for number in range(6):
        releases.point(finished(releases, f"{number}" * 40), number)
    names = [release.name for release in releases.list("amelia", Stage.EDIT)]
    assert names == ["5" * 12, "4" * 12, "3" * 12, "a" * 12]
    assert releases.current("amelia", Stage.EDIT) == first.path
