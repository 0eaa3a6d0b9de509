from __future__ import annotations

from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest

from tests.unit.mail.letters import NOON, SCOTT, parsed
from webordinary.mail.parsing.commands import own_words, reply_subject
from webordinary.mail.parsing.message import parse
from webordinary.mail.replies.answers import (
    Answer,
    Excerpt,
    Link,
    Paragraph,
    answer_job,
    choose_project,
    gave_up,
    not_readable,
    report_status,
)
from webordinary.mail.replies.compose import as_text, compose, references
from webordinary.model.jobs import JobOutcome, JobResult
from webordinary.model.mail import Command, ParsedMail, RefusedAttachment, Reply

DONE = JobResult(
    "The title is now “Spring Sale”.",
    commit="abc",
    url="http://edit.amelia.localhost:8080/",
    changed_files=("index.html",),
)


def replied(answer: Answer, mail: ParsedMail | None = None) -> Reply:
    return compose(answer, email_id="e1", mail=mail or parsed(), mailbox="edit@localhost", sent_at=NOON)


def read(reply: Reply) -> EmailMessage:
    message = message_from_bytes(reply.raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def bodies(reply: Reply) -> tuple[str, str]:
    text, html = (read(reply).get_body((kind,)) for kind in ("plain", "html"))
    assert text
    assert html
    return text.get_content(), html.get_content()


def test_a_reply_stands_in_the_customers_thread() -> None:
    mail = parsed(subject="AW: Re: Größe", references=("<r@x>", "<0@x>"), in_reply_to=("<0@x>",))
    message = read(replied(answer_job(mail, JobOutcome.SUCCEEDED, DONE), mail))
    assert message["In-Reply-To"] == "<1@example.com>"
    assert message["References"].split() == ["<r@x>", "<0@x>", "<1@example.com>"]
    assert message["Subject"] == "Re: Größe"
    assert (message["From"], message["To"]) == ("WebOrdinary <edit@localhost>", SCOTT)
    assert message["Auto-Submitted"] == "auto-replied"
    assert message["Date"].datetime == NOON


def test_a_reply_asks_for_answers_to_its_thread() -> None:
    answer = answer_job(parsed(), JobOutcome.SUCCEEDED, DONE)
    reply = compose(
        answer, email_id="e1", mail=parsed(), mailbox="edit@localhost", sent_at=NOON, thread_id="0123456789abcdef"
    )
    assert read(reply)["Reply-To"] == "WebOrdinary <edit+0123456789abcdef@localhost>"
    assert reply.thread_id == "0123456789abcdef"
    assert read(replied(answer))["Reply-To"] is None


def test_a_reply_to_an_international_domain_names_it_as_the_dns_does() -> None:
    mail = parsed(sender="ann@bücher.example")
    reply = replied(gave_up(mail), mail)
    assert read(reply)["To"] == "ann@xn--bcher-kva.example"
    assert reply.recipient == "ann@bücher.example"


def test_composing_twice_gives_the_same_bytes() -> None:
    answer = answer_job(parsed(), JobOutcome.SUCCEEDED, DONE)
    assert replied(answer) == replied(answer)
    other = compose(answer, email_id="e2", mail=parsed(), mailbox="edit@localhost", sent_at=NOON)
    assert other.message_id != replied(answer).message_id


def test_success_says_what_changed_where_to_look_and_how_to_take_it_back() -> None:
    for body in bodies(replied(answer_job(parsed(), JobOutcome.SUCCEEDED, DONE))):
        assert "Spring Sale" in body
        assert "http://edit.amelia.localhost:8080/" in body
        assert "index.html" in body
        assert "undo" in body
        assert "change the title" in body


def test_nobody_takes_the_edit_site_for_the_public_one() -> None:
    edit, undo = (answer_job(parsed(command=one), JobOutcome.SUCCEEDED, DONE) for one in (Command.EDIT, Command.UNDO))
    assert (edit.headline, undo.headline) == ("Done on your edit site", "Taken back on your edit site")
    for answer in (edit, undo):
        assert Link("See it on your edit site", DONE.url or "") in answer.blocks
    text, _ = bodies(replied(edit))
    assert "Reply “publish”, and your public site shows it, too." in " ".join(text.split())
    public = JobResult("Your public site now shows what the edit site shows.", "abc", "http://amelia.localhost:8080/")
    promoted = answer_job(parsed(command=Command.PUBLISH), JobOutcome.SUCCEEDED, public)
    assert promoted.headline == "Your public site is up to date"
    assert Link("See it on your public site", "http://amelia.localhost:8080/") in promoted.blocks


def test_an_answer_without_a_change_is_headed_as_one() -> None:
    answer = answer_job(parsed(), JobOutcome.SUCCEEDED, JobResult("You can ask for titles and photos.", cost_usd=0.02))
    assert answer.headline == "Here is my answer"
    text, _ = bodies(replied(answer))
    assert "Nothing was changed on your site." in text
    assert "This answer cost $0.02." in text
    assert "publish" not in text
    assert "Done" not in text


def test_an_undo_is_not_offered_an_undo() -> None:
    text, _ = bodies(replied(answer_job(parsed(command=Command.UNDO), JobOutcome.SUCCEEDED, DONE)))
    assert text.startswith("Taken back")
    assert "one word" not in text


def test_an_undo_that_found_nothing_does_not_say_that_it_took_something_back() -> None:
    answer = answer_job(parsed(command=Command.UNDO), JobOutcome.SUCCEEDED, JobResult("There is nothing to undo."))
    assert answer.headline == "Nothing to undo"


def test_a_question_is_asked() -> None:
    result = JobResult("I changed nothing.", question="Which title do you mean?")
    text, _ = bodies(replied(answer_job(parsed(), JobOutcome.FAILED, result)))
    assert "Which title do you mean?" in text


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (JobOutcome.FAILED, "Nothing was changed"),
        (JobOutcome.TIMED_OUT, "took too long"),
        (JobOutcome.CANCELLED, "Stopped"),
        (JobOutcome.DEAD, "a person will look at it"),
    ],
)  # fmt: skip
def test_what_did_not_work_is_said_honestly(outcome: JobOutcome, words: str) -> None:
    text, html = bodies(replied(answer_job(parsed(), outcome, JobResult("", error="Traceback secret"))))
    assert words in " ".join(text.split())
    assert "Traceback" not in text + html


def test_refused_files_are_named_with_their_reason() -> None:
    refused = (RefusedAttachment("x.exe", "it is a program"),)
    text, _ = bodies(replied(answer_job(parsed(), JobOutcome.SUCCEEDED, DONE, refused)))
    assert "x.exe: it is a program" in text


def test_left_out_history_is_mentioned() -> None:
    text, _ = bodies(replied(answer_job(parsed(elided="> a\n> b"), JobOutcome.SUCCEEDED, DONE)))
    assert "2 lines of quoted mail" in " ".join(text.split())


def test_what_others_wrote_is_escaped() -> None:
    mail = parsed(text="<script>alert('x')</script>\nline two")
    result = replace(DONE, summary="<img src=x>", url="javascript:alert(1)")
    _, html = bodies(replied(answer_job(mail, JobOutcome.SUCCEEDED, result), mail))
    assert "<script" not in html
    assert "<img" not in html
    assert "javascript" not in html


def test_a_subject_cannot_smuggle_in_a_header() -> None:
    mail = parsed(subject="x\r\nBcc: eve@example.com", message_id="<1@x>\r\nBcc: eve@x")
    message = read(replied(gave_up(mail), mail))
    assert message["Bcc"] is None
    assert "In-Reply-To" not in message


def test_everything_fits_on_the_wire() -> None:
    mail = parsed(subject="ü" * 400, text="z" * 5000 + "\n.\n" + "🎉" * 2000)
    lines = replied(answer_job(mail, JobOutcome.SUCCEEDED, DONE), mail).raw.split(b"\r\n")
    assert max(len(line) for line in lines) <= 998
    assert all(line.isascii() and b"\n" not in line for line in lines)


def test_lists_are_bounded() -> None:
    result = replace(DONE, changed_files=tuple(f"{n}.html" for n in range(50)))
    text, _ = bodies(replied(answer_job(parsed(), JobOutcome.SUCCEEDED, result)))
    assert "and 30 more" in text


def test_references_keep_the_root_and_the_newest() -> None:
    ids = tuple(f"<{n}@x>" for n in range(100))
    kept = references(parsed(references=ids))
    assert (len(kept), kept[0], kept[-1]) == (20, "<0@x>", "<1@example.com>")


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("Title", "Re: Title"),
        ("Re: RE: Title", "Re: Title"),
        ("", "Re: your website"),
        ("AW[2]: x", "Re: x"),
        ("Reply", "Re: Reply"),
    ],
)
def test_the_subject_is_answered_once(subject: str, expected: str) -> None:
    assert reply_subject(subject) == expected


def test_the_subject_of_an_answer_is_nobodys_wish() -> None:
    assert own_words(" Change the title ") == "Change the title"
    assert own_words("Re: Change the title") == ""
    answer = answer_job(parsed(subject="Re: Change the title", text=""), JobOutcome.SUCCEEDED, DONE)
    assert not [block for block in answer.blocks if isinstance(block, Excerpt)]


def test_the_other_answers_say_what_to_do() -> None:
    assert "edit+bakery@localhost" in bodies(replied(choose_project(("bakery",), ("edit+bakery@localhost",))))[0]
    for body in bodies(replied(choose_project(("bakery",), ("edit+bakery@localhost",), "bakry"))):
        assert "no site “bakry”" in body
        assert "write back to this mail" not in body
    assert "Nothing is in work" in bodies(replied(report_status(())))[0]
    assert "amelia" in bodies(replied(report_status(("amelia: queued",))))[1]
    assert "too many parts" in bodies(replied(not_readable("too many parts")))[0]


def test_our_own_reply_is_known_as_a_machines() -> None:
    reply = replied(Answer("Done", (Paragraph("x"),)))
    assert parse(reply.raw).automatic


def test_the_reply_to_a_publish_lists_what_went_public_and_what_did_not() -> None:
    result = JobResult(
        "This is on your public site now.", "abc", "http://x/", published=("A title (asked by you)",),
        waiting=("A photo (asked by bob)",),
    )  # fmt: skip
    answer = answer_job(replace(parsed(), command=Command.PUBLISH), JobOutcome.SUCCEEDED, result)
    text = as_text(answer)
    assert answer.headline == "Published"
    for line in ("On your public site now", "A title (asked by you)", "Not public yet", "A photo (asked by bob)"):
        assert line in text
    assert "publish all" in text
    whole = answer_job(replace(parsed(), command=Command.PUBLISH), JobOutcome.SUCCEEDED, replace(result, waiting=()))
    assert whole.headline == "Your public site is up to date"
    assert "Not public yet" not in as_text(whole)
