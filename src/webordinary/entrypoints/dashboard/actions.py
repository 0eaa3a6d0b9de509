"""The pages on which an operator acts: what needs a person, and the sites. An action is a POST and leads back."""

from __future__ import annotations

import hmac
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse

from webordinary.compose.container import Container
from webordinary.config import setting_of
from webordinary.entrypoints.dashboard.login import own_path, read_fields
from webordinary.entrypoints.dashboard.pool_view import SPANS, charts_of, pool_view
from webordinary.entrypoints.dashboard.ports import Dashboard, Readers, Templates
from webordinary.entrypoints.dashboard.text import moment
from webordinary.entrypoints.dashboard.views import SiteLine, attention_view, mail_list_view, page_links, site_line
from webordinary.entrypoints.dashboard.write import EMAIL_ID
from webordinary.jobs.site_files import Stage
from webordinary.model.errors import InvalidName, Permanent, Transient
from webordinary.model.names import ProjectUser
from webordinary.model.projects import DomainFinding, Project, SenderRole
from webordinary.model.snapshot import MailFilter, MailState
from webordinary.operations import mails, onboarding, pool, site_settings
from webordinary.operations.access import TooManyTries
from webordinary.operations.console import MOST_ITEMS, PAGE_SIZE, Console, NewSite
from webordinary.operations.site_settings import SiteChanges, hook_address, seen_of
from webordinary.setting_rules import host_name

SITES_EACH, MAX_HOOK_BYTES = 50, 5_000_000
MAX_FIELDS_BYTES = 120_000
"""Of forms of the console: 11,000 characters of wishes, each of which takes nine bytes in some languages."""
SAID_ON_PAGE = (409, 429, 503)
MOST_CHOICES = 100
"""Sites in a list to choose from; the name of one of more is typed."""
ROLE_WORDS = {
    SenderRole.BOTH: "asks for changes and publishes",
    SenderRole.EDITOR: "asks for changes",
    SenderRole.PUBLISHER: "publishes",
}
DAY = re.compile(r"\d{4}-\d\d-\d\d")
T = TypeVar("T")


Endpoint = Callable[[Request], Awaitable[Response]]
Action = Callable[[Container, str, str], object]
"""What an operator does with a mail or a site: the container, its id, and the user who acts."""

MAIL_ACTIONS: Mapping[str, tuple[Action, str]] = {
    "releases": (mails.release_mail, "/attention"),
    "drops": (mails.drop_mail, "/attention"),
    "closings": (mails.close_mail, "/attention"),
    "cancellations": (pool.cancel_job, "/"),
    "interrupts": (pool.interrupt_job, "/"),
}
"""The actions on a mail that need its id alone, by the end of their address, with the page that follows."""

SITE_ACTIONS: Mapping[str, Action] = {
    "hooks/removals": site_settings.remove_hook,
    "credentials/removals": onboarding.forget_credential,
    "pauses": lambda services, project_id, by: onboarding.pause(services, project_id, paused=True, by=by),
    "resumes": lambda services, project_id, by: onboarding.pause(services, project_id, paused=False, by=by),
}


class ActionPages:
    """One method per page or action; blocking work runs in the reader threads."""

    def __init__(self, dashboard: Dashboard, readers: Readers, templates: Templates) -> None:
        self._d, self._readers, self._templates = dashboard, readers, templates

    async def attention(self, request: Request) -> Response:
        """Everything that waits for the operator."""
        seq = await self._do(self._d.overview.last_seq)
        waiting, keys = await self._do(self._console.needs_person), await self._do(self._console.keys)
        view = attention_view(waiting, [str(key) for key in keys], mails.agents_of(self._services), self._d.clock())
        return self._templates.live(
            request, "attention.html", groups=view, reach=self._console.reach, most=MOST_ITEMS, seq=seq
        )

    async def retry(self, request: Request) -> Response:
        """Do a mail once more that ended without success."""
        agent = (await _fields(request)).get("key", "")
        await self._act(mails.retry_mail, _email_id(request), _user(request), agent)
        return await _back(request, "/attention")

    async def rehearse(self, request: Request) -> Response:
        """Run a mail once more on copies."""
        back = await _back(request, "/")
        if not await self._do(self._console.rehearse, _email_id(request), _user(request)):
            raise HTTPException(409, "Another rehearsal runs: wait until it is done.")
        return back

    async def let_in(self, request: Request) -> Response:
        """Let the author of a refused mail change a site, and do that mail."""
        try:
            key = ProjectUser.parse((await _fields(request)).get("key", ""))
        except InvalidName as problem:
            raise HTTPException(409, "Choose the site, and the person of it.") from problem
        await self._act(mails.let_in, _email_id(request), key, _user(request))
        return await _back(request, "/attention")

    def _entitle(self, address: str, key: str, by: str) -> None:
        try:
            mails.entitle(self._services, _address(address), ProjectUser.parse(key), by)
        except ValueError as problem:
            raise Permanent(str(problem)) from problem

    async def redrive(self, request: Request) -> Response:
        """Run a given-up mail once more."""
        back = await _back(request, "/attention")
        await self._do(self._console.redrive, request.path_params["letter_id"])
        return back

    async def drop(self, request: Request) -> Response:
        """Forget a dead letter."""
        back = await _back(request, "/attention")
        await self._do(self._console.drop, request.path_params["letter_id"])
        return back

    async def mails(self, request: Request) -> Response:
        """The mails that fit a search, a page of them."""
        wanted, page = _wanted(request), _page(request)
        seq = await self._do(self._d.overview.last_seq)
        found = await self._do(self._console.find, wanted, page)
        if not found.mails and found.counted and page > 1:  # an older link, or a list that became shorter
            page = max(1, -(-found.total // PAGE_SIZE))
            found = await self._do(self._console.find, wanted, page)
        counts = await self._do(self._console.counts, wanted.project_id)
        projects = await self._do(self._sites_by_name)
        sites = [project.project_id for project in projects] if len(projects) <= MOST_CHOICES else []
        view = mail_list_view(found, counts, wanted, page, PAGE_SIZE, self._d.clock())
        return self._templates.live(
            request, "mail_list.html", list=view, wanted=wanted, sites=sites, reach=self._console.reach, seq=seq
        )

    async def export(self, request: Request) -> Response:
        """The mails that fit a search, as CSV or lines of JSON."""
        as_csv = request.url.path.endswith(".csv")
        rows = mails.export_mails(self._services.mail_index, _wanted(request), as_csv=as_csv)
        name = f"mails.{'csv' if as_csv else 'jsonl'}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(
            self._rows(rows), media_type="text/csv" if as_csv else "application/jsonl", headers=headers
        )

    async def _rows(self, rows: Iterator[str]) -> AsyncIterator[str]:
        while (part := await self._do(next, rows, None)) is not None:
            yield part

    async def answer(self, request: Request) -> Response:
        """Write to the customer in the conversation of a mail."""
        email_id, fields = _email_id(request), await _fields(request)
        text, again = fields.get("text", ""), bool(fields.get("again"))
        try:
            await self._readers.look(
                partial(mails.answer_mail, self._services, email_id, text, _user(request), again=again)
            )
        except (Permanent, Transient) as problem:
            back, second = own_path(fields.get("back", ""), "/attention"), isinstance(problem, mails.AnsweredAlready)
            values: dict[str, Any] = {"text": text, "problem": _sentence(problem), "again": second, "back": back}
            return self._templates.page("answer.html", 409, email_id=email_id, **values)
        return await _back(request, "/attention")

    async def send_again(self, request: Request) -> Response:
        """Send the undelivered replies of a mail again."""
        back = await _back(request, "/attention")
        await self._do(self._console.send_again, _email_id(request))
        return back

    async def pool(self, request: Request) -> Response:
        """Workers, claims and queues."""
        seq, now = await self._do(self._d.overview.last_seq), self._d.clock()
        view = pool_view(await self._do(self._d.overview.pool, now), now)
        chosen = request.query_params.get("span", "")
        span = chosen if chosen in SPANS else next(iter(SPANS))
        history = await self._do(self._console.history, *SPANS[span])
        values = {
            "pool": view,
            "charts": charts_of(history),
            "problem": history.problem,
            "span": span,
            "spans": list(SPANS),
        }
        return self._templates.live(request, "pool.html", seq=seq, **values)

    async def release_claim(self, request: Request) -> Response:
        """Take a key from a worker that is idle or dead."""
        try:
            key = ProjectUser.parse(request.path_params["key"])
        except InvalidName as problem:
            raise HTTPException(404, "There is no such claim.") from problem
        back = await _back(request, "/pool")
        await self._act(pool.release_claim, key, _user(request))
        return back

    async def drain(self, request: Request) -> Response:
        """Let a worker end once its running jobs are done."""
        back = await _back(request, "/pool")
        await self._act(pool.drain_worker, request.path_params["worker"], _user(request))
        return back

    async def sites(self, request: Request) -> Response:
        """Every site with its health, a page of them."""
        return await self._sites(request, {}, "")

    async def add_site(self, request: Request) -> Response:
        """Add a site; the list shows how far it is."""
        fields = await _fields(request)
        try:
            await self._readers.look(self._add_site, fields, _user(request))
        except Permanent as problem:
            return await self._sites(request, fields, _sentence(problem))
        return RedirectResponse("/sites", status_code=303)

    def _add_site(self, fields: Mapping[str, str], by: str) -> None:
        given = {name: value.strip() for name, value in fields.items()}
        key = ProjectUser(given.get("name", ""), given.get("user", ""))
        site = NewSite(
            key,
            given.get("repo", ""),
            _address(given.get("sender", "")),
            fields.get("credential", ""),
            given.get("folder", ""),
        )
        self._console.add_site(site, by)

    async def _sites(self, request: Request, typed: Mapping[str, str], problem: str) -> Response:
        seq, page = await self._do(self._d.overview.last_seq), _page(request)
        name = request.query_params.get("q", "").strip().lower()[:50]
        projects = [one for one in await self._do(self._sites_by_name) if name in one.project_id]
        last = max(1, -(-len(projects) // SITES_EACH))
        page = min(page, last)
        view = await self._do(self._site_lines, projects[(page - 1) * SITES_EACH : page * SITES_EACH])
        pages = page_links(page, last, lambda number: f"/sites?q={name}&page={number}")
        values = {"sites": view, "pages": pages, "total": len(projects), "searched": name, "seq": seq}
        values |= {"adding": self._console.adding, "typed": typed, "problem": problem}
        response = self._templates.live(request, "site_list.html", **values)
        response.status_code = 409 if problem else 200
        return response

    def _site_lines(self, projects: Sequence[Project]) -> list[SiteLine]:
        now, counts = self._d.clock(), self._console.counts_by_site(projects)
        health_of = onboarding.health_of
        return [site_line(one, health_of(self._services, one), counts[one.project_id], now) for one in projects]

    async def site(self, request: Request) -> Response:
        """One site: health, releases, people, costs, settings."""
        return await self._site(request)

    def said_on_site(self, action: Endpoint) -> Endpoint:
        """An action of the site's page: what prevents it is said on that page, with what was typed into its form."""

        async def endpoint(request: Request) -> Response:
            try:
                return await action(request)
            except HTTPException as problem:
                known = await self._act(_project, request.path_params["project_id"])
                if problem.status_code not in SAID_ON_PAGE or known is None:
                    raise
                return await self._site(request, problem)

        return endpoint

    async def _site(self, request: Request, problem: HTTPException | None = None) -> Response:
        seq = await self._do(self._d.overview.last_seq)
        site, now = await self._do(self._console.site, request.path_params["project_id"]), self._d.clock()
        if site is None:
            raise HTTPException(404, "There is no such site.")
        made = {one.release: moment(one.made_at, now) for kept in site.releases.values() for one in kept}
        line = site_line(site.project, site.health, site.counts, now)
        values: dict[str, Any] = {"agents": mails.agents_of(self._services), "roles": ROLE_WORDS, "stages": list(Stage)}
        values |= {"form": "", "typed": {}, "problem": "", "seen": seen_of(site.project)}
        if problem:
            secret = {"credential", "edit_password"}
            typed = {name: text for name, text in (await _fields(request)).items() if name not in secret}
            form = request.url.path.removeprefix(f"/sites/{site.project.project_id}/")
            values |= {"form": form, "typed": typed, "problem": problem.detail}
        response = self._templates.live(request, "site.html", site=site, line=line, made=made, seq=seq, **values)
        response.status_code = problem.status_code if problem else 200
        return response

    async def rebuild(self, request: Request) -> Response:
        """Build the newest main and show it."""
        project_id = request.path_params["project_id"]
        await self._do(self._console.rebuild, project_id)
        return RedirectResponse(f"/sites/{project_id}", status_code=303)

    async def hook(self, request: Request) -> Response:
        """A developer's push, signed as GitHub, Gitea and Forgejo do. Anybody may call: so the body is never kept."""
        project_id, size = request.path_params["project_id"], 0
        mac = onboarding.hook_mac(await self._act(_project, project_id))
        async for part in request.stream():
            size += len(part)
            if size > MAX_HOOK_BYTES:
                raise HTTPException(413, "This push is too large.")
            if mac:
                mac.update(part)
        signature = request.headers.get("x-hub-signature-256", "")
        if not mac or not hmac.compare_digest(f"sha256={mac.hexdigest()}".encode(), signature.encode()):
            raise HTTPException(403, "This call is not signed with the secret of the site.")
        await self._do(partial(self._console.rebuild, project_id, pushed=True))
        return PlainTextResponse("The site is built, if the push concerns it.", 202)

    async def change_site(self, request: Request) -> Response:
        """Change settings of a site; fields that the form does not have stay as they are."""
        project_id, fields = request.path_params["project_id"], await _fields(request)
        await self._act(
            lambda services: site_settings.change_site(services, project_id, _site_changes(fields), _user(request))
        )
        return RedirectResponse(f"/sites/{project_id}", status_code=303)

    async def add_person(self, request: Request) -> Response:
        """Let one more address change a site."""
        project_id, fields = request.path_params["project_id"], await _fields(request)
        key = f"{project_id}#{fields.get('user', '').strip()}"
        await self._do(self._entitle, fields.get("address", ""), key, _user(request))
        return RedirectResponse(f"/sites/{project_id}", status_code=303)

    async def set_role(self, request: Request) -> Response:
        """What a person of a site may do."""
        project_id, fields = request.path_params["project_id"], await _fields(request)
        if (role := fields.get("role", "")) not in list(SenderRole):
            raise HTTPException(409, "Choose what the person may do.")
        await self._act(site_settings.set_role, project_id, fields.get("address", ""), SenderRole(role), _user(request))
        return RedirectResponse(f"/sites/{project_id}", status_code=303)

    async def remove_person(self, request: Request) -> Response:
        """Let an address change a site no longer."""
        project_id, fields = request.path_params["project_id"], await _fields(request)
        await self._do(self._console.remove_person, project_id, fields.get("address", ""), _user(request))
        return RedirectResponse(f"/sites/{project_id}", status_code=303)

    async def add_domain(self, request: Request) -> Response:
        """Show a site under a domain of its own; the answer has its DNS records."""
        project_id, domain = request.path_params["project_id"], _domain((await _fields(request)).get("domain", ""))
        found = await self._outside(site_settings.add_domain, self._services, project_id, domain, _user(request))
        return self._templates.page("domain.html", site=project_id, found=found, state="new")

    async def domain(self, request: Request) -> Response:
        """Whether a domain of a site leads to it."""
        project_id, domain = request.path_params["project_id"], request.path_params["domain"]
        found = await self._outside(self._console.look_at_domain, project_id, domain)
        if found is None:
            raise HTTPException(404, "This site has no such domain.")
        return self._templates.page("domain.html", site=project_id, found=found, state="known")

    async def remove_domain(self, request: Request) -> Response:
        """Remove a domain from a site."""
        project_id, domain = request.path_params["project_id"], _domain((await _fields(request)).get("domain", ""))
        left = await self._outside(site_settings.remove_domain, self._services, project_id, domain, _user(request))
        if left:  # in the cloud that showed it
            gone = DomainFinding(domain, False, left)
            return self._templates.page("domain.html", site=project_id, found=gone, state="removed")
        return RedirectResponse(f"/sites/{project_id}", status_code=303)

    async def new_hook(self, request: Request) -> Response:
        """Give a site a webhook, or a new secret; the answer is the only page that shows it."""
        project_id = request.path_params["project_id"]
        secret = await self._act(site_settings.new_hook, project_id, _user(request))
        project = await self._act(_project, project_id)
        doubts = site_settings.hook_doubts(self._services.config, project) if project else []
        address = hook_address(self._d.public_url, self._d.port, project_id)
        return self._templates.page("hook.html", site=project_id, address=address, secret=secret, doubts=doubts)

    async def keep_credential(self, request: Request) -> Response:
        """Use another credential for a site's repository, if it is let in with it."""
        project_id, credential = request.path_params["project_id"], (await _fields(request)).get("credential", "")
        await self._outside(onboarding.keep_credential, self._services, project_id, credential.encode(), _user(request))
        return RedirectResponse(f"/sites/{project_id}", status_code=303)

    async def remove_site(self, request: Request) -> Response:
        """Remove a site whose name the operator has typed."""
        project_id, fields = request.path_params["project_id"], await _fields(request)
        if fields.get("name", "").strip() != project_id:
            raise HTTPException(409, f"Nothing was removed: type the name of the site, {project_id}, to remove it.")
        force, by = bool(fields.get("force")), _user(request)
        await self._outside(lambda: self._console.remove_site(project_id, by, force=force))
        return RedirectResponse("/sites", status_code=303)

    async def roll_back(self, request: Request) -> Response:
        """Show an earlier release again."""
        project_id, release = request.path_params["project_id"], request.path_params["release"]
        stage = request.path_params["stage"]
        if stage not in list(Stage):
            raise HTTPException(404, "There is no such site.")
        await self._do(self._console.roll_back, project_id, Stage(stage), release)
        return RedirectResponse(f"/sites/{project_id}", status_code=303)

    @property
    def _console(self) -> Console:
        if self._d.console is None:
            raise HTTPException(404, "There are no actions here.")
        return self._d.console

    @property
    def _services(self) -> Container:
        return self._console.services

    def on_mail(self, act: Action, then: str) -> Endpoint:
        """The endpoint of an action on one mail; it leads back, or to the page `then`."""

        async def endpoint(request: Request) -> Response:
            back = await _back(request, then)
            await self._act(act, _email_id(request), _user(request))
            return back

        return endpoint

    def on_site(self, act: Action) -> Endpoint:
        """The endpoint of an action on one site; it leads to the page of the site."""

        async def endpoint(request: Request) -> Response:
            project_id = request.path_params["project_id"]
            await self._act(act, project_id, _user(request))
            return RedirectResponse(f"/sites/{project_id}", status_code=303)

        return endpoint

    def _sites_by_name(self) -> Sequence[Project]:
        return self._services.directory.projects()

    async def _act(self, function: Callable[..., T], *arguments: object) -> T:
        """Call an operation, which takes the container first."""
        return await self._do(function, self._services, *arguments)

    async def _do(self, function: Callable[..., T], *arguments: object) -> T:
        return await self._explained(self._readers.look(function, *arguments))

    async def _outside(self, function: Callable[..., T], *arguments: object) -> T:
        """For functions that ask other servers: the name servers of a domain, a site's repository."""
        return await self._explained(self._readers.ask_outside(function, *arguments))

    async def _explained(self, doing: Awaitable[T]) -> T:
        try:
            return await doing
        except TooManyTries as problem:
            raise HTTPException(429, _sentence(problem)) from problem
        except Permanent as problem:
            raise HTTPException(409, _sentence(problem)) from problem
        except Transient as problem:
            raise HTTPException(503, f"{problem}. Try it again in a moment.") from problem


def _project(services: Container, project_id: str) -> Project | None:
    return services.directory.project(project_id)


def _site_changes(fields: Mapping[str, str]) -> SiteChanges:
    given: dict[str, str] = {name: text.strip() for name, text in fields.items()}
    try:
        cap = setting_of("daily_cap_usd").rule.read(given["daily_cap_usd"] or "0") if "daily_cap_usd" in given else None
    except ValueError as problem:
        raise Permanent("agents may cost a number of dollars a day, such as 5; 0 stands for the setting") from problem
    wishes = tuple(filter(None, map(str.strip, given["wishes"].splitlines()))) if "wishes" in given else None
    password = "" if given.get("open_edit_site") else given.get("edit_password") or None
    return SiteChanges(
        agent=given.get("agent") or None,
        daily_cap_usd=cap,
        default_instruction=given.get("default_instruction"),
        approver=given["approver"].lower() if "approver" in given else None,
        wishes=wishes,
        edit_password=password,
        seen=given.get("seen", ""),
    )


def _sentence(problem: Permanent | Transient) -> str:
    words = str(problem)
    return f"{words[:1].upper()}{words[1:]}."  # not `capitalize`: the rest has names


def _email_id(request: Request) -> str:
    email_id: str = request.path_params["email_id"]
    if not EMAIL_ID.fullmatch(email_id):
        raise HTTPException(404, "There is no such mail.")
    return email_id


def _user(request: Request) -> str:
    """The signed-in user; on a page without a login, the operator of this machine."""
    user = getattr(request.state, "user", None)
    return user.name if user else "operator"


def _domain(text: str) -> str:
    try:
        name: str = host_name().read(text.strip())
    except ValueError as problem:
        raise HTTPException(409, "This is no domain; write it like www.example.com.") from problem
    return name


def _address(text: str) -> str:
    if not re.fullmatch(r"[^@\s<>]{1,64}@[^@\s<>]{1,255}", text.strip()):
        raise Permanent("this is no mail address")
    return text.strip()


def _wanted(request: Request) -> MailFilter:
    asked = request.query_params
    state, sender, project, text, user = (
        asked.get(name, "").strip()[:200] for name in ("state", "sender", "project", "q", "user")
    )
    since, until = _day(asked.get("since", "")), _day(asked.get("until", ""))
    known = state if state in list(MailState) else ""
    return MailFilter(known, sender, project, since, until and until + timedelta(days=1), text, user)


def _day(text: str) -> datetime | None:
    """The beginning of a day here; None for anything else."""
    try:
        return datetime.fromisoformat(text).astimezone() if DAY.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def _page(request: Request) -> int:
    asked = request.query_params.get("page", "1")
    return max(1, min(int(asked), 100_000)) if asked.isdecimal() and len(asked) < 7 else 1


async def _fields(request: Request) -> Mapping[str, str]:
    fields = await read_fields(request, MAX_FIELDS_BYTES)
    return {name: text.replace("\r\n", "\n") for name, text in fields.items()}


async def _back(request: Request, otherwise: str) -> Response:
    """To the page on which the form was; never to another site. Read before the form is done, as it may be refused."""
    back = (await _fields(request)).get("back", "")
    return RedirectResponse(own_path(back, otherwise), status_code=303)
