"""Write as a customer: a form, filled in by an example or as a reply, and the mail that it sends."""

from __future__ import annotations

import re
import smtplib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from email.utils import getaddresses, make_msgid
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Message

from webordinary.entrypoints.dashboard.mail_view import reply_message
from webordinary.entrypoints.dashboard.ports import Dashboard, Example, Readers, Templates
from webordinary.mail.addresses import with_token
from webordinary.mail.write import CustomerMail, OutgoingFile, write_mail
from webordinary.model.errors import WebOrdinaryError, reason_of
from webordinary.model.snapshot import MailDetail

MAX_SUBJECT = 300
MAX_TEXT = 200_000
MAX_FILES = 10
MAX_UPLOAD_BYTES = 20_000_000
MAX_REFERENCES = 20
_MEDIA_TYPE = re.compile(r"(image|audio|video|application|text|font)/[a-z0-9.+-]{1,100}")


def answering(detail: MailDetail, mailbox: str) -> CustomerMail:
    """A customer's reply, addressed as a mail program would: to the newest answer, or to the mail itself."""
    subject = detail.summary.subject or ""
    known = [*detail.text.references, detail.text.message_id] if detail.text else []
    recipient = mailbox
    if detail.replies:
        newest = detail.replies[-1]
        message = reply_message(newest)
        known.append(newest.message_id)
        recipient = _address(str(message.get("Reply-To") or message.get("From") or "")) or mailbox
    references = list(dict.fromkeys(map(_bracketed, known)))[-MAX_REFERENCES:]
    return CustomerMail(
        sender=detail.summary.sender,
        recipient=recipient,
        subject=subject if subject.lower().startswith("re:") else f"Re: {subject}",
        text="",
        references=references,
        in_reply_to=references[-1] if references else "",
    )


def _address(header: str) -> str:
    found = [address for _, address in getaddresses([header]) if "@" in address]
    return found[0] if len(found) == 1 else ""


def _bracketed(message_id: str) -> str:
    return f"<{message_id.strip().strip('<>')}>"


MAX_BODY_BYTES = MAX_UPLOAD_BYTES + 1_000_000
_TOO_LARGE = f"The files are too large together; at most {MAX_UPLOAD_BYTES // 1_000_000} MB can be sent."


@dataclass(frozen=True, slots=True)
class MailForm:
    """The content of the form: a mail and its origin. `example` counts from 1; 0 means none."""

    letter: CustomerMail
    example: int = 0
    reply_to: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """The fields of the form; `complete` if the form was submitted."""

    sender: str = ""
    subject: str = ""
    text: str = ""
    reply_to: str = ""
    example: int = 0
    files: tuple[OutgoingFile, ...] = ()
    complete: bool = False


async def read_form(request: Request) -> Sent:
    """Read the submitted form; a body over the limit is refused while it arrives."""
    bounded = Request(request.scope, _Bounded(request))
    async with bounded.form(max_files=MAX_FILES + 1, max_fields=20, max_part_size=4 * MAX_TEXT) as form:
        example = _text(form, "example")
        return Sent(
            sender=_text(form, "from").strip(),
            subject=_printable(_text(form, "subject"))[:MAX_SUBJECT],
            text=_text(form, "text").replace("\r\n", "\n"),
            reply_to=_text(form, "reply_to"),
            example=int(example) if example.isdecimal() and len(example) < 4 else 0,
            files=await _files(form),
            complete=True,
        )


def check(draft: MailForm, senders: Sequence[str]) -> MailForm:
    """Set `problem` to the first reason that prevents sending; empty if there is none."""
    letter = draft.letter
    size = sum(len(file.data) for file in letter.files)
    problems = (
        (letter.sender not in senders, "Choose one of the known senders."),
        (not letter.text.strip() and not letter.subject.strip(), "Write what should change."),
        (len(letter.text) > MAX_TEXT, f"The text is too long; at most {MAX_TEXT:,} characters."),
        (len(letter.files) > MAX_FILES, f"Too many files; at most {MAX_FILES} go with one mail."),
        (size > MAX_UPLOAD_BYTES, _TOO_LARGE),
    )
    return replace(draft, problem=next((words for wrong, words in problems if wrong), ""))


class _Bounded:
    """Counts a body while it arrives: a Content-Length may be missing or wrong."""

    def __init__(self, request: Request) -> None:
        self._receive, self._left = request.receive, MAX_BODY_BYTES

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise HTTPException(413, _TOO_LARGE)
        return message


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


async def _files(form: FormData) -> tuple[OutgoingFile, ...]:
    uploads = [u for u in form.getlist("files") if isinstance(u, UploadFile) and u.filename]
    return tuple([OutgoingFile((u.filename or "")[:200], _media_type(u), await u.read()) for u in uploads])


def _media_type(upload: UploadFile) -> str:
    given = upload.content_type or ""
    return given if _MEDIA_TYPE.fullmatch(given) else "application/octet-stream"


EMAIL_ID = re.compile(r"[0-9a-f]{64}")


class WritePages:
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
        """Send the mail and go to its page, or show the form again with the problem."""
        draft = await self._readers.look(self._draft, await read_form(request))
        if not draft.problem:
            try:
                email_id = await self._readers.look(self._post, draft.letter)
                return RedirectResponse(f"/mails/{email_id}", status_code=303)
            except (OSError, smtplib.SMTPException, ValueError, WebOrdinaryError) as problem:
                draft = replace(draft, problem=f"The mail was not accepted: {reason_of(problem)}")
                return await self._form(draft, 502)
        return await self._form(draft, 400)

    def _post(self, letter: CustomerMail) -> str:
        named = replace(letter, message_id=make_msgid(domain="customer.example"))
        return self._d.send_mail(write_mail(named, self._d.clock()), letter.sender, letter.recipient)

    def _draft(self, sent: Sent) -> MailForm:
        """A mail from the fields of the form; the headers of a reply come from the mail that it answers."""
        entries = self._d.overview.senders()
        senders = [sender.address for sender in entries]
        author, _, site = sent.sender.partition(" ")  # the name of the site is there if its person has several
        detail = self._d.overview.mail(sent.reply_to) if EMAIL_ID.fullmatch(sent.reply_to) else None
        if detail is not None:
            basis = answering(detail, self._d.mailbox)
        else:
            basis = CustomerMail(next(iter(senders), ""), self._d.mailbox, "", "")
        example = self._example(sent.example)
        letter = replace(
            basis,
            sender=author or basis.sender,
            recipient=basis.recipient if detail or not site else with_token(self._d.mailbox, site),
            subject=sent.subject or basis.subject,
            text=sent.text,
            files=(*sent.files, *(example.files if example else ())),
        )
        draft = MailForm(letter, sent.example if example else 0, sent.reply_to if detail else "")
        known = not site or site in {one.key.project_id for one in entries if one.address == author}
        return check(draft, senders if known else ()) if sent.complete else draft

    def _example(self, number: int) -> Example | None:
        return self._d.examples[number - 1] if 0 < number <= len(self._d.examples) else None

    async def _form(self, draft: MailForm, status: int = 200) -> Response:
        senders = await self._readers.look(self._d.overview.senders)
        sites = Counter(sender.address for sender in senders)
        values: dict[str, Any] = {"draft": draft, "senders": senders, "sites": sites, "examples": self._d.examples}
        values["several_sites"] = max(sites.values(), default=0) > 1
        return self._templates.page("write.html", status, None, **values)
