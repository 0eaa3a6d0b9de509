"""Renders every kind of reply as mail programs show it: two widths, light and dark, into docs/images/replies-*.png.

    python -m docs.gallery

It composes each reply with the code that answers customers, and photographs its HTML with chromium.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from importlib.resources import as_file, files
from pathlib import Path
from zoneinfo import ZoneInfo

from PIL import Image, ImageChops

from webordinary.adapters.files.screenshots import find_browser
from webordinary.jobs.report import of_rival_files
from webordinary.mail.replies import answers
from webordinary.mail.replies.answers import Answer, PersonStatus
from webordinary.mail.replies.compose import compose
from webordinary.mail.replies.languages import catalogues
from webordinary.mail.replies.rendering import Brand
from webordinary.model.jobs import NOT_UNDERSTOOD, ChangeLine, JobOutcome, JobResult
from webordinary.model.mail import (
    Attachment,
    AttachmentKind,
    Command,
    Instruction,
    ParsedMail,
    RefusedAttachment,
)
from webordinary.model.projects import SenderRole

IMAGES = Path(__file__).parent / "images"
WIDTHS = {"wide": 680, "phone": 390}
_AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
_TALLEST = 2_400
_MAIL = ParsedMail(
    message_id="<1@example.com>", sender="scott@example.com", sender_name="Scott", subject="Spring", sent_at=_AT,
    in_reply_to=(), references=(), text="Please set the title of the homepage to “Spring Sale”.", elided="",
    command=Command.EDIT, attachment_count=0, automatic=False,
)  # fmt: skip
_DONE = JobResult(
    "Changed the title of the homepage to “Spring Sale”.", "abc", "https://edit.amelia.example/",
    changed_files=("index.html",), pages_total=4, pages_changed=1, is_checked=True,
    changed_pages=(("index.html", "Spring Sale · Amelia Pottery"),),
)  # fmt: skip
_WISH = "British spelling"
_INSTRUCTION = Instruction("Yes", "", "scott@example.com", Command.EDIT)


def replies() -> dict[str, tuple[ParsedMail, Answer]]:
    """Every kind of answer, each with the mail that it answers."""
    done = answers.answer_job(_MAIL, JobOutcome.SUCCEEDED, _DONE)
    german = replace(_MAIL, text="Bitte ändern Sie den Titel der Startseite in „Spring Sale“. Danke!")
    publish = replace(_MAIL, command=Command.PUBLISH, text="Looks great, please publish it. Thanks!")
    public = JobResult(
        "This is on your public site now.", "abc", "https://amelia.example/", pages_total=4, pages_changed=1,
        published=(ChangeLine("Changed the title of the homepage to “Spring Sale”.", "scott"),), is_public=True,
        waiting=(ChangeLine("Added the photo to the about page.", "anna"),), is_checked=True,
        changed_pages=_DONE.changed_pages,
    )  # fmt: skip
    undone = JobResult("Undone: Changed the title of the homepage to “Spring Sale”.", "abd", _DONE.url)
    question = (
        "“1,260 degrees” is in 4 places:\n1. the homepage: “…Fired at 1,260 degrees, one shelf…”\n"
        "2. the about page: “…Fired at 1,260 degrees, one shelf…”\nWhich one do you mean? "
        "Reply with its number or its page, or with “everywhere”."
    )
    lost = (
        "I did not understand “make it pop”, so nothing was changed.\n\nI can do exact, simple changes. For example:\n"
        "- change the homepage title to Spring Sale\n- change “open on Mondays” to “open every day”\n"
        "- add this photo to the homepage (and attach it)"
    )
    when = answers.dated(datetime(2026, 12, 1, 8, tzinfo=UTC), ZoneInfo("Europe/London"))
    photos = [Attachment(name, "image/jpeg", AttachmentKind.IMAGE, 1, name) for name in ("kiln.jpg", "shop.jpg")]
    rivals = of_rival_files(replace(_INSTRUCTION, attachments=(photos[1],), rivals=(photos[0],))).result
    refused = (RefusedAttachment("film.mov", "we take photos and documents, and this is a film"),)
    flawed = replace(_DONE, is_checked=True, checks=(("link", "Spring Sale", "shop.html"),))
    return {
        "done": (_MAIL, replace(done, pictures=_pictures())),
        "done-german": (german, answers.answer_job(german, JobOutcome.SUCCEEDED, _DONE)),
        "done-flawed": (_MAIL, answers.answer_job(_MAIL, JobOutcome.SUCCEEDED, flawed, refused)),
        "published": (publish, answers.answer_job(publish, JobOutcome.SUCCEEDED, public, reader="scott")),
        "undone": (_of(Command.UNDO), answers.answer_job(_of(Command.UNDO), JobOutcome.SUCCEEDED, undone)),
        "question": (_MAIL, _job(JobOutcome.SUCCEEDED, JobResult(question, question=question))),
        "not-understood": (_MAIL, _job(JobOutcome.FAILED, JobResult(lost, error=NOT_UNDERSTOOD))),
        "answered": (_MAIL, _job(JobOutcome.SUCCEEDED, JobResult("Your homepage has three photos."))),
        "stopped": (_of(Command.STOP), answers.stopped(1)),
        "status": (
            _of(Command.STATUS),
            answers.report_status(
                PersonStatus(
                    ("Spring: in work now",),
                    (_WISH,),
                    ("New photos",),
                    ("Changed the title of the homepage to “Spring Sale”.",),
                    ("Opening hours",),
                )
            ),
        ),
        "later": (_MAIL, answers.later(_MAIL, JobResult(""), when)),
        "until": (_MAIL, answers.until(done, when)),
        "put-back": (
            _MAIL,
            answers.rolled_back(public.published, (), public.published, "scott", SenderRole.BOTH, is_edit=False),
        ),
        "which-file": (_MAIL, _job(JobOutcome.SUCCEEDED, rivals)),
        "not-done": (_MAIL, answers.not_done(("Opening hours", "New photos"))),
        "waiting": (_MAIL, answers.waiting(_MAIL, 2)),
        "held": (_MAIL, answers.held(_MAIL, paused=True)),
        "given-up": (_MAIL, answers.gave_up(_MAIL)),
        "too-many": (_MAIL, answers.too_many(_MAIL)),
        "which-site": (_MAIL, answers.choose_project(("amelia", "bakery"), ("edit+amelia@x", "edit+bakery@x"))),
        "confirm": (_MAIL, answers.ask_sender("Spring", _MAIL)),
        "approval": (replace(_MAIL, sender="owner@example.com"), answers.ask_approval(done, _MAIL)),
        "not-theirs": (publish, answers.not_theirs(publish)),
        "remembered": (_MAIL, answers.told_wish(Command.REMEMBER, _WISH, (_WISH,), exact_only=False)),
        "by-operator": (_MAIL, answers.by_operator("I made the button rounder by hand.\n\nIs it as you like it?")),
    }


def _job(outcome: JobOutcome, result: JobResult) -> Answer:
    return answers.answer_job(_MAIL, outcome, result)


def _of(command: Command) -> ParsedMail:
    return replace(_MAIL, command=command, text=str(command))


def _pictures() -> tuple[bytes, ...]:
    """The sample's homepage before and after, as a worker takes them."""
    with as_file(files("webordinary.operations.sample") / "amelia") as site, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in site.rglob("*"):
            if file.is_file() and file.suffix != ".py":
                target = folder / file.relative_to(site)
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(file.read_bytes())
        page = folder / "index.html"
        before = _shot(page, 1000, 620)
        page.write_text(page.read_text().replace("Pots for every day", "Spring Sale"))
        return before, _shot(page, 1000, 620)


def html_of(mail: ParsedMail, answer: Answer) -> str:
    """The HTML of a reply, its pictures inside."""
    brand = Brand(catalogues=catalogues())
    reply = compose(
        answer,
        email_id="e",
        mail=mail,
        mailbox="edit@amelia.example",
        sent_at=_AT,
        thread_id="0" * 16,
        brand=brand,
    )
    message = message_from_bytes(reply.raw, policy=default)
    assert isinstance(message, EmailMessage)
    body = message.get_body(("html",))
    assert body is not None
    html = str(body.get_content())
    for part in message.walk():
        if part["Content-ID"]:
            data = b64encode(part.get_payload(decode=True)).decode()  # type: ignore[arg-type]
            html = html.replace(f"cid:{part['Content-ID'].strip('<>')}", f"data:image/png;base64,{data}")
    return html


def _shot(page: Path, width: int, height: int, *, dark: bool = False) -> bytes:
    browser = find_browser()
    if browser is None:
        sys.exit("There is no chromium on this machine: install it first.")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "shot.png")
        # Headless chromium has a least width of 500 pixels: a narrow page is shown in a frame of its width.
        flags = ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/p",
            f"--window-size={width},{height}", f"--screenshot={target}", *flags, page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        return target.read_bytes()


def _sheet(bodies: dict[str, str], width: int, *, dark: bool, folder: Path) -> Image.Image:
    """All replies below each other, each cut to its height."""
    shown = []
    for name, html in bodies.items():
        page, frame = folder / f"{name}.html", folder / f"{name}-frame.html"
        page.write_text(html)
        frame.write_text(
            f'<!doctype html><meta charset=utf-8><meta name="color-scheme" content="light dark">'
            f'<body style="margin:0"><iframe src="{page.name}" style="border:0;width:{width}px;height:{_TALLEST}px">'
        )
        shot = Image.open(io.BytesIO(_shot(frame, max(width, 500), _TALLEST, dark=dark))).convert("RGB")
        shot = shot.crop((0, 0, width, _TALLEST))
        empty = Image.new("RGB", shot.size, shot.getpixel((1, _TALLEST - 1)))
        bottom = ImageChops.difference(shot, empty).getbbox()
        shown.append(shot.crop((0, 0, width, min(_TALLEST, (bottom[3] if bottom else 0) + 20))))
    return _columns(shown, 3 if width > 500 else 5)


def _columns(shown: list[Image.Image], count: int) -> Image.Image:
    heights, places = [0] * count, []
    for image in shown:
        column = heights.index(min(heights))
        places.append((column, heights[column]))
        heights[column] += image.height
    sheet = Image.new("RGB", (count * shown[0].width, max(heights)), shown[0].getpixel((1, 1)))
    for image, (column, top) in zip(shown, places, strict=True):
        sheet.paste(image, (column * image.width, top))
    return sheet


def main() -> None:
    """Write the sheets, and the first reply alone."""
    bodies = {name: html_of(mail, answer) for name, (mail, answer) in replies().items()}
    with tempfile.TemporaryDirectory() as name:
        for dark in (False, True):
            for kind, width in WIDTHS.items():
                sheet = _sheet(bodies, width, dark=dark, folder=Path(name))
                target = IMAGES / f"replies-{kind}-{'dark' if dark else 'light'}.png"
                sheet = sheet.resize((sheet.width * 3 // 4, sheet.height * 3 // 4), Image.Resampling.LANCZOS)
                sheet.quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)
                print(f"{target.name}: {sheet.width}x{sheet.height}, {target.stat().st_size // 1000} kB")  # noqa: T201
        first = _sheet({"done": bodies["done"]}, WIDTHS["wide"], dark=False, folder=Path(name))
        first = first.crop((0, 0, WIDTHS["wide"], first.height))
        first.quantize(128, dither=Image.Dither.NONE).save(IMAGES / "reply.png", optimize=True)


if __name__ == "__main__":
    main()
