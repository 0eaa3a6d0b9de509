from __future__ import annotations

import inspect
import re
from dataclasses import replace
from datetime import UTC
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest

from tests.photos import picture
from tests.unit.mail.letters import NOON, SCOTT, parsed
from webordinary.compose.steps import brand_of
from webordinary.config import Config
from webordinary.jobs import report
from webordinary.jobs.report import NO_LONGER_PUBLIC, NOT_YOURS, STILL_PUBLIC
from webordinary.mail.addresses import Mailbox, conversation_in
from webordinary.mail.confirm import ConfirmationAnswer, answer_in
from webordinary.mail.parsing.attachments import OFFICE_REFUSED, PDF_OPAQUE, PDF_REFUSED
from webordinary.mail.parsing.commands import ALL, BOTH, command_of, named_change, own_words, reply_subject
from webordinary.mail.parsing.message import parse
from webordinary.mail.parsing.photos import NO_HEIC, TOO_LARGE, UNREADABLE
from webordinary.mail.parsing.wishes import wish_in
from webordinary.mail.replies import answers
from webordinary.mail.replies.answers import (
    Answer,
    Excerpt,
    Link,
    Listing,
    Paragraph,
    PersonStatus,
    answer_job,
    choose_project,
    gave_up,
    not_readable,
    report_status,
)
from webordinary.mail.replies.compose import compose, references
from webordinary.mail.replies.languages import Catalogue, catalogues, language_of, own_catalogues
from webordinary.mail.replies.rendering import Brand, as_text, translated
from webordinary.model.errors import Permanent
from webordinary.model.jobs import NO_PHOTO, NOT_UNDERSTOOD, ChangeLine, JobOutcome, JobResult, Settlement
from webordinary.model.mail import (
    Attachment,
    AttachmentKind,
    Command,
    Instruction,
    ParsedMail,
    RefusedAttachment,
    Reply,
)
from webordinary.model.names import job_id_of
from webordinary.model.projects import SenderRole
from webordinary.pool.reconciler import STOPPED

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
    at_once = answer_job(parsed(), JobOutcome.SUCCEEDED, replace(public, is_public=True))
    assert at_once.headline == "Done and published"
    assert Link("See it on your public site", "http://amelia.localhost:8080/") in at_once.blocks


def test_an_answer_without_a_change_is_headed_as_one() -> None:
    answer = answer_job(parsed(), JobOutcome.SUCCEEDED, JobResult("You can ask for titles and photos.", cost_usd=0.02))
    assert answer.headline == "Here is my answer"
    text, _ = bodies(replied(answer))
    assert "Nothing was changed on your site." in text
    assert "cost" not in text
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
    assert "Nothing is in work" in bodies(replied(report_status(PersonStatus())))[0]
    assert "amelia" in bodies(replied(report_status(PersonStatus(("amelia: queued",)))))[1]
    assert "too many parts" in bodies(replied(not_readable("too many parts")))[0]


def test_our_own_reply_is_known_as_a_machines() -> None:
    reply = replied(Answer("Done", (Paragraph("x"),)))
    assert parse(reply.raw).automatic


def test_the_reply_to_a_publish_lists_what_went_public_and_what_did_not() -> None:
    result = JobResult(
        "This is on your public site now.", "abc", "http://x/", is_public=True,
        published=(ChangeLine("A title", "scott"),), waiting=(ChangeLine("A photo", "bob"),),
    )  # fmt: skip
    answer = answer_job(replace(parsed(), command=Command.PUBLISH), JobOutcome.SUCCEEDED, result, reader="scott")
    text = as_text(answer)
    assert answer.headline == "Published"
    for line in ("On your public site now", "A title (asked by you)", "Not public yet", "A photo (asked by bob)"):
        assert line in text
    assert "publish all" in text
    whole = answer_job(replace(parsed(), command=Command.PUBLISH), JobOutcome.SUCCEEDED, replace(result, waiting=()))
    assert whole.headline == "Published"
    assert "Not public yet" not in as_text(whole)


@pytest.mark.parametrize(
    ("result", "headline"),
    [
        (JobResult("This is on your public site now.", "abc", is_public=True), "Published"),
        (JobResult("No change of this conversation waits to be published."), "Your public site is up to date"),
        (JobResult("No change waits.", waiting=(ChangeLine("A photo", "bob"),)), "Nothing was published"),
    ],
)
def test_a_publish_is_headed_by_what_it_did(result: JobResult, headline: str) -> None:
    answer = answer_job(replace(parsed(), command=Command.PUBLISH), JobOutcome.SUCCEEDED, result)
    assert answer.headline == headline


PNG = picture("PNG")


def test_before_and_after_are_shown_inside_the_mail() -> None:
    answer = replace(answer_job(parsed(), JobOutcome.SUCCEEDED, DONE), pictures=(PNG, PNG))
    message = read(replied(answer))
    html = bodies(replied(answer))[1]
    pictures = [part for part in message.walk() if part.get_content_type() == "image/png"]
    assert [part.get_filename() for part in pictures] == ["before.png", "after.png"]
    for part in pictures:
        assert part.get_content_disposition() == "inline"
        assert f'src="cid:{part["Content-ID"].strip("<>")}"' in html
    assert message.get_content_type() == "multipart/alternative"


def test_buttons_write_a_command_into_the_conversation() -> None:
    mail = parsed(subject="Größe & Preis")
    answer = answer_job(mail, JobOutcome.SUCCEEDED, DONE)
    reply = compose(
        answer, email_id="5" * 64, mail=mail, mailbox="edit@localhost", sent_at=NOON, thread_id="0123456789abcdef"
    )
    links = re.findall(r'href="(mailto:[^"]+)"', bodies(reply)[1])
    assert len(links) == 2
    for link, word in zip(links, ("publish", "undo"), strict=True):
        found = urlsplit(unescape(link))
        to = unquote(found.path)
        assert to == f"edit+0123456789abcdef.{'5' * 20}@localhost"
        assert job_id_of("5" * 64) == job_id_of(conversation_in(Mailbox.parse("edit@localhost").token(to))[1])
        assert parse_qs(found.query) == {"subject": ["Re: Größe & Preis"], "body": [word]}
        assert "+" not in found.path + found.query  # some programs read it as a blank, some as itself
        assert command_of(word, "Re: x") == Command(word)


def test_a_button_of_a_mailbox_with_a_long_name_names_the_conversation_alone() -> None:
    mailbox = f"{'e' * 40}@localhost"
    answer = answer_job(parsed(), JobOutcome.SUCCEEDED, DONE)
    reply = compose(
        answer, email_id="5" * 64, mail=parsed(), mailbox=mailbox, sent_at=NOON, thread_id="0123456789abcdef"
    )
    links = re.findall(r'href="(mailto:[^"]+)"', bodies(reply)[1])
    assert unquote(urlsplit(unescape(links[0])).path) == f"{'e' * 40}+0123456789abcdef@localhost"


def test_an_editor_is_offered_no_publication() -> None:
    answer = answer_job(parsed(), JobOutcome.SUCCEEDED, DONE, role=SenderRole.EDITOR)
    assert answer.actions == (Command.UNDO,)
    bodies_of_editor = bodies(replied(answer))
    for body in bodies_of_editor:
        assert "publish" not in body
        assert "undo" in body


@pytest.mark.parametrize(
    ("text", "said", "button"),
    [
        ("Bitte ändern Sie die Überschrift.", "Titel geändert (die Startseite): „Spring Sale“.", "veröffentlichen"),
        ("Pouvez-vous changer le titre", "Titre de la page changé (la page d'accueil)\u00a0: «\u00a0Spring", "publier"),
        ("Por favor, cambie el título", "Título cambiado (la página de inicio): «Spring Sale».", "publicar"),
        ("Per favore cambi il titolo", "Titolo cambiato (la home page): «Spring Sale».", "pubblica"),
        ("Kunt u de titel van de pagina wijzigen?", "Titel veranderd (de startpagina): “Spring Sale”.", "publiceer"),
        ("Please change the title of the page", "Changed the title of the homepage to “Spring Sale”.", "publish"),
        ("xyz", "Changed the title of the homepage to “Spring Sale”.", "publish"),
    ],
)  # fmt: skip
def test_a_reply_is_in_the_language_of_the_mail(text: str, said: str, button: str) -> None:
    mail = parsed(text=text)
    result = replace(DONE, summary="Changed the title of the homepage to “Spring Sale”.")
    answer = answer_job(mail, JobOutcome.SUCCEEDED, result)
    reply = compose(
        answer,
        email_id="e1",
        mail=mail,
        mailbox="edit@localhost",
        sent_at=NOON,
        brand=Brand(catalogues=catalogues()),
    )
    plain, html = bodies(reply)
    assert said in plain
    assert said in unescape(html)
    assert quote(button) in html
    assert command_of(button, "Re: x") is Command.PUBLISH
    assert text in " ".join(plain.replace("> ", "").split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Added the paragraph “Zu.” to the contact page.\n\nThis is on your public site now.",
            "Absatz hinzugefügt (die Seite „contact“): „Zu.“.\n\nDas ist jetzt auf Ihrer öffentlichen Seite zu sehen.",
        ),
        (
            "Changed “A” to “B” on the pots page.\nChanged “C” to “D” on the homepage, the about page in 3 places.",
            "„A“ geändert in „B“ (die Seite „pots“).\n"
            "„C“ an 3 Stellen geändert in „D“ (die Startseite, die Seite „about“).",
        ),
    ],
)
def test_a_placeholder_ends_with_its_line_and_a_list_of_pages_is_said_page_by_page(text: str, said: str) -> None:
    german = next(one for one in own_catalogues() if one.language == "de")
    assert german.say(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "I found a list in 2 places:\n1. the menu page: begins with “Soupe, 9 €”",
        "I found a photo in 6 places:\n1. the homepage: begins with “mug”",
        "I found the heading “Menu” in 2 places:",
        "I found a text that begins with “Menu” in 2 places:",
        "I found “19 €” with “Menu” in 2 places:",
        "The photo on the homepage is described as “unsere Backstube” now.",
    ],
)
def test_a_question_about_several_places_is_asked_in_the_language_of_the_mail(text: str) -> None:
    unsaid = re.compile(r"I found|begins with|described|places")
    assert [one.language for one in own_catalogues() if unsaid.search(one.say(text))] == []


def test_a_command_alone_is_answered_in_the_language_of_the_conversation() -> None:
    mail = parsed(
        text="publish", elided="> Titel geändert. Das steht auf Ihrer Entwurfsseite.", command=Command.PUBLISH
    )
    spoken = language_of(mail, catalogues())
    assert spoken is not None
    assert spoken.language == "de"


@pytest.mark.parametrize(
    ("elided", "language"), [("", "en"), ("> Titel geändert, bitte sehen Sie die Seite an.", "de")]
)
@pytest.mark.parametrize(("subject", "text"), [("Photo", ""), ("Website", "Photo"), ("Website", "Super!")])
def test_a_word_that_languages_share_is_answered_in_the_language_of_the_conversation(
    subject: str, text: str, elided: str, language: str
) -> None:
    spoken = language_of(replace(parsed(text=text, elided=elided), subject=subject), catalogues())
    assert (spoken.language if spoken else "en") == language


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("fr", "Où en êtes-vous ?|Où en est mon site ?|Finalement non, annulez.|Non, annulez.|statut|Annulation svp"
         "|mémoriser : vouvoyer|Quel est l\u2019état de mon site ?|annulez tout"),
        ("de", "Stopp|vergiss: duzen|merken: duzen|Doch lieber nicht, bitte rückgängig machen"),
        ("es", "Me gusta, gracias|¿Cuál es el estado?|Mejor no, deshazlo"),
        ("it", "Mi piace, grazie|Qual è lo stato?|No, meglio di no, annulla"),
        ("nl", "Maak het ongedaan|Nee, liever niet|Wat is de status?"),
        ("en", "What is the status?|No, do not publish it|Not yet|Undo it please, no"),
    ],
)  # fmt: skip
def test_a_short_mail_tells_its_language(language: str, texts: str) -> None:
    spoken = {text: language_of(parsed(text=text), catalogues()) for text in texts.split("|")}
    assert {text: one.language if one else "en" for text, one in spoken.items()} == dict.fromkeys(spoken, language)


@pytest.mark.parametrize("text", ["Ja", "Non", "OK", "status", "en", "Photo", "No", "publish all"])
def test_words_that_tell_no_language_are_answered_in_that_of_the_mails_before(text: str) -> None:
    french, unclear = parsed(text="Pouvez-vous changer le titre ?"), parsed(text="Ja")
    signed = parsed(text=text, elided="Sent from my iPhone. This is for you.")
    spoken = language_of(signed, catalogues(), [unclear, french])
    assert spoken is not None
    assert spoken.language == "fr"
    assert language_of(signed, catalogues(), [unclear, parsed(text="Please change the title")]) is None


@pytest.mark.parametrize("known", own_catalogues(), ids=lambda one: one.language)
def test_a_catalogue_has_all_texts_and_keeps_their_places(known: Catalogue) -> None:
    others = [one for one in own_catalogues() if one is not known]
    for other in others:
        assert known.exact.keys() == other.exact.keys()
        assert [pattern.pattern for _, pattern, _ in known.patterns] == [one.pattern for _, one, _ in other.patterns]
    for _, pattern, words in known.patterns:
        assert set(re.findall(r"\{(\w+)\}", words)) == set(pattern.groupindex) - {"n"} | (
            {"n"} if "{n}" in words else set()
        )
    for word, command in (("publish", Command.PUBLISH), ("undo", Command.UNDO)):
        assert command_of(known.say(word), "Re: x") is command


LIST = ("a.html", "b.html")
WHEN = answers.dated(NOON, UTC)
FILES = tuple(
    RefusedAttachment("a.pdf", reason)
    for reason in (PDF_REFUSED, PDF_OPAQUE, OFFICE_REFUSED, UNREADABLE, TOO_LARGE, NO_HEIC)
)
FLAWS = tuple((kind, "Home", "x.png") for kind in ("link", "picture", "alt", "title", "size"))
PHOTO = Attachment("index.html", "image/png", AttachmentKind.IMAGE, 1, "0" * 64)
RIVALS = Instruction("x", "", SCOTT, Command.EDIT, (PHOTO,), rivals=(PHOTO,))


def done_by(settled: Settlement | None) -> JobResult:
    assert settled
    return settled.result


LINE = (ChangeLine("Changed it.", "scott"),)
ANSWERS = {
    "edit site put back": answers.rolled_back(LINE, LINE, LINE, "scott", SenderRole.BOTH, is_edit=True),
    "public site put back": answers.rolled_back(LINE, (), (), "scott", SenderRole.BOTH, is_edit=False),
    "held, paused": answers.held(parsed(), paused=True),
    "held, no budget": answers.held(parsed(), paused=False),
    "later": answers.later(parsed(), JobResult(""), WHEN),
    "until": answers.until(answer_job(parsed(), JobOutcome.SUCCEEDED, DONE), WHEN),
    "until, stays": answer_job(parsed(), JobOutcome.CANCELLED, report.of_change_that_stays().result),
    "until, gone": answer_job(parsed(), JobOutcome.SUCCEEDED, report.of_taken_back_already().result),
    "waiting": answers.waiting(parsed(), 3),
    "waiting long": answers.waiting(parsed(), 7),
    "too many": answers.too_many(parsed()),
    "asked": answers.ask_sender("x", parsed(), "https://page.example/"),
    "asked with files": answers.ask_sender("x", parsed(attachment_count=2)),
    "asked, too long": answers.ask_sender("x", None),
    "not readable": not_readable("it is damaged"),
    "which site": choose_project(LIST, LIST),
    "which site, named": choose_project(LIST, LIST, "another"),
    "no site": choose_project(LIST[:1], LIST[:1]),
    "an editor publishes": answers.not_theirs(parsed(command=Command.PUBLISH)),
    "an editor publishes what is asked": answers.not_theirs(parsed(command=Command.PUBLISH), "ann@example.com"),
    "an approver is asked": answers.tell_approver(answer_job(parsed(), JobOutcome.SUCCEEDED, DONE), "ann@example.com"),
    "a publisher asks": answers.not_theirs(parsed()),
    "status": report_status(PersonStatus(
        ("Spring: in work now", "Spring: waits its turn", "Spring: being prepared"), ("spelling",)
    )),
    "status of what waits": report_status(PersonStatus(
        asked=("spelling",), waiting=("Changed the title of the homepage to “Spring”.",), not_done=("spelling",),
        with_person=("spelling",),
    )),
    "status of dates": report_status(PersonStatus((f"Spring: stays until {WHEN}", f"Spring: will be done on {WHEN}"))),
    "no status": report_status(PersonStatus()),
    "not done": answers.not_done(("spelling", "only your last 1,000 mails were looked at")),
    "remembered": answers.told_wish(Command.REMEMBER, "spelling", ("spelling",), exact_only=True),
    "remembered too much": answers.told_wish(Command.REMEMBER, "prices", ("spelling",), exact_only=False),
    "forgotten": answers.told_wish(Command.FORGET, "spelling", (), exact_only=False),
    "forgotten, which": answers.told_wish(Command.FORGET, "spelling", ("spelling",), exact_only=False),
    "by a person": answers.by_operator("spelling"),
    "stopped": answers.stopped(1),
    "not stopped": answers.stopped(0),
    "gave up": gave_up(parsed()),
    "done": answer_job(parsed(), JobOutcome.SUCCEEDED, replace(
        DONE, summary=NO_LONGER_PUBLIC, pages_total=3, pages_changed=1, checks=FLAWS, is_restyled=True,
        published=(ChangeLine("Changed it.", "scott"),), waiting=(ChangeLine("Changed it.", ""),), preview="http://t/",
    ), FILES, reader="scott"),
    "approval": answers.ask_approval(answer_job(parsed(), JobOutcome.SUCCEEDED, DONE), parsed()),
    "failed": answer_job(parsed(), JobOutcome.FAILED, JobResult("", error=NOT_UNDERSTOOD)),
    "a photo that cannot be read": answer_job(
        parsed(), JobOutcome.SUCCEEDED, JobResult(NO_PHOTO, question=NO_PHOTO), FILES[:1]
    ),
    "a file that is not used": answer_job(parsed(), JobOutcome.SUCCEEDED, replace(DONE, unused=("index.html",))),
    "files that are not used": answer_job(
        parsed(), JobOutcome.SUCCEEDED, replace(DONE, unused=("index.html", "index.html"))
    ),
    "no words": answer_job(parsed(), JobOutcome.SUCCEEDED, report.of_no_words(()).result),
    "nothing to undo": answer_job(parsed(), JobOutcome.SUCCEEDED, report.of_nothing_to_undo().result),
    "a no": answer_job(parsed(), JobOutcome.SUCCEEDED, done_by(report.of_answer_to_failure("No thanks, leave it"))),
    "a yes": answer_job(parsed(), JobOutcome.SUCCEEDED, done_by(report.of_answer_to_failure("yes"))),
    "undone already": answer_job(parsed(), JobOutcome.SUCCEEDED, report.of_undone_already().result),
    "which file": answer_job(parsed(), JobOutcome.SUCCEEDED, report.of_rival_files(RIVALS).result),
    "undo conflicts": answer_job(parsed(), JobOutcome.FAILED, report.of_undo_conflict(LIST).result),
    "still public": answer_job(parsed(), JobOutcome.FAILED, JobResult(f"{STILL_PUBLIC}\n\n{NOT_YOURS}")),
    "cancelled": answer_job(parsed(), JobOutcome.CANCELLED, JobResult(STOPPED)),
}  # fmt: skip


def test_a_photo_that_cannot_be_read_is_not_called_missing() -> None:
    asked = JobResult(NO_PHOTO, question=NO_PHOTO)
    kaputt = RefusedAttachment("kaputt.jpg", UNREADABLE)
    said, missing = (
        bodies(replied(answer_job(parsed(), JobOutcome.SUCCEEDED, asked, files)))[0] for files in ((kaputt,), ())
    )
    assert "no photo attached" in missing
    assert "no photo attached" not in said
    assert "with another photo" in " ".join(said.split())
    assert "kaputt.jpg" in said


def test_the_translations_of_every_kind_of_answer_are_checked() -> None:
    kinds = [name for name, kind in inspect.getmembers(answers, inspect.isfunction) if name[0] != "_"]
    made = [name for name in kinds if getattr(answers, name).__annotations__.get("return") == "Answer"]
    checked = Path(__file__).read_text(encoding="utf-8").partition("\nANSWERS = {")[2].partition("\n}")[0]
    assert [name for name in made if f"{name}(" not in checked] == []


@pytest.mark.parametrize("known", own_catalogues(), ids=lambda one: one.language)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_every_text_of_an_answer_is_translated(answer: Answer, known: Catalogue) -> None:
    texts = [answer.headline, answer.closing]
    for block in answer.blocks:
        match block:
            case Paragraph(text):
                texts += re.split(r"\n+", text)
            case Listing(title, items):
                texts += (title, *items)
            case Link(title) | Excerpt(title):
                texts.append(title)
    theirs = {"Status", *LIST, *(f"{one}: {one}" for one in LIST), "spelling", "index.html", DONE.summary}
    assert [text for text in texts if text not in theirs and known.say(text) == text] == []


@pytest.mark.parametrize("known", own_catalogues(), ids=lambda one: one.language)
def test_the_words_to_reply_are_understood(known: Catalogue) -> None:
    """What a reply asks to be answered, between quotation marks, does what it says."""

    def quoted(text: str) -> str:
        found = re.findall(r"[„“«]\s?([^„“«»”]+?)\s?[”“»]", known.say(text))
        return str(found[-1])

    everything = quoted("Reply “publish all” to publish these, too.")
    two = quoted("Nothing was published. Shall both go public? Reply “publish both”.")
    assert [named_change(one, "Re: x") for one in (everything, two)] == [ALL, BOTH]
    forget = quoted("Reply “forget: …” with its words to drop one.")
    assert wish_in(forget.replace("…", "spelling")) == (Command.FORGET, "spelling")
    told = known.say("If you wrote it: answer this mail with the word yes, and it will be done. You have two days.")
    yes = re.search(r"\b(ja|sí|oui|sì)\b", told, re.I)
    assert yes
    assert answer_in(yes[0]) is ConfirmationAnswer.YES


def test_nothing_is_told_of_pages_that_did_not_change() -> None:
    told = answer_job(
        parsed(command=Command.PUBLISH), JobOutcome.SUCCEEDED, replace(DONE, pages_total=4, is_checked=True)
    )
    assert "0 of 4" not in bodies(replied(told))[0]


def test_an_operator_adds_a_language(tmp_path: Path) -> None:
    (tmp_path / "pl.po").write_text(
        'msgid ""\nmsgstr "X-Common-Words: proszę zmienić na stronie\\n"\n\n'
        'msgid "Done on your edit site"\nmsgstr "Zrobione"\n'
    )
    known = catalogues(tmp_path)
    spoken = language_of(parsed(text="Proszę zmienić tytuł na stronie"), known)
    assert spoken is not None
    assert (spoken.language, spoken.say("Done on your edit site")) == ("pl", "Zrobione")
    assert {one.language for one in known} == {"pl", "de", "fr", "es", "it", "nl"}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (b'msgid "Hi"\nmsgstr "a "quote" inside"\n', r"pl\.po:2: no text in quotes"),
        (b'msgid "a", "b"\n', r"pl\.po:1: no text in quotes"),
        (b'msgstr "Hi"\n', r"pl\.po:1: a translation without its text"),
        (b'"Hi"\n', r"pl\.po:1: a translation without its text"),
        (b'msgid "{a} and {a}"\nmsgstr "{a}"\n', r"pl\.po:2: .*each \{placeholder\} once"),
        (b'msgid "Hi"\nmsgstr "\xff"\n', r"pl\.po:2: not UTF-8"),
        (b"#" * 500_001, r"pl\.po is larger than 500,000 bytes"),
    ],
)
def test_a_catalogue_that_cannot_be_used_is_refused_with_its_line(tmp_path: Path, written: bytes, told: str) -> None:
    (tmp_path / "pl.po").write_bytes(written)
    with pytest.raises(Permanent, match=told):
        catalogues(tmp_path)


def test_a_folder_of_catalogues_or_a_logo_that_is_not_there_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="is no folder; make it"):
        catalogues(tmp_path / "missing")
    with pytest.raises(Permanent, match=r"logo\.png cannot be read .*name another file in reply_logo"):
        brand_of(replace(Config(), reply_logo=str(tmp_path / "logo.png")))


def test_an_operator_has_a_name_a_colour_a_logo_and_a_last_line() -> None:
    brand = Brand("Müller & Söhne", "#005f73", PNG, "Call us: 01234 567890", shows_cost=True)
    answer = answer_job(parsed(), JobOutcome.SUCCEEDED, replace(DONE, cost_usd=0.42), shows_cost=brand.shows_cost)
    reply = compose(answer, email_id="e1", mail=parsed(), mailbox="edit@localhost", sent_at=NOON, brand=brand)
    message, (plain, html) = read(reply), bodies(reply)
    assert message["From"].addresses[0].display_name == "Müller & Söhne"
    assert [part.get_filename() for part in message.walk() if part.get_filename()] == ["logo.png"]
    for body in (plain, unescape(html)):
        assert "Müller & Söhne" in body
        assert "Call us: 01234 567890" in body
        assert "$0.42" in body
    assert "#005f73" in html


def test_what_changed_is_told_by_the_titles_of_pages() -> None:
    result = replace(DONE, changed_pages=(("index.html", "Pots for every day · Amelia Pottery"),))
    text, _ = bodies(replied(answer_job(parsed(), JobOutcome.SUCCEEDED, result)))
    assert "Pots for every day · Amelia Pottery" in text
    assert "index.html" not in text


def test_lines_with_dashes_are_a_list_in_html() -> None:
    html = bodies(replied(Answer("No", (Paragraph("For example:\n- change <a>\n- add b"),))))[1]
    assert "<ul" in html
    assert "<li>change &lt;a&gt;</li>" in html


_QUOTES = {"de": "„“\u201a\u2018", "es": "«»“”", "fr": "«»“”", "it": "«»“”", "nl": "“”\u2018"}
_ENGLISH = re.compile(r"\b(?:the|your|you|and|changed|reply|nothing|this|they|asked|page of|not public)\b", re.I)
_TWO_WISHES = "Changed “wedged” to “a “new” day” on the about page.\nChanged the colour of the headings to dark green."
SUMMARIES = {
    **ANSWERS,
    "two wishes": answer_job(parsed(), JobOutcome.SUCCEEDED, replace(DONE, summary=_TWO_WISHES)),
    "two wishes in a list": answer_job(parsed(command=Command.PUBLISH), JobOutcome.SUCCEEDED, replace(
        DONE, summary="", is_public=True, published=(ChangeLine(_TWO_WISHES, "scott"),)
    ), reader="scott"),
}  # fmt: skip


@pytest.mark.parametrize("known", own_catalogues(), ids=lambda one: one.language)
@pytest.mark.parametrize("answer", SUMMARIES.values(), ids=SUMMARIES)
def test_no_reply_mixes_languages_or_quotation_marks(answer: Answer, known: Catalogue) -> None:
    text = as_text(translated(answer, known.say), language=known.language)
    assert known.language != "fr" or not re.search(r"(?<!http)[^\s\u00a0]:$", text, re.M), text
    for theirs in (DONE.summary, "Changed it.", *LIST, "spelling", "Change the title", parsed().text):
        text = text.replace(known.say(theirs), "").replace(theirs, "")
    own = "\n".join(line for line in text.splitlines() if not line.startswith(">"))
    left = [word for word in _ENGLISH.findall(own) if word.lower() not in known.words]
    assert left == [], own
    strange = set(own) & set('“”„«»\u201a\u2018"') - set(_QUOTES[known.language])
    assert not strange, own
    assert _nested(own, _QUOTES[known.language]) == [], own


def _nested(text: str, marks: str) -> list[str]:
    """Quotations inside others that have the same marks."""
    opening, closing = marks[0], marks[1]
    return re.findall(rf"{opening}[^{closing}\n]*{opening}[^\n]*", text) if opening != closing else []


@pytest.mark.parametrize("known", own_catalogues(), ids=lambda one: one.language)
def test_what_a_customer_wrote_is_not_translated(known: Catalogue) -> None:
    assert "Monday" in known.say("Changed “Monday” to “Tuesday” on the homepage.")
    assert "Tuesday" in known.say("Changed “Monday” to “Tuesday” on the homepage.")


def test_a_french_line_does_not_end_before_a_mark_that_belongs_to_its_word() -> None:
    [french] = [one for one in own_catalogues() if one.language == "fr"]
    said = [*french.exact.values(), *(words for _, _, words in french.patterns)]
    assert [text for text in said if re.search(r"« | [»;:!?]", text)] == []
    told = [french.say(f"Changed the {what} of the homepage to “A”.") for what in ("title", "heading")]
    assert told[0].split(" (")[0] != told[1].split(" (")[0]
