"""Pictures of the changed page by a real browser, which reaches nothing but the two releases."""

from __future__ import annotations

import email
import email.policy
import socket
import struct
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.conftest import IN_CI
from tests.integration.site_house import SiteHouse, open_site_house
from webordinary.adapters.local.pictures import HEIGHT, WIDTH, ChromiumPictures, find_browser
from webordinary.site.changed_page import address_of, page_to_show
from webordinary.site.manifests import Mark, keep_manifest
from webordinary.site.studio import PATIENT_AFTER_SECONDS, Studio

SECONDS = 120.0


@pytest.fixture
def photographer() -> ChromiumPictures:
    browser = find_browser()
    if browser is None:
        (pytest.fail if IN_CI else pytest.skip)("no chromium on this machine")
    return ChromiumPictures(browser, "w-1")


def release(folder: Path, **pages: str) -> Path:
    folder.mkdir()
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text)
    keep_manifest(folder, {f"{name}.html": Mark("", len(text)) for name, text in pages.items()})
    return folder


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.parametrize(
    ("before", "after", "page"),
    [
        ({"index.html": "1", "a.html": "1"}, {"index.html": "2", "a.html": "2"}, "index.html"),
        ({"b/a.html": "1", "c.html": "1"}, {"b/a.html": "2", "c.html": "2"}, "c.html"),
        ({"index.html": "1", "a.html": "1"}, {"index.html": "2", "a.html": "2", "b/c.html": "1"}, "b/c.html"),
        ({}, {"index.html": "1", "a.html": "1"}, "index.html"),
        ({"index.html": "1"}, {"index.html": "1", "site.css": "2"}, "index.html"),
        ({"index.html": "1"}, {"index.html": "1"}, None),
    ],
    ids=["the home page", "the topmost page", "the new page", "a new site", "only a style", "nothing"],
)
def test_the_page_that_changed_is_shown(before: dict[str, str], after: dict[str, str], page: str | None) -> None:
    marks = [{path: Mark(digest, 1) for path, digest in site.items()} for site in (before, after)]
    assert page_to_show(*marks) == page


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("index.html", ""),
        ("about.html", "about.html"),
        ("shop/index.html", "shop/"),
        ("a b/ü.html", "a%20b/%C3%BC.html"),
    ],
)
def test_a_page_has_an_address_below_its_site(page: str, address: str) -> None:
    assert address_of(page) == address


def test_a_page_is_taken_before_and_after(photographer: ChromiumPictures, tmp_path: Path) -> None:
    before = release(tmp_path / "1", index="<body style='background:#fff'>one")
    after = release(tmp_path / "2", index="<body style='background:#a4552e'>two")
    taken = photographer.take(before, after, "index.html", SECONDS)
    assert size_of(taken.before) == size_of(taken.after) == (WIDTH, HEIGHT)
    assert taken.before != taken.after


def test_a_new_page_has_no_before(photographer: ChromiumPictures, tmp_path: Path) -> None:
    before, after = release(tmp_path / "1", index="one"), release(tmp_path / "2", index="one", shop="new")
    taken = photographer.take(before, after, "shop.html", SECONDS)
    assert taken.before == b""
    assert size_of(taken.after) == (WIDTH, HEIGHT)


def test_the_browser_reaches_nothing_else(photographer: ChromiumPictures, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        secret = tmp_path / "secret.html"
        secret.write_text("secret")
        html = (
            f"<img src='{address}/i'><link rel=stylesheet href='{address}/s'><iframe src='{address}/f'></iframe>"
            f"<iframe src='file://{secret}'></iframe><script>fetch('{address}/x')</script>"
        )
        taken = photographer.take(None, release(tmp_path / "1", index=html), "index.html", SECONDS)
        assert taken.after
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_too_little_time_gives_no_picture_and_no_error(photographer: ChromiumPictures, tmp_path: Path) -> None:
    assert photographer.take(None, release(tmp_path / "1", index="x"), "index.html", 0.01).after == b""


def test_a_browser_that_is_gone_gives_no_picture_and_no_error(tmp_path: Path) -> None:
    gone = ChromiumPictures(str(tmp_path / "no-browser"), "w-1")
    assert gone.take(None, release(tmp_path / "1", index="x"), "index.html", 1.0).after == b""


def test_a_quick_change_is_answered_at_once_unless_pictures_are_always_wanted(tmp_path: Path) -> None:
    nobody = ChromiumPictures(str(tmp_path / "no-browser"), "w-1")
    assert not Studio(nobody, lambda data: "", 1.0).worth_it(0.2)
    assert Studio(nobody, lambda data: "", 1.0).worth_it(PATIENT_AFTER_SECONDS)
    assert Studio(nobody, lambda data: "", 1.0, always=True).worth_it(0.2)


@pytest.mark.needs("git")
@pytest.mark.timeout(300)
def test_pictures_go_with_the_reply_and_stand_on_the_page(photographer: ChromiumPictures, tmp_path: Path) -> None:
    with open_site_house(tmp_path / "data", pictures="on", picture_seconds=60) as site:
        job = site.mail("change the homepage title to Spring Sale")
        assert job.result
        before, after = job.result.pictures
        assert size_of(site.services.blobs.get(before)) == size_of(site.services.blobs.get(after)) == (WIDTH, HEIGHT)
        [reply] = _replies(site, job.email_id)
        assert [part.get_filename() for part in reply.iter_attachments()] == ["before.png", "after.png"]
        assert "Spring Sale" in reply.get_body(("plain",)).get_content()  # type: ignore[union-attr]


def _replies(site: SiteHouse, email_id: str) -> list[EmailMessage]:
    entries = site.house.replies(email_id)
    return [email.message_from_bytes(entry.reply.raw, policy=email.policy.default) for entry in entries]  # type: ignore[misc]
