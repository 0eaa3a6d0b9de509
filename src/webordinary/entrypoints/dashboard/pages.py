"""The pages that only show: read the system, make a view, print it.

Also the live stream: server-sent events, one per stored event, resumed by Last-Event-ID.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from datetime import datetime
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse

from webordinary.entrypoints.dashboard import mail_view, views
from webordinary.entrypoints.dashboard.login import own_path
from webordinary.entrypoints.dashboard.mail_view import DiffView, diff_view
from webordinary.entrypoints.dashboard.ports import Dashboard, Readers, Templates
from webordinary.entrypoints.dashboard.sites import CHOOSER, SiteHost, site_address, split_host
from webordinary.entrypoints.dashboard.write import EMAIL_ID
from webordinary.jobs.site_files import Stage
from webordinary.mail.confirm import without_token
from webordinary.model.jobs import JobOutcome
from webordinary.model.mail import Attachment
from webordinary.model.snapshot import MailDetail, TimelineEntry
from webordinary.operations.ports import Overview
from webordinary.pool.metrics import MEDIA_TYPE

PAGE_SIZE = 25
IN_FLIGHT = 50
LINKED_SITES = 20
RAW_HEAD = 20_000
REPLY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
"""For HTML that we show and did not write for the page: no scripts, no requests, no forms, no links out of it."""


@dataclass(frozen=True, slots=True)
class SiteLinks:
    """Where a project's site is seen; `other` works where *.localhost does not."""

    project: str
    edit: str
    public: str
    other: str


class Pages:
    """One method per page; blocking reads run in the reader threads."""

    def __init__(self, dashboard: Dashboard, readers: Readers, templates: Templates) -> None:
        self._d, self._readers, self._templates = dashboard, readers, templates

    async def home(self, request: Request) -> Response:
        """Mails in flight and done, workers, claims and queues."""
        return await self._home(request, "home.html")

    async def home_fragment(self, request: Request) -> Response:
        """The part of the home page that changes."""
        return await self._home(request, "_home.html")

    async def status(self, request: Request) -> Response:
        """The home page's values as JSON."""
        look = self._readers.look
        view = await look(read_home, self._d.overview, self._d.clock(), _before(request))
        return JSONResponse(asdict(view))

    async def health(self, request: Request) -> Response:
        """Whether the page can read the system."""
        return JSONResponse({"ok": True, "seq": await self._readers.look(self._d.overview.last_seq)})

    async def metrics(self, request: Request) -> Response:
        """Levels and counts, for Prometheus."""
        return Response(await self._readers.look(self._d.metrics), media_type=MEDIA_TYPE)

    async def mail(self, request: Request) -> Response:
        """One mail: progress, text, difference and replies."""
        email_id = _email_id(request)
        prefix = "_" if "fragment" in request.query_params else ""
        view = await self._readers.look(self._look_at_mail, email_id)
        if view is not None:
            other_url = self._other_url(view.line.project, view.site, urlsplit(view.site_url).path)
            return self._templates.page(f"{prefix}mail.html", mail=view, other_url=other_url)
        # Just sent and not stored yet, or never: the page waits for news of it.
        seq = await self._readers.look(self._d.overview.last_seq)
        return self._templates.page(f"{prefix}not_here.html", 404, email_id=email_id, seq=seq)

    async def raw(self, request: Request) -> Response:
        """The raw mail as plain text, so that the browser runs nothing of it."""
        raw = await self._readers.look(self._d.mail_of, _email_id(request))
        if raw is None:
            raise HTTPException(404, "There is no such mail.")
        return PlainTextResponse(without_token(raw).decode("utf-8", "replace"))

    async def reply(self, request: Request) -> Response:
        """A reply as its customer sees it: a page of its own that may run, load and link nothing."""
        html = await self._readers.look(self._reply, _email_id(request), request.path_params["position"])
        if html is None:
            raise HTTPException(404, "There is no such reply.")
        return HTMLResponse(html, headers={"Content-Security-Policy": REPLY_POLICY})

    async def attachment(self, request: Request) -> Response:
        """A picture that came with a mail."""
        file = await self._readers.look(self._picture, _email_id(request), request.path_params["position"])
        if file is None:
            raise HTTPException(404, "There is no such picture.")
        content, media_type = file
        return Response(content, media_type=media_type)

    async def picture(self, request: Request) -> Response:
        """The changed page, before or after."""
        content = await self._readers.look(self._shot, _email_id(request), request.path_params["position"])
        if content is None:
            raise HTTPException(404, "There is no such picture.")
        return Response(content, media_type="image/png")

    async def problem(self, request: Request, exc: Exception) -> Response:
        """The page of an HTTP error."""
        if not isinstance(exc, HTTPException):
            exc = HTTPException(500, "Something went wrong here; the log says what.")
        return self._templates.page(
            "problem.html", exc.status_code, exc.headers, code=exc.status_code, words=exc.detail, back=_form_of(request)
        )

    async def _home(self, request: Request, template: str) -> Response:
        before = _before(request)
        view = await self._readers.look(read_home, self._d.overview, self._d.clock(), before)
        links = await self._readers.look(self._links, view, split_host(request.headers.get("host", ""))[1])
        waiting = await self._readers.look(self._d.console.waiting) if self._d.console else 0
        return self._templates.page(template, home=view, links=links, before=before or "", waiting=waiting)

    def _links(self, home: views.HomeView, port: str) -> list[SiteLinks]:
        return [
            SiteLinks(
                project,
                self._site_url(SiteHost(project, Stage.EDIT), port),
                self._site_url(SiteHost(project, Stage.PUBLIC), port)
                if self._d.current_release(project, Stage.PUBLIC)
                else "",
                self._other_url(project),
            )
            for project in home.projects[:LINKED_SITES]
        ]

    def _site_url(self, site: SiteHost, port: str) -> str:
        """On this machine with the browser's port, so that a tunnel from another port works."""
        if self._d.public_url:
            return self._d.site_url(site.project_id, site.stage)
        return site_address(site, self._d.domain, port)

    def _other_url(self, project: str, stage: str = Stage.EDIT.value, path: str = "") -> str:
        if self._d.public_url or not project:
            return ""
        return f"http://127.0.0.1:{self._d.preview_port}{CHOOSER}/{stage}/{project}{path}"

    def _look_at_mail(self, email_id: str) -> mail_view.MailView | None:
        seq = self._d.overview.last_seq()
        detail = self._d.overview.mail(email_id)
        if detail is None:
            return None
        raw = b"" if detail.text else self._d.mail_of(email_id) or b""
        head = without_token(raw[:RAW_HEAD]).decode("utf-8", "replace")
        job = detail.summary.job
        log = self._d.build_log_of(job.job_id) if job else ""
        ended_early = job is not None and (job.interruptions > 0 or job.outcome is JobOutcome.TIMED_OUT)
        audit = self._d.interruptions_of(email_id) if ended_early else ()
        diff, now = self._diff(detail), self._d.clock()
        rehearsal = self._d.console.rehearsal(email_id) if self._d.console else None
        return mail_view.mail_view(
            seq, detail, now, diff=diff, raw_head=head, build_log=log, rehearsal=rehearsal, audit=audit
        )

    def _diff(self, detail: MailDetail) -> DiffView:
        job = detail.summary.job
        commit = job.result.commit if job and job.result else None
        return diff_view(self._d.diff_of(job.key.project_id, commit)) if job and commit else DiffView()

    def _shot(self, email_id: str, position: int) -> bytes | None:
        detail = self._d.overview.mail(email_id)
        job = detail.summary.job if detail else None
        digests = job.result.pictures if job and job.result else ()
        return self._d.blob_of(digests[position]) if position < len(digests) else None

    def _reply(self, email_id: str, position: int) -> str | None:
        detail = self._d.overview.mail(email_id)
        replies = detail.replies if detail else ()
        return mail_view.reply_html(replies[position]) if position < len(replies) else None

    def _picture(self, email_id: str, position: int) -> tuple[bytes, str] | None:
        detail = self._d.overview.mail(email_id)
        files = detail.attachments if detail else ()
        file = files[position] if position < len(files) else None
        if not isinstance(file, Attachment) or file.media_type not in mail_view.SHOWN_TYPES:
            return None
        content = self._d.blob_of(file.digest)
        return (content, file.media_type) if content is not None else None


def read_home(overview: Overview, now: datetime, before: str | None = None) -> views.HomeView:
    """The whole system at a glance; `before` names the last mail of the previous page."""
    seq = overview.last_seq()  # read first: an event during the look is announced again
    page = overview.recent_mails(before, PAGE_SIZE)
    in_flight = () if before else overview.mails_in_flight(IN_FLIGHT)
    projects = [sender.key.project_id for sender in overview.senders()]
    next_page = page[-1].email_id if len(page) == PAGE_SIZE else ""
    return views.home_view(seq, (*in_flight, *page), overview.pool(now), projects, now, next_page=next_page)


def _form_of(request: Request) -> str:
    """The page of ours with the form that was sent; empty if none was."""
    came_from = urlsplit(request.headers.get("referer", ""))
    return own_path(f"{came_from.path}?{came_from.query}".rstrip("?"), "") if request.method == "POST" else ""


def _before(request: Request) -> str | None:
    before = request.query_params.get("before", "")
    return before if EMAIL_ID.fullmatch(before) else None


def _email_id(request: Request) -> str:
    email_id: str = request.path_params["email_id"]
    if not EMAIL_ID.fullmatch(email_id):
        raise HTTPException(404, "There is no such mail.")
    return email_id


HEARTBEAT_SECONDS = 15.0
PACE_SECONDS = 0.1
BATCH = 200
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Stream:
    """`GET /events`: the ids of mails with new events; the page fetches what it needs."""

    def __init__(self, dashboard: Dashboard, readers: Readers) -> None:
        self._overview, self._feed, self._look = dashboard.overview, dashboard.feed, readers.look

    async def open(self, request: Request) -> Response:
        """Open a stream, if there are not too many already."""
        if self._feed.full or self._feed.closed:
            return PlainTextResponse("Too many pages are open; close one.", 503, {"Retry-After": "10"})
        newest = await self._look(self._overview.last_seq)
        asked = request.headers.get("last-event-id") or request.query_params.get("after", "")
        seq = min(int(asked), newest) if asked.isdecimal() and len(asked) < 19 else newest
        return StreamingResponse(self._messages(seq), media_type="text/event-stream", headers=_HEADERS)

    async def _messages(self, seq: int) -> AsyncIterator[str]:
        with self._feed.stream():
            yield "retry: 2000\n\n"
            while True:
                bell = self._feed.bell  # taken before the look, so that no event falls between
                if self._feed.closed:
                    return
                entries = await self._look(self._overview.events_after, seq, BATCH)
                if not entries:
                    if not await _rung(bell):
                        yield ": still here\n\n"
                    continue
                if len(entries) == BATCH:
                    seq = await self._look(self._overview.last_seq)
                    yield f"event: behind\nid: {seq}\ndata: {{}}\n\n"  # one fresh look replaces the rest
                else:
                    seq = entries[-1].seq
                    yield "".join(map(_message, entries))
                await asyncio.sleep(PACE_SECONDS)  # under load, many events share one look


async def _rung(bell: asyncio.Event) -> bool:
    try:
        await asyncio.wait_for(bell.wait(), HEARTBEAT_SECONDS)
    except TimeoutError:
        return False
    return True


def _message(entry: TimelineEntry) -> str:
    data = json.dumps({"seq": entry.seq, "kind": entry.kind, "email_id": entry.email_id})
    return f"id: {entry.seq}\ndata: {data}\n\n"
