"""From one release to the next in an object store: what is written, in which order, and after any crash."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fakes.objects import MemoryObjects
from tests.unit.jobs.fixtures import JobCrash
from webordinary.adapters.aws.site.deploy import (
    ASK_EACH_TIME,
    FOREVER,
    SHORTLY,
    Origin,
    StoredManifest,
    Upload,
    cache_control_of,
    deploy,
    in_folder,
    in_store,
    look,
    plan_deploy,
    read_shown,
    refused_paths,
    show,
)
from webordinary.jobs.site_files import Mark, Release, Stage, keep_manifest, manifest_text, read_manifest
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Permanent

REFERENCE = re.compile(r'(?:src|href)="/([^"]+)"')
OLD = {"index.html": '<img src="/a.12ab34cd.png"><a href="/about.html">', "about.html": "", "a.12ab34cd.png": "old"}
NEW = {
    "index.html": '<img src="/b.98fe76dc.png"><a href="/new.html">',
    "new.html": '<link href="/site.css">',
    "b.98fe76dc.png": "new",
    "site.css": "x",
}
THIRD = {**OLD, "site.css": "y"}


def marks(site: dict[str, str]) -> dict[str, Mark]:
    return {path: Mark(hashlib.sha256(text.encode()).hexdigest(), len(text)) for path, text in site.items()}


def release(folder: Path, name: str, site: dict[str, str]) -> Release:
    path = folder / name
    for file, text in site.items():
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_text(text)
    keep_manifest(path, marks(site))
    return Release("amelia", Stage.PUBLIC, name, path)


def lease(fence: int, worker: str = "w-1") -> ProjectLease:
    return ProjectLease("amelia", worker, fence)


def check() -> None:
    return None


def shown(store: MemoryObjects) -> dict[str, str]:
    return {path: data.decode() for path, (data, _) in store.objects.items()}


def assert_no_page_misses_anything(store: MemoryObjects) -> None:
    site = shown(store)
    for path, text in site.items():
        for wanted in REFERENCE.findall(text):
            assert wanted in site, f"{path} refers to {wanted}, which is not there"


def test_only_what_changed_is_written_assets_first_the_home_page_last_and_stale_files_at_the_end() -> None:
    plan = plan_deploy(marks(OLD), marks(NEW))
    assert [upload.path for upload in plan.uploads] == ["b.98fe76dc.png", "site.css", "new.html", "index.html"]
    assert plan.stale_pages == ("about.html",)
    assert plan.stale_assets == ("a.12ab34cd.png",)


def test_the_same_site_needs_nothing() -> None:
    assert not plan_deploy(marks(OLD), marks(OLD))


def test_what_an_unfinished_publication_may_have_touched_is_written_again() -> None:
    plan = plan_deploy(marks(OLD), marks(OLD), touched=["index.html", "new.html"])
    assert [upload.path for upload in plan.uploads] == ["index.html"]
    assert plan.stale_pages == ("new.html",)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("index.html", ASK_EACH_TIME),
        ("_astro/about.Dk3xY_9z.css", FOREVER),
        ("main.min.3f2a9c0de1.css", FOREVER),
        ("style.css", SHORTLY),
        ("photos/table-20240501.jpg", SHORTLY),
        ("photos/facade.jpg", SHORTLY),
    ],
)
def test_only_a_name_made_from_the_content_is_kept_for_ever(path: str, expected: str) -> None:
    assert cache_control_of(path) == expected


def test_a_name_that_stays_while_its_content_changes_is_not_kept_for_ever() -> None:
    before, after = {"_astro/x.css": "1"}, {"_astro/x.css": "2"}
    assert plan_deploy(marks(before), marks(after)).uploads[0].cache_control == SHORTLY


def test_types_are_told_by_name() -> None:
    types = {upload.path: upload.media_type for upload in plan_deploy({}, marks(NEW)).uploads}
    assert types["index.html"] == "text/html; charset=utf-8"
    assert types["b.98fe76dc.png"] == "image/png"


def test_a_page_that_is_no_utf_8_says_itself_what_it_is_wherever_it_is_shown_again(tmp_path: Path) -> None:
    store, old = MemoryObjects(), release(tmp_path, "old", OLD)
    keep_manifest(old.path, {path: mark._replace(foreign=path == "about.html") for path, mark in marks(OLD).items()})
    deploy(old, lease(1), store, check)
    deploy(release(tmp_path, "new", NEW), lease(2), store, check)
    kept = in_store("old", store, look(store))
    assert kept is not None
    show(kept, lease(3), store, check)
    types = {path: upload.media_type for path, (_, upload) in store.objects.items()}
    assert (types["about.html"], types["index.html"]) == ("text/html", "text/html; charset=utf-8")


def test_a_page_that_a_bucket_shows_as_utf_8_though_it_is_not_is_written_again() -> None:
    wanted = {path: mark._replace(foreign=path == "about.html") for path, mark in marks(OLD).items()}
    [upload] = plan_deploy(marks(OLD), wanted).uploads
    assert (upload.path, upload.media_type) == ("about.html", "text/html")


def test_a_manifest_has_a_field_more_only_where_it_says_something_and_one_from_later_is_read_as_far_as_known() -> None:
    files = {"old.html": Mark("a", 1, foreign=True), "index.html": Mark("b", 2)}
    record = json.loads(manifest_text(files))
    assert {path: len(fields) for path, fields in record["files"].items()} == {"old.html": 5, "index.html": 4}
    later = {path: [*mark, "news"] for path, mark in files.items()}
    assert read_manifest(json.dumps(record | {"files": later})) == files


def test_paths_out_of_the_tree_are_refused() -> None:
    bad = ["../etc/passwd", "/etc/passwd", "a//b", "a/./b", "a\\b", ".webordinary/x", "a/.git/config", "a\nb"]
    good = ["index.html", ".well-known/security.txt", "a/b c.html", "über/uns.html"]
    assert set(refused_paths(dict.fromkeys([*bad, *good], Mark("", 0)))) == set(bad)


def test_a_manifest_is_read_back_as_it_was_and_a_damaged_one_is_empty() -> None:
    assert read_manifest(manifest_text(marks(OLD))) == marks(OLD)
    for damaged in ("", "[]", "null", '{"version": 2, "files": {}}', '{"version": 1, "files": {"a": 1}}'):
        assert read_manifest(damaged) == {}


def test_publishing_again_asks_once_and_writes_nothing(tmp_path: Path) -> None:
    store, old = MemoryObjects(), release(tmp_path, "old", OLD)
    deploy(old, lease(1), store, check)
    store.requests.clear()
    assert not deploy(old, lease(2), store, check)
    assert store.requests == [("manifest", "")]


@pytest.mark.slow
def test_one_changed_page_costs_one_object_and_the_manifest(tmp_path: Path) -> None:
    store = MemoryObjects()
    site = {"index.html": "home", **{f"p{number}.html": "page" for number in range(2000)}}
    deploy(release(tmp_path, "one", site), lease(1), store, check)
    store.requests.clear()
    deploy(release(tmp_path, "two", {**site, "p7.html": "changed"}), lease(2), store, check)
    assert [kind for kind, _ in store.requests] == ["manifest", "swap", "put", "swap"]
    assert ("put", "p7.html") in store.requests


class Dying(MemoryObjects):
    """Does so many requests and then no more."""

    left = 0

    def swap_manifest(self, text: bytes, expected: str | None) -> str | None:
        self._live()
        return super().swap_manifest(text, expected)

    def manifest(self) -> StoredManifest | None:
        self._live()
        return super().manifest()

    def put(self, upload: Upload, origin: Origin) -> str:
        self._live()
        version = super().put(upload, origin)
        assert_no_page_misses_anything(self)
        return version

    def delete(self, paths: object) -> None:
        self._live()
        super().delete(paths)  # type: ignore[arg-type]
        assert_no_page_misses_anything(self)

    def _live(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise JobCrash


@pytest.mark.parametrize("second", [NEW, OLD, THIRD], ids=["the same", "back", "another"])
@pytest.mark.parametrize("steps", range(10))
def test_whatever_step_it_dies_at_the_next_holder_finishes(tmp_path: Path, steps: int, second: dict[str, str]) -> None:
    store = Dying()
    store.left = 100
    deploy(release(tmp_path, "old", OLD), lease(1), store, check)
    store.left = steps
    with suppress(JobCrash):
        deploy(release(tmp_path, "new", NEW), lease(2), store, check)
    store.left = 100
    deploy(release(tmp_path, "next", second), lease(3), store, check)
    assert shown(store) == second


@pytest.mark.parametrize("steps", range(8))
def test_two_unfinished_publications_in_a_row_leave_no_doubt(tmp_path: Path, steps: int) -> None:
    store = Dying()
    store.left = 100
    deploy(release(tmp_path, "old", OLD), lease(1), store, check)
    for fence, (name, site, left) in enumerate([("new", NEW, 6), ("third", THIRD, steps)], start=2):
        store.left = left
        with pytest.raises(JobCrash):
            deploy(release(tmp_path, name, site), lease(fence), store, check)
    store.left = 100
    deploy(release(tmp_path, "back", OLD), lease(4), store, check)
    assert shown(store) == OLD


def test_a_stale_holder_is_refused_before_it_writes(tmp_path: Path) -> None:
    store = MemoryObjects()
    deploy(release(tmp_path, "new", NEW), lease(7), store, check)
    with pytest.raises(ClaimLost):
        deploy(release(tmp_path, "old", OLD), lease(6, "w-0"), store, check)
    assert shown(store) == NEW


def test_a_holder_that_was_overtaken_does_not_call_its_release_published(tmp_path: Path) -> None:
    store, new = MemoryObjects(), release(tmp_path, "new", NEW)
    overtaken = iter([None, deploy])

    def sleep_once() -> None:
        if next(overtaken, None):
            deploy(new, lease(8, "w-2"), store, check)

    with pytest.raises(ClaimLost):
        deploy(release(tmp_path, "old", OLD), lease(7), store, sleep_once)
    assert read_shown(store.manifest()).release == "new"


def test_a_release_without_a_manifest_and_a_damaged_store_are_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(Permanent, match="no manifest"):
        deploy(Release("amelia", Stage.PUBLIC, "empty", tmp_path / "empty"), lease(1), MemoryObjects(), check)
    with pytest.raises(Permanent, match="damaged"):
        read_shown(StoredManifest(b"{}", "1"))


def test_an_earlier_release_is_shown_again_from_what_the_store_keeps(tmp_path: Path) -> None:
    store = MemoryObjects()
    for fence, (name, site) in enumerate([("old", OLD), ("new", NEW), ("third", THIRD)], start=1):
        deploy(release(tmp_path, name, site), lease(fence), store, check)
    kept = in_store("new", store, look(store))
    assert kept is not None
    done = show(kept, lease(4), store, check)
    assert done.flipped
    assert shown(store) == NEW
    assert {name: entry.number for name, entry in done.standing.known.items()} == {"old": 1, "new": 2, "third": 3}
    assert in_store("fourth", store, look(store)) is None


@pytest.mark.parametrize("steps", range(2, 8))
def test_an_earlier_release_is_shown_again_after_an_unfinished_publication(tmp_path: Path, steps: int) -> None:
    store = Dying()
    store.left = 100
    deploy(release(tmp_path, "old", OLD), lease(1), store, check)
    store.left = steps
    with suppress(JobCrash):
        deploy(release(tmp_path, "new", NEW), lease(2), store, check)
    store.left = 100
    kept = in_store("old", store, look(store))
    assert kept is not None
    show(kept, lease(3), store, check)
    assert shown(store) == OLD


def test_one_store_shows_what_another_one_does(tmp_path: Path) -> None:
    edit = MemoryObjects(name="edit")
    public = MemoryObjects(name="public", others={"edit": edit})
    deploy(release(tmp_path, "new", NEW), lease(1), edit, check)
    promoted = in_store("new", edit, look(edit))
    assert promoted is not None
    assert show(promoted, lease(2), public, check).flipped
    assert shown(public) == NEW
    assert not show(promoted, lease(3), public, check).flipped


def test_so_many_releases_are_kept_the_newest_first(tmp_path: Path) -> None:
    store = MemoryObjects()
    for number in range(1, 7):
        wanted = in_folder(release(tmp_path, f"r{number}", {"index.html": f"{number}"}))
        done = show(wanted, lease(number), store, check, keep=3)
    assert [entry.release for entry in done.standing.shown.kept] == ["r5", "r4", "r3"]


def test_who_knows_what_is_shown_does_not_ask_and_who_is_mistaken_asks_then(tmp_path: Path) -> None:
    store = MemoryObjects()
    old, new = in_folder(release(tmp_path, "old", OLD)), in_folder(release(tmp_path, "new", NEW))
    seen = show(old, lease(1), store, check).standing
    store.requests.clear()
    show(new, lease(2), store, check, seen)
    assert ("manifest", "") not in store.requests
    assert show(old, lease(3), store, check, seen).flipped, "what was seen is over: somebody else published meanwhile"
    assert shown(store) == OLD
