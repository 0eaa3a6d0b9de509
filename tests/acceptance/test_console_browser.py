"""The console in a real browser: nothing that keeps people out, and two windows that see each other's actions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ViewportSize, expect

from tests.acceptance.browser import LAPTOP, PHONE, chromium, visitor
from tests.acceptance.test_browser import BrowsedServer, up
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.model.projects import Project

LOG = "npm ended with an error.\n" + "    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)\n" * 30
MAILS = ("Set the title to Spring Sale", "Please make the whole site feel warmer")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[BrowsedServer]:
    data = tmp_path_factory.mktemp("console") / "data"
    with up(data) as system:
        with open_embedded(Config(data=data)) as services:  # a site whose build failed with a long log
            broken = Project(
                "broken", "broken.git", build_problem=LOG, domains=("www.broken.invalid",), hook_secret="x"
            )
            for site in (broken, Project("leaving", "leaving.git")):
                services.directory.add_project(site, datetime.now(UTC))
        yield system


@pytest.fixture(scope="module")
def mail(browser: Browser, system: BrowsedServer) -> str:
    """The path of a mail that was done; another one needs a person."""
    with visitor(browser) as operator:
        page, found = operator.page, ""
        for text in MAILS[::-1]:
            page.goto(f"{system.page}write")
            page.locator("#text").fill(text)
            page.get_by_role("button", name="Send").click()
            page.wait_for_url("**/mails/*")
            found = re.sub(r".*(?=/mails/)", "", page.url)
            expect(page.locator("#total")).to_contain_text("answered in")
        return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_no_page_keeps_people_out(
    browser: Browser, system: BrowsedServer, mail: str, viewport: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(viewport=viewport, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    found = []
    paths = [
        "/",
        "/mails",
        "/attention",
        "/pool",
        "/sites",
        "/sites/amelia",
        "/sites/broken",
        "/sites/broken/domains/www.broken.invalid",
        "/write",
        mail,
        "/login",
        "/nothing",
    ]
    for path in paths:
        page.goto(system.page.rstrip("/") + path)
        page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        violations = Axe().run(page).response["violations"]
        found += [(path, one["id"], one["nodes"][0]["html"][:200]) for one in violations]
        wider = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        found += [(path, "scrolls sideways", "")] if wider else []
    context.close()
    assert found == []


def test_two_operators_see_each_others_actions_and_one_of_them_uses_the_keyboard_alone(
    browser: Browser, system: BrowsedServer, mail: str
) -> None:
    with visitor(browser) as first, visitor(browser) as second:
        for operator in (first, second):
            operator.page.goto(f"{system.page}attention")
            expect(operator.page.get_by_role("heading", name="Not understood by any agent")).to_be_visible()
        button = first.page.get_by_role("button", name="Close")
        for _ in range(60):
            if button.evaluate("one => one === document.activeElement"):
                break
            first.page.keyboard.press("Tab")
        first.page.keyboard.press("Enter")
        for operator in (first, second):
            expect(operator.page.get_by_role("heading", name="Not understood by any agent")).to_have_count(0)


def test_the_reply_is_seen_as_its_customer_sees_it_and_its_links_lead_nowhere(
    browser: Browser, system: BrowsedServer, mail: str
) -> None:
    with visitor(browser) as operator:
        page = operator.page
        page.goto(system.page.rstrip("/") + mail)
        page.get_by_text("As the customer sees it").click()
        seen = page.frame_locator("iframe.as-seen")
        expect(seen.get_by_role("heading").first).to_contain_text("Done")
        page.get_by_text("Workflow", exact=True).click()
        expect(page.locator(".graph .node.good")).not_to_have_count(0)


def test_what_is_typed_and_not_sent_outlives_the_actions_of_another_operator(
    browser: Browser, system: BrowsedServer
) -> None:
    with visitor(browser) as first, visitor(browser) as second:
        for operator in (first, second):
            operator.page.goto(f"{system.page}sites/amelia")
        page = first.page
        page.get_by_text("Change settings").click()
        page.get_by_label("Standing wishes").fill("British spelling")
        page.get_by_role("heading", name="amelia").click()  # the field has the focus no longer
        with page.expect_response(lambda answer: "fragment=1" in answer.url) as fetched:
            second.page.get_by_role("button", name="Pause").click()
        fetched.value.finished()
        page.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(done)))")  # after it was put in
        page.get_by_role("button", name="Save").click()
        for operator in (first, second):
            expect(operator.page.get_by_text("British spelling").first).to_be_visible()
        expect(page.get_by_text("Its mails wait")).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        expect(second.page.get_by_role("button", name="Pause")).to_be_visible()


def test_an_operator_gives_a_site_a_domain_and_a_webhook_and_removes_another_by_its_name(
    browser: Browser, system: BrowsedServer
) -> None:
    with visitor(browser) as operator, visitor(browser) as other:
        page = operator.page
        other.page.goto(f"{system.page}sites/amelia")
        page.goto(f"{system.page}sites/amelia")
        page.get_by_text("Add a domain").click()
        page.get_by_label("Domain", exact=True).fill("www.amelia.invalid")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_label("DNS records")).to_have_text("www.amelia.invalid.  CNAME  amelia.localhost.")
        expect(other.page.get_by_role("link", name="Check its DNS")).to_be_visible()
        page.get_by_role("link", name="amelia", exact=True).click()
        page.locator("#webhook summary").click()
        page.get_by_role("button", name="Make a webhook").click()
        assert len(page.locator("#secret").inner_text()) > 30
        expect(other.page.get_by_text("on: a push builds it")).to_be_visible()
        other.page.goto(f"{system.page}sites")
        page.goto(f"{system.page}sites/leaving")
        page.locator("#remove-site summary").click()
        page.get_by_label("Its name, to confirm").fill("leaving")
        page.get_by_role("button", name="Remove it for good").click()
        page.wait_for_url("**/sites")
        for one in (operator, other):
            expect(one.page.get_by_role("link", name="leaving")).to_have_count(0)
