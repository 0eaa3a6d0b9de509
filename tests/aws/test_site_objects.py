"""A bucket as the place of a site: what is written and how, what is swapped, and what a lost answer does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

import boto3  # noqa: E402
from botocore.stub import Stubber  # noqa: E402

from tests.aws.emulator import REGION, RunningEmulator  # noqa: E402
from tests.aws.faulty_proxy import DROP_RESPONSE, faulty_proxy  # noqa: E402
from tests.aws.site_bucket import Requests, SiteBucket, clients_of  # noqa: E402
from webordinary.adapters.aws.site.deploy import (  # noqa: E402
    ASK_EACH_TIME,
    FOREVER,
    StoredObject,
    Upload,
    plan_deploy,
)
from webordinary.adapters.aws.site.objects import MANIFEST, S3Objects  # noqa: E402
from webordinary.jobs.site_files import (  # noqa: E402
    Mark,
    Stage,
)
from webordinary.model.errors import Permanent, Transient  # noqa: E402


@pytest.fixture
def world(ministack: RunningEmulator, tmp_path: Path) -> SiteBucket:
    return SiteBucket(ministack, tmp_path, ("amelia",))


@pytest.fixture
def store(world: SiteBucket) -> S3Objects:
    return S3Objects(world.s3, world.store("amelia", Stage.EDIT))


def uploads(*paths: str) -> tuple[Upload, ...]:
    return plan_deploy({}, dict.fromkeys(paths, Mark("", 1))).uploads


def put(store: S3Objects, folder: Path, **files: str) -> dict[str, str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return dict(store.put_all([(upload, folder / upload.path) for upload in uploads(*files)]))


def test_a_site_bucket_keeps_what_is_replaced_and_drops_what_nobody_finished_to_upload(world: SiteBucket) -> None:
    rules = world.s3.get_bucket_lifecycle_configuration(Bucket=world.sites)["Rules"]
    [rule, _] = sorted(rules, key=lambda rule: str(rule["ID"]))
    assert rule["ID"] == "earlier-releases"
    assert rule["NoncurrentVersionExpiration"] == {"NewerNoncurrentVersions": 60, "NoncurrentDays": 30}
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}


def test_a_manifest_is_written_once_and_then_only_by_who_knows_it(store: S3Objects) -> None:
    assert store.manifest() is None
    first = store.swap_manifest(b"1", None)
    assert first
    assert store.swap_manifest(b"other", None) is None
    second = store.swap_manifest(b"2", first)
    assert second
    assert store.swap_manifest(b"3", first) is None
    stored = store.manifest()
    assert stored
    assert (stored.text, stored.version) == (b"2", second)
    assert store.recall(first) == b"1"


def test_of_many_who_swap_at_once_one_wins(store: S3Objects) -> None:
    version = store.swap_manifest(b"start", None)
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: store.swap_manifest(b"%d" % number, version), range(24)))
    assert len([one for one in won if one]) == 1


def test_a_swap_whose_answer_was_lost_has_happened(world: SiteBucket, store: S3Objects) -> None:
    version = store.swap_manifest(b"1", None)
    with faulty_proxy(world.emulator.endpoint) as proxy:
        proxy.inject(DROP_RESPONSE, "PUT")
        swapped = S3Objects(clients_of(proxy.endpoint).s3, store.name).swap_manifest(b"2", version)
        assert list(proxy.done)
    assert swapped
    stored = store.manifest()
    assert stored
    assert (stored.text, stored.version) == (b"2", swapped)


def test_a_swap_at_the_same_moment_as_another_is_tried_again(store: S3Objects) -> None:
    s3 = boto3.client("s3", region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(s3) as stub:
        for _ in range(2):
            stub.add_client_error("put_object", "ConditionalRequestConflict", "at the same moment", 409)
        stub.add_response("put_object", {"ETag": '"e"', "VersionId": "v"})
        assert S3Objects(s3, "any").swap_manifest(b"1", '"d" u') == '"e" v'
        for _ in range(5):
            stub.add_client_error("put_object", "ConditionalRequestConflict", "at the same moment", 409)
        with pytest.raises(Transient):
            S3Objects(s3, "any").swap_manifest(b"1", '"d" u')


def test_objects_have_their_types_and_caching(world: SiteBucket, store: S3Objects, tmp_path: Path) -> None:
    paths = ("index.html", "über/a b+c.12ab34cd.png")
    for path in paths:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("x")
    store.put_all([(upload, tmp_path / upload.path) for upload in uploads(*paths)])
    found = [world.s3.head_object(Bucket=world.sites, Key=f"amelia/edit/{path}") for path in paths]
    assert [head["ContentType"] for head in found] == ["text/html; charset=utf-8", "image/png"]
    assert [head["CacheControl"] for head in found] == [ASK_EACH_TIME, FOREVER]


def test_a_replaced_and_a_removed_object_come_back_by_their_versions(
    world: SiteBucket, store: S3Objects, tmp_path: Path
) -> None:
    versions = put(store, tmp_path, **{"a.html": "old a", "b.html": "old b"})
    put(store, tmp_path, **{"a.html": "new a"})
    store.delete(["b.html", "never-there.html"])
    store.put_all([(upload, StoredObject(store.name, versions[upload.path])) for upload in uploads("a.html", "b.html")])
    assert world.shown() == {"a.html": "old a", "b.html": "old b"}


def test_what_is_not_kept_any_longer_is_said_in_words(store: S3Objects, tmp_path: Path) -> None:
    put(store, tmp_path, **{"a.html": "a"})
    with pytest.raises(Permanent, match=r"does not keep a\.html any longer"):
        store.put_all([(uploads("a.html")[0], StoredObject(store.name, "00000000-0000-0000-0000-000000000000"))])
    with pytest.raises(Permanent, match="does not keep this release any longer"):
        store.recall('"etag" 00000000-0000-0000-0000-000000000000')
    with pytest.raises(Permanent, match="keeps no earlier releases"):
        store.recall('"etag"')


def test_a_link_is_never_followed(store: S3Objects, tmp_path: Path) -> None:
    (tmp_path / "a.html").symlink_to("/etc/passwd")
    (tmp_path / "b.html").mkdir()
    for name in ("a.html", "b.html"):
        with pytest.raises(Permanent, match="not published"):
            store.put_all([(uploads(name)[0], tmp_path / name)])


def test_one_failure_ends_the_rest(store: S3Objects, tmp_path: Path) -> None:
    names = {f"{number:03d}.html": "x" for number in range(100)}
    for name in names:
        (tmp_path / name).write_text("x")
    (tmp_path / "000.html").unlink()
    with pytest.raises(Permanent, match=r"000\.html"):
        store.put_all([(upload, tmp_path / upload.path) for upload in uploads(*names)])


def test_a_bucket_that_is_not_there_is_for_a_person_and_a_silent_one_for_later(world: SiteBucket) -> None:
    with pytest.raises(Permanent, match="doctor"):
        S3Objects(world.s3, "no-such-bucket").manifest()
    with pytest.raises(Transient):
        S3Objects(clients_of("http://127.0.0.1:1").s3, "any").manifest()


def test_a_forbidden_manifest_counts_as_none_for_a_publisher_alone() -> None:
    """S3 answers so for what is not there, unless the caller may list the bucket."""
    s3 = boto3.client("s3", region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(s3) as stub:
        for _ in range(2):
            stub.add_client_error("get_object", "AccessDenied")
        assert S3Objects(s3, "any", may_list=False).manifest() is None
        with pytest.raises(Transient, match="does not allow"):
            S3Objects(s3, "any").manifest()


def test_a_write_is_one_request(world: SiteBucket, store: S3Objects, tmp_path: Path) -> None:
    requests = Requests(world.s3)
    put(store, tmp_path, **{"a.html": "a"})
    store.swap_manifest(b"1", None)
    assert requests.made == [("PUT", "a.html"), ("PUT", MANIFEST)]
