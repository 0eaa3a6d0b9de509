"""A new user's first minutes: write a mail with a photo, watch it go, see the site, take it back."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.acceptance.browser import PHONE, BrowserWindow, chromium, visitor

TITLE = "Spring Sale"
READY = re.compile(r"ready (http://127\.0\.0\.1:\d+/)(?:.* preview (http://127\.0\.0\.1:\d+/?))?")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


class BrowsedServer:
    """`webordinary up` as it says of itself where to find it."""

    def __init__(self, page: str, second_port: str) -> None:
        self.page, self.second_port = page, second_port
        self.edit_site = page.replace("127.0.0.1", "edit.amelia.localhost")


@contextmanager
def up(data: Path) -> Iterator[BrowsedServer]:
    ports = ["--port", "0", "--smtp-port", "0", "--preview-port", "0"]
    command = [sys.executable, "-m", "webordinary", "up", "--data", str(data), *ports]
    log = data.with_suffix(".log")
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ)
    try:
        assert process.stdout is not None
        ready = next(filter(None, map(READY.match, process.stdout)), None)
        assert ready, f"it ended before it was ready: {log.read_text(encoding='utf-8')[-2000:]}"
        yield BrowsedServer(ready[1], ready[2])
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 0, log.read_text(encoding="utf-8")[-2000:]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[BrowsedServer]:
    with up(tmp_path_factory.mktemp("up") / "data") as system:
        yield system


def send_example(somebody: BrowserWindow, system: BrowsedServer, number: int) -> None:
    page = somebody.page
    page.goto(f"{system.page}write")
    page.locator(f'a[href="/write?example={number}"]').click()
    expect(page.locator("#text")).not_to_be_empty()
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/mails/*")


def expect_answer(somebody: BrowserWindow) -> None:
    expect(somebody.page.locator(".journey li", has_text="answered")).to_have_class("done")
    expect(somebody.page.get_by_role("article", name="The reply")).to_be_visible()


def test_a_mail_with_a_photo_changes_the_site_and_undo_takes_it_back(browser: Browser, system: BrowsedServer) -> None:
    with visitor(browser) as scott:
        page = scott.page
        page.goto(system.edit_site)
        before = page.locator("h1").inner_text()
        pictures = page.locator("main img").count()
        assert before != TITLE

        send_example(scott, system, 2)
        expect_answer(scott)
        expect(page.locator(".journey")).to_contain_text("claimed by worker")
        expect(page.locator(".files img")).to_have_js_property("complete", True)
        expect(page.locator(".diff-lines .added").first).to_contain_text(TITLE)

        with page.expect_popup() as opened:
            page.get_by_role("link", name="See it on the edit site").click()
        site = opened.value
        assert site.url == system.edit_site
        expect(site.locator("h1")).to_have_text(TITLE)
        expect(site.locator("main img")).to_have_count(pictures + 1)
        for picture in site.locator("main img").all():
            picture.scroll_into_view_if_needed()
            expect(picture).not_to_have_js_property("naturalWidth", 0)

        page.get_by_role("link", name="Reply “undo”").click()
        expect(page.locator("#text")).to_have_value("undo")
        page.get_by_role("button", name="Send").click()
        page.wait_for_url("**/mails/*")
        expect_answer(scott)
        expect(page.locator(".pill").first).to_have_text("taken back on the edit site")

        site.reload()
        expect(site.locator("h1")).to_have_text(before)
        expect(site.locator("main img")).to_have_count(pictures)


def test_a_wish_that_is_not_understood_is_answered_and_changes_nothing(browser: Browser, system: BrowsedServer) -> None:
    with visitor(browser) as scott:
        page = scott.page
        page.goto(system.edit_site)
        before = page.locator("main").inner_text()
        send_example(scott, system, 3)
        expect_answer(scott)
        expect(page.locator(".journey li", has_text="on the edit site")).to_have_class("skipped")
        page.goto(system.edit_site)
        assert page.locator("main").inner_text() == before


def test_the_second_port_shows_the_site_too(browser: Browser, system: BrowsedServer) -> None:
    with visitor(browser) as somebody:
        page = somebody.page
        page.goto(system.page)
        with page.expect_popup() as opened:
            page.get_by_role("link", name="by port number").first.click()
        expect(opened.value.locator("h1")).to_be_visible()
        assert opened.value.url.startswith(system.second_port)


def test_every_page_fits_a_phone(browser: Browser, system: BrowsedServer) -> None:
    with visitor(browser, PHONE) as somebody:
        page = somebody.page
        send_example(somebody, system, 1)
        expect_answer(somebody)
        for address in (page.url, system.page, f"{system.page}write", f"{system.page}write?example=2"):
            page.goto(address)
            assert not somebody.scrolls_sideways(), address
