"""The page in a real browser, on a system that the test plays itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import pytest
from playwright.sync_api import Browser, expect

from tests.acceptance.browser import LAPTOP, PHONE, chromium, visitor
from tests.unit.dashboard.tables import DashboardTables, lively
from webordinary.adapters.sqlite.access import SqliteActionLog, SqliteConsoleSecrets, SqliteConsoleUsers
from webordinary.entrypoints.dashboard.web import PageServer, create_app
from webordinary.entrypoints.running import bound
from webordinary.model.console import Role
from webordinary.operations.access import Access


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def world(tmp_path: Path, browser: Browser) -> Iterator[DashboardTables]:
    world = DashboardTables(tmp_path)
    yield world
    world.database.close()


@contextmanager
def serving(world: DashboardTables, **settings: object) -> Iterator[str]:
    sockets = [bound("127.0.0.1", 0), bound("127.0.0.1", 0)]
    port, preview_port = (sock.getsockname()[1] for sock in sockets)
    dashboard = world.dashboard(port=port, preview_port=preview_port, **settings)
    server = PageServer(create_app(dashboard), world.feed, sockets)
    server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def address(world: DashboardTables) -> Iterator[str]:
    with serving(world) as address:
        yield address


def test_the_home_page_changes_by_itself(browser: Browser, world: DashboardTables, address: str) -> None:
    with visitor(browser) as somebody:
        somebody.page.goto(address)
        expect(somebody.page.get_by_text("Be the first customer")).to_be_visible()
        world.mail("Fresh from the kiln")
        world.feed.wake()
        expect(somebody.page.get_by_role("link", name="Fresh from the kiln")).to_be_visible()


def test_a_mails_page_changes_by_itself_and_keeps_what_the_reader_opened(
    browser: Browser, world: DashboardTables, address: str
) -> None:
    email_id = world.mail("New title")
    with visitor(browser) as somebody:
        page = somebody.page
        page.goto(f"{address}/mails/{email_id}")
        page.get_by_text("Quoted and signature").click()
        page.locator("#reply").focus()
        world.job(email_id, "queued", queued_at=world.at(0))
        world.event("JobQueued", email_id, 0)
        world.feed.wake()
        expect(page.locator(".journey li").nth(1)).to_have_class("done")
        expect(page.locator("#elided")).to_have_attribute("open", "")
        expect(page.locator("#reply")).to_be_focused()


def test_an_example_is_sent_with_two_clicks(browser: Browser, world: DashboardTables, address: str) -> None:
    with visitor(browser) as somebody:
        page = somebody.page
        page.goto(address)
        page.get_by_role("link", name="A title and a photo").click()
        page.get_by_role("button", name="Send").click()
        page.wait_for_url("**/mails/*")
        expect(page.get_by_role("heading", name="Sent 1")).to_be_visible()
    [(raw, _, _)] = world.sent
    assert b"vase.png" in raw


def test_without_scripts_it_all_still_works(browser: Browser, world: DashboardTables, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/write?example=1")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/mails/*")
    context.close()
    assert len(world.sent) == 1


@pytest.mark.parametrize("viewport", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_no_page_scrolls_sideways(
    browser: Browser, world: DashboardTables, address: str, viewport: dict[str, int]
) -> None:
    lively(world)
    long = world.mail("Donaudampfschifffahrtsgesellschaftskapitän" * 5, "x" * 2000)
    shown = world.published("New title")
    with visitor(browser, viewport) as somebody:  # type: ignore[arg-type]
        for path in ("/", f"/mails/{long}", f"/mails/{shown}", "/write", f"/write?reply_to={shown}"):
            somebody.page.goto(address + path)
            assert not somebody.scrolls_sideways(), path


def test_a_new_operator_sets_a_password_by_the_link_signs_out_and_signs_in_again(
    browser: Browser, world: DashboardTables
) -> None:
    stores = SqliteConsoleUsers(world.database), SqliteConsoleSecrets(world.database), SqliteActionLog(world.database)
    access = Access(*stores, lambda: datetime.now(UTC), monotonic, always=True)
    with serving(world, access=access) as address, visitor(browser) as olga:
        page = olga.page
        page.goto(f"{address}/link/{access.issue_link('olga', Role.OPERATOR)}")
        page.get_by_label("Password").fill("correct horse battery")
        page.get_by_role("button", name="Set the password").click()
        expect(page.get_by_text("Be the first customer")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Name").fill("olga")
        page.get_by_label("Password").fill("correct horse battery")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("Be the first customer")).to_be_visible()
