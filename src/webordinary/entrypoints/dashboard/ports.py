"""What all pages share: the Dashboard with its dependencies, the event feed, reader threads, templates."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from webordinary.entrypoints.dashboard.oidc import BalancerLogin, OidcProvider
from webordinary.jobs.site_files import Stage, site_host
from webordinary.mail.write import OutgoingFile
from webordinary.model.console import ConsoleUser, Role
from webordinary.model.projects import Project
from webordinary.model.snapshot import Interruption
from webordinary.operations.access import Access, TooManyTries
from webordinary.operations.console import Console
from webordinary.operations.mails import SenderQuestions
from webordinary.operations.ports import Overview

MAX_STREAMS = 64


class EventFeed:
    """Wakes the streams of one event loop after events were stored; any thread may call `wake`.

    It carries no events: a stream reads them from the Overview, so that none is lost between two wake-ups.
    """

    name = "page-waker"

    def __init__(self, max_streams: int = MAX_STREAMS) -> None:
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bell = asyncio.Event()
        self._closed = False
        self._streams = 0
        self._max_streams = max_streams
        self._watched = threading.Event()
        """Set while a stream is open or the feed is closed: without a stream there is nothing to wake."""

    def wake(self) -> None:
        """Wake every open stream. May be called from any thread, before, during and after serving."""
        with self._guard:
            if self._loop is not None and self._streams:
                self._loop.call_soon_threadsafe(self._ring)

    def run_once(self, now: datetime) -> int:
        """As a background service it runs whenever events were stored; without an open stream it waits for one."""
        self.wake()
        self._watched.wait()
        return 1

    def close(self) -> None:
        """End every stream now, so that the server can stop; may be called from any thread."""
        with self._guard:
            self._closed = True
            self._watched.set()
        self.wake()

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Belong to the running event loop."""
        with self._guard:
            self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            with self._guard:
                self._loop = None

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Count one open page."""
        self._streams += 1
        self._watched.set()
        try:
            yield
        finally:
            with self._guard:
                self._streams -= 1
                if not self._streams and not self._closed:
                    self._watched.clear()

    @property
    def full(self) -> bool:
        """The maximum number of streams is open."""
        return self._streams >= self._max_streams

    @property
    def closed(self) -> bool:
        """The server is about to stop."""
        return self._closed

    @property
    def bell(self) -> asyncio.Event:
        """Set at the next wake-up. Take it before reading, wait for it afterwards: then no event is missed."""
        return self._bell

    def _ring(self) -> None:
        self._bell.set()
        self._bell = asyncio.Event()


@dataclass(frozen=True, slots=True)
class Example:
    """A mail to try, one click away."""

    title: str
    subject: str
    text: str
    files: tuple[OutgoingFile, ...] = ()


def _nothing(_: str) -> None:
    return None


def _no_log(_: str) -> str:
    return ""


def _no_interruptions(_: str) -> Sequence[Interruption]:
    return ()


def _now() -> datetime:
    return datetime.now(UTC)


def _address_here(project_id: str, stage: Stage) -> str:
    return f"http://{site_host(project_id, stage)}.localhost/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """The dependencies of the page; the page opens no file and no database by itself."""

    overview: Overview
    feed: EventFeed
    send_mail: Callable[[bytes, str, str], str]
    """Give (raw, mail_from, recipient) to our own SMTP port; return its email_id once it was accepted."""
    mail_of: Callable[[str], bytes | None]
    """The raw mail, by email_id."""
    diff_of: Callable[[str, str], str]
    """What a commit changed, by (project_id, commit); bounded."""
    current_release: Callable[[str, Stage], Path | None]
    """The release folder that a project's site shows now."""
    blob_of: Callable[[str], bytes | None] = _nothing
    """A stored attachment or picture, by digest."""
    build_log_of: Callable[[str], str] = _no_log
    """What the site's own programs said while it was built, by job; bounded."""
    interruptions_of: Callable[[str], Sequence[Interruption]] = _no_interruptions
    """The audit of a mail's job, by email_id: the newest first, bounded."""
    port: int = 8080
    preview_port: int = 8081
    domain: str = "localhost"
    mailbox: str = "edit@localhost"
    intake: str = "on port 2525 of this machine"
    """Where mails come in, after the words "Mail to MAILBOX"."""
    examples: tuple[Example, ...] = ()
    agent_note: tuple[str, str] | None = None
    """What the agent can do that edits sites, and the command that tries another."""
    metrics: Callable[[], str] = str
    """Everything there is to measure, as Prometheus reads it."""
    clock: Callable[[], datetime] = _now
    public_url: str = ""
    """Address of the page on the net; empty while only this machine reaches it."""
    site_url: Callable[[str, Stage], str] = _address_here
    """Address of a project's site in a browser."""
    project_settings: Callable[[], Sequence[Project]] = tuple
    """Every project, for own domains and passwords of edit sites."""
    console: Console | None = None
    """The operator's actions; None where the page only shows."""
    access: Access | None = None
    """Users, sessions and tokens; None where the page has no login."""
    trusted_proxies: frozenset[str] = frozenset()
    """Peers whose X-Forwarded-For is believed."""
    forward_auth_header: str = ""
    """Header in which a trusted proxy names the user that it has signed in."""
    questions: SenderQuestions | None = None
    """Questions to senders that link to a page; None where the page is not on the net."""
    oidc: OidcProvider | None = None
    """Where users sign in beside the password form; None for nowhere."""
    balancer: BalancerLogin | None = None
    """The load balancer that signs all users in, on AWS; then every page needs its proof."""

    @property
    def page_host(self) -> str:
        """Host name of the page on the net."""
        return urlsplit(self.public_url).hostname or ""


READERS = 4
MAX_CHECKS = 20
"""Passwords that wait to be compared; each takes 50 ms of a core on purpose."""

MAX_ASKING = 20
"""Requests that wait for another server: a provider of OpenID Connect, a name server, a repository."""

T = TypeVar("T")


class Readers:
    """A few threads for all reads: each keeps one database connection, so that their number is bounded."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="page")
        self._checking = ThreadPoolExecutor(1, thread_name_prefix="passwords")
        self._asking = ThreadPoolExecutor(READERS, thread_name_prefix="outside")
        self._waiting: Counter[ThreadPoolExecutor] = Counter()

    async def look(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    async def check_password(self, function: Callable[..., T], *arguments: object) -> T:
        """Compare a password in a thread of its own, so that guesses hold up no page. Raises TooManyTries."""
        return await self._bounded(self._checking, MAX_CHECKS, function, *arguments)

    async def ask_outside(self, function: Callable[..., T], *arguments: object) -> T:
        """Ask another server in threads for that alone: its outage holds up no page. Raises TooManyTries."""
        return await self._bounded(self._asking, MAX_ASKING, function, *arguments)

    async def _bounded(
        self, threads: ThreadPoolExecutor, most: int, function: Callable[..., T], *arguments: object
    ) -> T:
        if self._waiting[threads] >= most:
            raise TooManyTries(1)
        self._waiting[threads] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, function, *arguments)
        finally:
            self._waiting[threads] -= 1

    def close(self) -> None:
        """Wait for the running reads, and end the threads."""
        self._threads.shutdown()
        self._checking.shutdown()
        self._asking.shutdown()


FOLDER = Path(__file__).parent / "templates"


SIGNED_IN: ContextVar[ConsoleUser | None] = ContextVar("signed_in", default=None)
"""The user of the request that is answered now."""


class Templates:
    """Renders views. Values are escaped, an unknown value is an error.

    Every template knows `dashboard`, `signed_in`, the user if there is one, and `may_act`: whether forms do anything.
    """

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    def page(
        self, name: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: object
    ) -> HTMLResponse:
        """Print a template with a view's values."""
        html = _environment().get_template(name).render({**values, **self._common()})
        return HTMLResponse(html, status, headers)

    def live(self, request: Request, name: str, **values: object) -> HTMLResponse:
        """Print a page whose block `live` is fetched again after events: whole, or that block alone."""
        if "fragment" not in request.query_params:
            query = f"{request.url.query}&fragment=1".lstrip("&")
            return self.page(name, 200, None, live_url=f"{request.url.path}?{query}", **values)
        template = _environment().get_template(name)
        return HTMLResponse("".join(template.blocks["live"](template.new_context({**values, **self._common()}))))

    def _common(self) -> dict[str, object]:
        user = SIGNED_IN.get()  # none on a page without a login, which is its operator's
        return {"dashboard": self._dashboard, "signed_in": user, "may_act": user is None or user.role is Role.OPERATOR}


MOST_CARDS = 1000


@lru_cache(maxsize=MOST_CARDS)
def _card(name: str, line: Hashable) -> str:
    """A mail or a site in a list. Lists are fetched again after every event, and nearly all in them is as it was."""
    card: str = getattr(_environment().get_template("_parts.html").module, name)(line)
    return card


@cache
def _environment() -> Environment:
    """One for the process, because it keeps the compiled templates."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # an update on disk must not mix with the running version
    )
    environment.globals["card"] = _card
    return environment
