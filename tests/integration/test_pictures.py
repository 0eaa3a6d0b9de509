"""Pictures of the changed page by a real browser, which reaches nothing but the two releases."""

from __future__ import annotations

import email
import email.policy
import socket
import struct
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from email.message import EmailMessage
from functools import partial
from pathlib import Path

import pytest

from tests.attacks.targets import SECRET, SMALL, working_jail
from tests.harness.site import SiteHarness, open_site_harness
from webordinary.adapters.files.screenshots import (
    BROWSER_BYTES,
    CONNECTIONS,
    FILE_BYTES,
    FILES_AT_ONCE,
    HEIGHT,
    WIDTH,
    ChromiumScreenshotter,
    _Answers,
    find_browser,
    read_local,
)
from webordinary.adapters.sandbox.bubblewrap import MEGABYTE, SandboxLimits
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox
from webordinary.jobs.run import LEAST_SECONDS, QUICK_SECONDS, SCREENSHOTS_AFTER_SECONDS, Screenshots
from webordinary.jobs.site_files import Mark, address_of, keep_manifest, page_to_show

SECONDS = 120.0
ROOMY = SandboxLimits(mapped_bytes=BROWSER_BYTES)


@pytest.fixture
def browser() -> str:
    found = find_browser()
    if found is None:
        pytest.skip("no chromium on this machine")
    return found


@pytest.fixture
def screenshotter(browser: str, tmp_path: Path) -> ChromiumScreenshotter:
    return ChromiumScreenshotter(browser, working_jail(tmp_path / "scratch", ROOMY), tmp_path / "pictures")


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


def test_a_page_is_taken_before_and_after(screenshotter: ChromiumScreenshotter, tmp_path: Path) -> None:
    before = release(tmp_path / "1", index="<body style='background:#fff'>one")
    after = release(tmp_path / "2", index="<body style='background:#a4552e'>two")
    taken = screenshotter.take(before, after, "index.html", SECONDS)
    assert size_of(taken.before) == size_of(taken.after) == (WIDTH, HEIGHT)
    assert taken.before != taken.after


def test_a_release_that_another_worker_built_is_read_where_it_lies(browser: str, tmp_path: Path) -> None:
    elsewhere, after = release(tmp_path / "1", index="<body bgcolor=red>"), release(tmp_path / "2", index="two")
    here = release(tmp_path / "here", index="<body bgcolor=red>")
    (here / "index.html").unlink()

    def read(folder: Path, name: str) -> bytes:
        return ((elsewhere if folder == here else folder) / name).read_bytes()

    screenshotter = ChromiumScreenshotter(
        browser, working_jail(tmp_path / "scratch", ROOMY), tmp_path / "pictures", read
    )
    taken = screenshotter.take(here, after, "index.html", SECONDS)
    assert taken.before == screenshotter.take(elsewhere, after, "index.html", SECONDS).before != b""


@pytest.mark.parametrize("lost", ["index.html", "site.css"])
def test_a_page_of_which_a_part_cannot_be_read_gives_no_picture(
    lost: str, screenshotter: ChromiumScreenshotter, tmp_path: Path
) -> None:
    folder = release(tmp_path / "1", index="<link rel=stylesheet href=site.css>one")
    (folder / "site.css").write_text("body { background: red }")
    keep_manifest(folder, {"index.html": Mark("", 1), "site.css": Mark("", 1)})
    assert screenshotter.take(None, folder, "index.html", SECONDS).after
    (folder / lost).unlink()
    assert screenshotter.take(None, folder, "index.html", SECONDS).after == b""


def test_nothing_is_left_of_a_picture_nor_of_one_that_a_killed_worker_took(browser: str, tmp_path: Path) -> None:
    scratch = tmp_path / "pictures"
    (scratch / "left" / "profile").mkdir(parents=True)
    screenshotter = ChromiumScreenshotter(browser, working_jail(tmp_path / "scratch", ROOMY), scratch)
    assert screenshotter.take(None, release(tmp_path / "1", index="one"), "index.html", SECONDS).after
    assert list(scratch.iterdir()) == []


def test_a_new_page_has_no_before(screenshotter: ChromiumScreenshotter, tmp_path: Path) -> None:
    before, after = release(tmp_path / "1", index="one"), release(tmp_path / "2", index="one", shop="new")
    taken = screenshotter.take(before, after, "shop.html", SECONDS)
    assert taken.before == b""
    assert size_of(taken.after) == (WIDTH, HEIGHT)


def test_the_browser_reaches_nothing_else(screenshotter: ChromiumScreenshotter, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        secret = tmp_path / "secret.html"
        secret.write_text("secret")
        html = (
            f"<img src='{address}/i'><link rel=stylesheet href='{address}/s'><iframe src='{address}/f'></iframe>"
            f"<iframe src='file://{secret}'></iframe><script>fetch('{address}/x')</script>"
        )
        taken = screenshotter.take(None, release(tmp_path / "1", index=html), "index.html", SECONDS)
        assert taken.after
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def answered(release: Path, path: str, connections: int) -> int:
    """How many connections get all of a file, of those that ask for it at once."""
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=connections))
        opened.enter_context(_Answers(release, read_local)).serve(listener)
        address = listener.getsockname()
        clients = [opened.enter_context(socket.create_connection(address, 20)) for _ in range(connections)]
        for client in clients:
            with suppress(ConnectionError):
                client.sendall(f"GET http://site.invalid/{path} HTTP/1.0\r\n\r\n".encode())
        with ThreadPoolExecutor(connections) as reading:
            return sum(reading.map(partial(gets_all_of, (release / path).stat().st_size), clients))


def gets_all_of(size: int, client: socket.socket) -> bool:
    read, first = 0, b""
    with suppress(ConnectionError):
        while chunk := client.recv(100_000):
            first, read = first or chunk, read + len(chunk)
    return first.startswith(b"HTTP/1.0 200 OK") and read > size


def film(folder: Path, size: int) -> Path:
    """A release with one large file."""
    site = release(folder, index="home")
    with (site / "film.mp4").open("wb") as file:
        file.truncate(size)
    keep_manifest(site, {"film.mp4": Mark("", size)})
    return site


def test_a_page_that_asks_for_a_large_file_many_times_takes_no_memory_of_the_worker(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        assert answered(film(tmp_path / "1", FILE_BYTES), "film.mp4", 12) == 12
        assert tracemalloc.get_traced_memory()[1] < (FILES_AT_ONCE + 1) * FILE_BYTES
    finally:
        tracemalloc.stop()
    assert answered(film(tmp_path / "2", FILE_BYTES + 1), "film.mp4", 1) == 0


def test_a_browser_that_was_taken_over_starts_a_bounded_number_of_threads(tmp_path: Path) -> None:
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS + 10))
        opened.enter_context(_Answers(film(tmp_path / "1", 10), read_local)).serve(listener)
        address = listener.getsockname()
        clients = [opened.enter_context(socket.create_connection(address, 5)) for _ in range(CONNECTIONS + 10)]
        assert [client.recv(1) for client in clients[CONNECTIONS:]] == [b""] * 10


def stand_in(folder: Path, script: str) -> str:
    """A program in the place of the browser."""
    program = folder / "apps" / "browser"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_the_browser_runs_in_a_jail_also_as_root(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    tells = f"cat '{tmp_path}/secret'; id -u; grep -E 'CapEff|Seccomp:' /proc/self/status"
    spy = stand_in(tmp_path, f"{{ printf '\\211PNG\\r\\n\\032\\n'; {tells}; }} > shot.png")
    pictures = ChromiumScreenshotter(spy, working_jail(tmp_path / "scratch", SandboxLimits()), tmp_path / "pictures")
    seen = pictures.take(None, release(tmp_path / "1", index="x"), "index.html", SECONDS).after
    assert seen.split(b"\n")[2:] == [b"1000", b"CapEff:\t0000000000000000", b"Seccomp:\t2", b""]


def test_a_page_that_wants_too_much_memory_is_ended(browser: str, tmp_path: Path) -> None:
    greedy = "<script>const all = []; for (let i = 0; i < 4000; i++) all.push(new Uint8Array(1e6).fill(1))</script>"
    jail = working_jail(tmp_path / "scratch", replace(ROOMY, memory_bytes=1500 * MEGABYTE))
    pictures = ChromiumScreenshotter(browser, jail, tmp_path / "pictures")
    assert pictures.take(None, release(tmp_path / "1", index="calm"), "index.html", SECONDS).after
    assert pictures.take(None, release(tmp_path / "2", index=greedy), "index.html", SECONDS).after == b""


@pytest.mark.parametrize("left", ["ln -s /etc/passwd shot.png", "mkfifo shot.png", "echo words > shot.png"])
def test_only_a_picture_is_taken_from_the_browser(left: str, tmp_path: Path) -> None:
    pictures = ChromiumScreenshotter(
        stand_in(tmp_path, left), working_jail(tmp_path / "scratch", SMALL), tmp_path / "pictures"
    )
    assert pictures.take(None, release(tmp_path / "1", index="x"), "index.html", SECONDS).after == b""


def test_without_a_jail_there_is_no_picture(browser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    pictures = ChromiumScreenshotter(browser, BubblewrapSandbox("w-1", tmp_path / "scratch"), tmp_path / "pictures")
    assert pictures.take(None, release(tmp_path / "1", index="x"), "index.html", SECONDS).after == b""


def test_too_little_time_gives_no_picture_and_no_error(screenshotter: ChromiumScreenshotter, tmp_path: Path) -> None:
    assert screenshotter.take(None, release(tmp_path / "1", index="x"), "index.html", 0.01).after == b""


def test_a_browser_that_is_gone_gives_no_picture_and_no_error(tmp_path: Path) -> None:
    gone = ChromiumScreenshotter(
        str(tmp_path / "no-browser"), working_jail(tmp_path / "scratch"), tmp_path / "pictures"
    )
    assert gone.take(None, release(tmp_path / "1", index="x"), "index.html", 1.0).after == b""


def test_the_reply_to_a_quick_change_waits_less_unless_pictures_are_always_wanted(tmp_path: Path) -> None:
    nobody = ChromiumScreenshotter(
        str(tmp_path / "no-browser"), BubblewrapSandbox("w-1", tmp_path / "scratch"), tmp_path / "pictures"
    )
    assert Screenshots(nobody, lambda data: "", 8.0).wait_seconds(0.2) == QUICK_SECONDS - 0.2
    assert Screenshots(nobody, lambda data: "", 8.0).wait_seconds(2.0) == LEAST_SECONDS
    assert Screenshots(nobody, lambda data: "", 1.0).wait_seconds(0.2) == 1.0
    assert Screenshots(nobody, lambda data: "", 8.0).wait_seconds(SCREENSHOTS_AFTER_SECONDS) == 8.0
    assert Screenshots(nobody, lambda data: "", 8.0, always=True).wait_seconds(0.2) == 8.0


@pytest.mark.needs("git")
@pytest.mark.timeout(300)
def test_pictures_go_with_the_reply_and_stand_on_the_page(screenshotter: ChromiumScreenshotter, tmp_path: Path) -> None:
    with open_site_harness(tmp_path / "data", pictures="on", picture_seconds=60) as site:
        job = site.mail("change the homepage title to Spring Sale")
        assert job.result
        before, after = job.result.pictures
        assert size_of(site.services.blobs.get(before)) == size_of(site.services.blobs.get(after)) == (WIDTH, HEIGHT)
        [reply] = _replies(site, job.email_id)
        assert [name for part in reply.walk() if (name := part.get_filename())] == ["before.png", "after.png"]
        assert "Spring Sale" in reply.get_body(("plain",)).get_content()  # type: ignore[union-attr]


def _replies(site: SiteHarness, email_id: str) -> list[EmailMessage]:
    entries = site.harness.replies(email_id)
    return [email.message_from_bytes(entry.reply.raw, policy=email.policy.default) for entry in entries]
