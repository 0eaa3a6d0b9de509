"""The pages on which an operator acts: what needs a person, and the sites. An action is a POST and leads back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webordinary.entrypoints.dashboard.login import read_fields
from webordinary.entrypoints.dashboard.ports import Dashboard, Readers, Templates
from webordinary.entrypoints.dashboard.text import moment
from webordinary.entrypoints.dashboard.views import mail_line
from webordinary.entrypoints.dashboard.write import EMAIL_ID
from webordinary.jobs.site_files import Stage
from webordinary.model.errors import Permanent, Transient
from webordinary.operations.console import Console
from webordinary.operations.mails import STATES, MailFilter

MOST_FOUND = 100
T = TypeVar("T")


class ActionPages:
    """One method per page or action; blocking work runs in the reader threads."""

    def __init__(self, dashboard: Dashboard, readers: Readers, templates: Templates) -> None:
        self._d, self._readers, self._templates = dashboard, readers, templates

    async def attention(self, request: Request) -> Response:
        """Everything that waits for the operator."""
        waiting, now = await self._do(self._console.needs_person), self._d.clock()
        return self._templates.page(
            "attention.html",
            held=[(mail, moment(mail.received_at, now)) for mail in waiting.held],
            not_understood=[(mail, moment(mail.received_at, now)) for mail in waiting.not_understood],
            letters=[(letter, moment(letter.died_at, now)) for letter in waiting.dead_letters],
            replies=[(reply, moment(reply.written_at, now)) for reply in waiting.undelivered],
        )

    async def redrive(self, request: Request) -> Response:
        """Run a given-up mail once more."""
        await self._do(self._console.redrive, request.path_params["letter_id"])
        return RedirectResponse("/attention", status_code=303)

    async def drop(self, request: Request) -> Response:
        """Forget a dead letter."""
        await self._do(self._console.drop, request.path_params["letter_id"])
        return RedirectResponse("/attention", status_code=303)

    async def mails(self, request: Request) -> Response:
        """The mails that fit a search."""
        asked, now = request.query_params, self._d.clock()
        state, sender, project = (asked.get(name, "").strip()[:100] for name in ("state", "sender", "project"))
        wanted = MailFilter(state, sender, project)
        found = await self._do(self._console.find, wanted, MOST_FOUND)
        lines = [mail_line(mail, now) for mail in found]
        return self._templates.page("mail_list.html", lines=lines, wanted=wanted, states=STATES, most=MOST_FOUND)

    async def release(self, request: Request) -> Response:
        """Let a held mail act for its sender."""
        await self._do(self._console.release, _email_id(request), _user(request))
        return RedirectResponse("/attention", status_code=303)

    async def answer(self, request: Request) -> Response:
        """Write to the customer in the conversation of a mail."""
        text = (await read_fields(request)).get("text", "")
        await self._do(self._console.answer, _email_id(request), text, _user(request))
        return RedirectResponse("/attention", status_code=303)

    async def drop_held(self, request: Request) -> Response:
        """Never do a held mail."""
        await self._do(self._console.drop_held, _email_id(request), _user(request))
        return RedirectResponse("/attention", status_code=303)

    async def send_again(self, request: Request) -> Response:
        """Send the undelivered replies of a mail again."""
        await self._do(self._console.send_again, _email_id(request))
        return RedirectResponse("/attention", status_code=303)

    async def sites(self, request: Request) -> Response:
        """Every site."""
        return self._templates.page("site_list.html", projects=await self._do(self._console.sites))

    async def site(self, request: Request) -> Response:
        """One site: state, people, releases."""
        site, now = await self._do(self._console.site, request.path_params["project_id"]), self._d.clock()
        if site is None:
            raise HTTPException(404, "There is no such site.")
        made = {one.release: moment(one.made_at, now) for kept in site.releases.values() for one in kept}
        return self._templates.page("site.html", site=site, made=made, stages=list(Stage))

    async def pause(self, request: Request) -> Response:
        """Stop the work on a site for now."""
        return await self._paused(request, paused=True)

    async def resume(self, request: Request) -> Response:
        """Go on with a paused site."""
        return await self._paused(request, paused=False)

    async def roll_back(self, request: Request) -> Response:
        """Show an earlier release again."""
        project_id, release = request.path_params["project_id"], request.path_params["release"]
        stage = request.path_params["stage"]
        if stage not in list(Stage):
            raise HTTPException(404, "There is no such site.")
        await self._do(self._console.roll_back, project_id, Stage(stage), release)
        return RedirectResponse(f"/sites/{project_id}", status_code=303)

    async def _paused(self, request: Request, *, paused: bool) -> Response:
        project_id = request.path_params["project_id"]
        await self._do(lambda: self._console.pause(project_id, paused=paused))
        return RedirectResponse(f"/sites/{project_id}", status_code=303)

    @property
    def _console(self) -> Console:
        if self._d.console is None:
            raise HTTPException(404, "There are no actions here.")
        return self._d.console

    async def _do(self, function: Callable[..., T], *arguments: object) -> T:
        try:
            return await self._readers.look(function, *arguments)
        except Permanent as problem:
            raise HTTPException(409, f"{problem}.".capitalize()) from problem
        except Transient as problem:
            raise HTTPException(503, f"{problem}. Try it again in a moment.") from problem


def _email_id(request: Request) -> str:
    email_id: str = request.path_params["email_id"]
    if not EMAIL_ID.fullmatch(email_id):
        raise HTTPException(404, "There is no such mail.")
    return email_id


def _user(request: Request) -> str:
    """The signed-in user; on a page without a login, the operator of this machine."""
    user = getattr(request.state, "user", None)
    return user.name if user else "operator"
