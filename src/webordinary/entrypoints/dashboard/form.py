"""The form "write as a customer": read with bounds, and checked before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from webordinary.entrypoints.dashboard.compose import MAX_FILES, MAX_TEXT, MAX_UPLOAD_BYTES, Letter
from webordinary.entrypoints.dashboard.ports import File

MAX_BODY_BYTES = MAX_UPLOAD_BYTES + 1_000_000
_TOO_LARGE = f"The files are too large together; at most {MAX_UPLOAD_BYTES // 1_000_000} MB can be sent."


@dataclass(frozen=True, slots=True)
class Draft:
    """What the form holds: a letter, and where it came from. `example` counts from 1, 0 means none."""

    letter: Letter
    example: int = 0
    reply_to: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """The form's fields, before anything is made of them; `complete` when it was really sent."""

    sender: str = ""
    subject: str = ""
    text: str = ""
    reply_to: str = ""
    example: int = 0
    files: tuple[File, ...] = ()
    complete: bool = False


async def read_form(request: Request) -> Sent:
    """Read what the browser sent; refuse more than a mail can carry, while it arrives."""
    bounded = Request(request.scope, _Bounded(request))
    async with bounded.form(max_files=MAX_FILES + 1, max_fields=20, max_part_size=4 * MAX_TEXT) as form:
        example = _text(form, "example")
        return Sent(
            sender=_text(form, "from").strip(),
            subject=_text(form, "subject"),
            text=_text(form, "text").replace("\r\n", "\n"),
            reply_to=_text(form, "reply_to"),
            example=int(example) if example.isdecimal() and len(example) < 4 else 0,
            files=await _files(form),
            complete=True,
        )


def check(draft: Draft, senders: Sequence[str]) -> Draft:
    """Say what keeps a draft from being sent, if anything does."""
    letter = draft.letter
    size = sum(len(file.content) for file in letter.files)
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


async def _files(form: FormData) -> tuple[File, ...]:
    uploads = [u for u in form.getlist("files") if isinstance(u, UploadFile) and u.filename]
    return tuple([File(u.filename or "", u.content_type or "", await u.read()) for u in uploads])
