"""A real browser for the tests: Debian's chromium through Playwright, which downloads nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

LAPTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_MS = 60_000
expect.set_options(timeout=TIMEOUT_MS)  # five seconds if nobody says, whatever the context waits


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """The browser of this machine; without one the test is skipped."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        words = "no chromium on this machine: install it (Debian: apt install chromium) to test in a browser"
        pytest.skip(words)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*FLAGS, *flags], timeout=TIMEOUT_MS)
        try:
            yield browser
        finally:
            browser.close()


class BrowserWindow:
    """One browser window, and what it complained about."""

    def __init__(self, browser: Browser, viewport: ViewportSize) -> None:
        self.context = browser.new_context(viewport=viewport)
        self.context.set_default_timeout(TIMEOUT_MS)
        self.complaints: list[str] = []
        self.context.on("console", self._heard)
        self.context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        self.page: Page = self.context.new_page()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def scrolls_sideways(self) -> bool:
        """Whether something sticks out of the window."""
        wider: bool = self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        return wider


@contextmanager
def visitor(browser: Browser, viewport: ViewportSize = LAPTOP) -> Iterator[BrowserWindow]:
    """Open a window, and see that nothing was wrong in it."""
    somebody = BrowserWindow(browser, viewport)
    try:
        yield somebody
    finally:
        somebody.context.close()
    assert somebody.complaints == []
