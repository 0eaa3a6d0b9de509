"""Releases on a real file system: links, special files, what web servers follow."""

from __future__ import annotations

import hashlib
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.builders import PlainFiles
from webordinary.adapters.files.releases import FolderReleases
from webordinary.jobs.site_files import FOLDER, Release, Stage, manifest_of
from webordinary.jobs.source import BuildFailed, Built, SourceTree
from webordinary.model.errors import Permanent

A, B = "a" * 40, "b" * 40


@pytest.fixture
def releases(tmp_path: Path) -> FolderReleases:
    return FolderReleases(tmp_path / "sites")


def source(folder: Path, **files: str) -> SourceTree:
    folder.mkdir(exist_ok=True)
    names = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
    for name, text in names.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return SourceTree(folder, {name: hashlib.sha1(text.encode()).hexdigest() for name, text in names.items()})


def published(releases: FolderReleases, tree: SourceTree, commit: str, fence: int) -> Release:
    staged = releases.stage("amelia", Stage.EDIT, fence)
    built = PlainFiles().build(tree, staged, releases.current("amelia", Stage.EDIT), FakeCancelToken())
    assert isinstance(built, Built)
    release = releases.finish("amelia", Stage.EDIT, staged, commit)
    releases.activate(release, fence)
    return release


def test_the_link_for_web_servers_follows_the_current_release(releases: FolderReleases, tmp_path: Path) -> None:
    published(releases, source(tmp_path / "t", index_html="one"), A, 1)
    published(releases, source(tmp_path / "t", index_html="two"), B, 2)
    link = tmp_path / "sites" / "amelia" / "edit" / "current"
    assert (link / "index.html").read_text() == "two"
    assert not link.readlink().is_absolute()


def test_a_stale_worker_that_turned_the_link_back_is_put_right_by_the_next(
    releases: FolderReleases, tmp_path: Path
) -> None:
    published(releases, source(tmp_path / "t", index_html="one"), A, 1)
    new = published(releases, source(tmp_path / "t", index_html="two"), B, 2)
    link = tmp_path / "sites" / "amelia" / "edit" / "current"
    link.unlink()
    link.symlink_to(Path("releases") / A[:12])
    assert releases.current("amelia", Stage.EDIT) == new.path
    releases.activate(new, 3)
    assert (link / "index.html").read_text() == "two"


def test_files_that_did_not_change_share_their_bytes_with_the_last_release(
    releases: FolderReleases, tmp_path: Path
) -> None:
    one = published(releases, source(tmp_path / "t", index_html="one", big_css="same"), A, 1)
    two = published(releases, source(tmp_path / "t", index_html="two", big_css="same"), B, 2)
    assert (one.path / "big.css").samefile(two.path / "big.css")
    assert not (one.path / "index.html").samefile(two.path / "index.html")
    assert (one.path / "index.html").read_text() == "one"


def test_a_release_never_shares_bytes_with_the_workspace(releases: FolderReleases, tmp_path: Path) -> None:
    tree = source(tmp_path / "t", index_html="one")
    release = published(releases, tree, A, 1)
    with (tree.path / "index.html").open("r+") as page:  # as an agent does it: in place
        page.write("two")
    assert (release.path / "index.html").read_text() == "one"


def test_a_plain_site_is_its_tracked_files_without_dotfiles(releases: FolderReleases, tmp_path: Path) -> None:
    tree = source(
        tmp_path / "t", public__index_html="home", public___secret="x", public__a___b="x", README_md="x"
    )  # fmt: skip
    (tree.path / "public" / "untracked.html").write_text("x")
    release = published(releases, tree, A, 1)
    assert sorted(path.name for path in release.path.iterdir() if path.name != FOLDER) == ["index.html"]
    assert set(manifest_of(release.path)) == {"index.html"}


def test_releases_have_an_order_that_a_copy_of_the_folder_keeps(releases: FolderReleases, tmp_path: Path) -> None:
    commits = [f"{number:x}" * 40 for number in (3, 1, 2, 5, 4)]
    for fence, commit in enumerate(commits, start=1):
        published(releases, source(tmp_path / "t", index_html=commit), commit, fence)
    releases.promote("amelia", Stage.EDIT, Stage.PUBLIC, 9, B)
    shutil.copytree(tmp_path / "sites", tmp_path / "copy", symlinks=True)
    copied = FolderReleases(tmp_path / "copy").list("amelia", Stage.EDIT)
    assert [release.name for release in copied] == [commit[:12] for commit in reversed(commits)]


def test_a_release_knows_which_of_its_pages_are_no_utf_8(releases: FolderReleases, tmp_path: Path) -> None:
    tree = source(tmp_path / "t", index_html="Über uns", old_html="", photo_png="")
    for name in ("old.html", "photo.png"):
        (tree.path / name).write_bytes("Über uns".encode("latin-1"))
    for commit, fence in ((A, 1), (B, 2)):
        release = published(releases, tree, commit, fence)
        assert [path for path, mark in manifest_of(release.path).items() if mark.foreign] == ["old.html"]


def test_a_link_in_the_source_is_refused_by_the_build(tmp_path: Path) -> None:
    tree = source(tmp_path / "t", index_html="home")
    (tree.path / "passwd").symlink_to("/etc/passwd")
    (tmp_path / "out").mkdir()
    refused = PlainFiles().build(
        SourceTree(tree.path, {"index.html": "", "passwd": ""}), tmp_path / "out", None, FakeCancelToken()
    )
    assert isinstance(refused, BuildFailed)


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/passwd"), os.mkfifo], ids=["link", "pipe"])
def test_what_is_not_a_plain_file_never_becomes_part_of_a_release(releases: FolderReleases, make: object) -> None:
    staged = releases.stage("amelia", Stage.EDIT, 1)
    (staged / "deep").mkdir()
    make(staged / "deep" / "evil")  # type: ignore[operator]
    with pytest.raises(Permanent):
        releases.finish("amelia", Stage.EDIT, staged, A)
    assert releases.list("amelia", Stage.EDIT) == ()


def test_what_a_dead_worker_was_building_is_cleared_by_the_next(releases: FolderReleases) -> None:
    left = releases.stage("amelia", Stage.EDIT, 1)
    mine = releases.stage("amelia", Stage.EDIT, 2)
    assert not left.exists()
    assert mine.exists()


def test_the_public_site_shares_its_files_with_the_edit_site(releases: FolderReleases, tmp_path: Path) -> None:
    edit = published(releases, source(tmp_path / "t", index_html="one", a__b_css="x"), A, 1)
    public = releases.promote("amelia", Stage.EDIT, Stage.PUBLIC, 2, B)
    assert public is not None
    assert (public.path / "a" / "b.css").samefile(edit.path / "a" / "b.css")


def shown(releases: FolderReleases) -> dict[str, str]:
    current = releases.current("amelia", Stage.EDIT)
    assert current is not None
    files = [path for path in current.rglob("*") if path.is_file() and FOLDER not in path.parts]
    return {str(path.relative_to(current)): path.read_text() for path in files}


def test_a_new_release_made_out_of_an_outlived_one_holds_what_it_should(tmp_path: Path) -> None:
    releases = FolderReleases(tmp_path / "sites", keep=2)
    states: list[dict[str, str]] = [
        {"index.html": "1", "a": "file", "b/c/d": "deep", "same": "s"},
        {"index.html": "2", "a/b": "now a folder", "b": "now a file", "same": "s"},
        {"index.html": "1", "same": "s"},
        {"index.html": "3", "a": "file again", "b/c/d": "deep", "b/x": "1", "same": "t"},
    ]
    for number in range(24):
        site = states[number % 4 if number % 3 else (number // 3) % 4]
        folder = tmp_path / f"t{number}"
        for name, text in site.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        tree = SourceTree(folder, {name: hashlib.sha1(text.encode()).hexdigest() for name, text in site.items()})
        release = published(releases, tree, f"{number:040d}"[::-1], number)
        assert shown(releases) == site
        assert set(manifest_of(release.path)) == set(site)
        folders = {str(path.relative_to(release.path)) for path in release.path.rglob("*") if path.is_dir()}
        assert folders - {FOLDER} == {str(parent) for name in site for parent in Path(name).parents} - {"."}
    assert len(releases.list("amelia", Stage.EDIT)) == 2


def test_kept_releases_are_untouched_by_those_made_after_them(tmp_path: Path) -> None:
    releases = FolderReleases(tmp_path / "sites", keep=3)
    for number in range(8):
        made = published(releases, source(tmp_path / "t", index_html=f"{number}", b_css="x"), f"{number}" * 40, number)
        kept = releases.list("amelia", Stage.EDIT)
        assert made in kept
        assert {release.name[0]: (release.path / "index.html").read_text() for release in kept} == {
            str(n): str(n) for n in range(max(0, number - 2), number + 1)
        }


def test_a_preview_that_changed_long_ago_is_removed_with_what_a_crash_left_of_others(tmp_path: Path) -> None:
    releases, preview = FolderReleases(tmp_path / "sites"), Stage.of_thread("1" * 16)
    for fence, commit in ((1, A), (2, B)):
        staged = releases.stage("amelia", preview, fence)
        releases.activate(releases.finish("amelia", preview, staged, commit), fence)
    assert [release.name for release in releases.list("amelia", preview)] == [B[:12]], "one is enough"
    (tmp_path / "sites" / "amelia" / f".{preview}.left").mkdir()
    began = datetime.fromtimestamp((tmp_path / "sites" / "amelia" / preview / "current").lstat().st_mtime, UTC)
    releases.forget_previews(began - timedelta(seconds=1))
    assert releases.previews("amelia") == (preview,)
    releases.forget_previews(began + timedelta(seconds=1))
    assert list((tmp_path / "sites" / "amelia").iterdir()) == []
