"""Write as a customer: a form, filled in by an example or as a reply, and the mail that it sends."""

from __future__ import annotations

import re
import smtplib
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webordinary.entrypoints.dashboard.compose import Letter, answering, raw_mail
from webordinary.entrypoints.dashboard.form import Draft, Sent, check, read_form
from webordinary.entrypoints.dashboard.ports import Dashboard, Example
from webordinary.entrypoints.dashboard.reading import Readers
from webordinary.entrypoints.dashboard.rendering import Templates
from webordinary.model.errors import WebOrdinaryError, reason_of

EMAIL_ID = re.compile(r"[0-9a-f]{64}")


class Writing:
    """`GET /write` shows the form, `POST /mails` sends it through our own SMTP port like any other mail."""

    def __init__(self, dashboard: Dashboard, readers: Readers, templates: Templates) -> None:
        self._d, self._readers, self._templates = dashboard, readers, templates

    async def write(self, request: Request) -> Response:
        """The form: empty, from an example, or as a reply."""
        asked = request.query_params
        number = asked.get("example", "")
        wanted = Sent(
            text=asked.get("text", "")[:1000],
            reply_to=asked.get("reply_to", ""),
            example=int(number) if number.isdecimal() and len(number) < 4 else 0,
        )
        example = self._example(wanted.example)
        if example is not None:
            wanted = replace(wanted, subject=example.subject, text=example.text)
        return await self._form(await self._readers.look(self._draft, wanted))

    async def send(self, request: Request) -> Response:
        """Send what was written and go to its page, or show the form again with what was wrong."""
        draft = await self._readers.look(self._draft, await read_form(request))
        if not draft.problem:
            try:
                email_id = await self._readers.look(self._post, draft.letter)
                return RedirectResponse(f"/mails/{email_id}", status_code=303)
            except (OSError, smtplib.SMTPException, ValueError, WebOrdinaryError) as problem:
                draft = replace(draft, problem=f"The mail was not accepted: {reason_of(problem)}")
                return await self._form(draft, 502)
        return await self._form(draft, 400)

    def _post(self, letter: Letter) -> str:
        return self._d.send_mail(raw_mail(letter, self._d.clock()), letter.sender, letter.recipient)

    def _draft(self, sent: Sent) -> Draft:
        """A letter from the form's fields; a reply's headers come from the mail that it answers."""
        senders = [sender.address for sender in self._d.overview.senders()]
        detail = self._d.overview.mail(sent.reply_to) if EMAIL_ID.fullmatch(sent.reply_to) else None
        if detail is not None:
            basis = answering(detail, self._d.mailbox)
        else:
            basis = Letter(next(iter(senders), ""), self._d.mailbox)
        example = self._example(sent.example)
        letter = replace(
            basis,
            sender=sent.sender or basis.sender,
            subject=sent.subject or basis.subject,
            text=sent.text,
            files=(*sent.files, *(example.files if example else ())),
        )
        draft = Draft(letter, sent.example if example else 0, sent.reply_to if detail else "")
        return check(draft, senders) if sent.complete else draft

    def _example(self, number: int) -> Example | None:
        return self._d.examples[number - 1] if 0 < number <= len(self._d.examples) else None

    async def _form(self, draft: Draft, status: int = 200) -> Response:
        senders = await self._readers.look(self._d.overview.senders)
        return self._templates.page("write.html", status, draft=draft, senders=senders, examples=self._d.examples)
