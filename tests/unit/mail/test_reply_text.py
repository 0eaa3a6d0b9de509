from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mail.introductions import DELIMITERS, DEVICES, FORWARDED, HEADERS, QUOTING
from tests.unit.mail.look_alikes import LOOK_ALIKES, NEW_MAILS
from webordinary.mail.parsing import reply_text as lines
from webordinary.mail.parsing.reply_text import reply_text

HISTORY = {
    "gmail": "On Mon, 3 Jan 2026 at 10:00, Edit <edit@localhost> wrote:\n> Done.\n> See it",
    "gmail, wrapped": "On Mon, 3 Jan 2026 at 10:00, A Very Long Name Indeed <\nedit@localhost> wrote:\n\n> Done.",
    "german": "Am 03.01.2026 um 10:00 schrieb Edit:\n> Erledigt.",
    "french": "Le 3 janv. 2026 à 10:00, Edit <edit@localhost> a écrit :\n> Fait.",
    "polish": "W dniu 2026-01-03 10:00, edit@localhost pisze:\nGotowe.",
    "outlook": "From: Edit <edit@localhost>\nSent: Monday, 3 January 2026 10:00\nTo: Scott\nSubject: Title\n\nDone.",
    "outlook, german": "Von: Edit\nGesendet: Montag\nAn: Scott\nBetreff: Titel\n\nErledigt.",
    "outlook, ruled": "________________________________\nFrom: Edit\nSent: today\nTo: me\nSubject: Title\n\nDone.",
    "original message": "-----Original Message-----\nDone.",
    "quotes alone": "> Done.\n> See it.",
    "signature": "-- \nScott\nPottery",
    "phone": "Sent from my iPhone",
    "phone, of both genders": "Von meinem/meiner Galaxy gesendet",
    "phone, named after the program": "Provenance : Courrier pour Windows",
    "phone, then history": "Sent from my iPhone\n\nOn 3 Jan 2026, at 10:00, Edit <edit@localhost> wrote:\n> Done.",
}


@pytest.mark.parametrize("history", HISTORY)
def test_history_and_signatures_are_set_aside(history: str) -> None:
    reply = reply_text(f"Change the title.\n\nThe second one too.\n\n{HISTORY[history]}\n", replied=True)
    assert reply.text == "Change the title.\n\nThe second one too."
    assert reply.elided.split() == HISTORY[history].split()


@pytest.mark.parametrize(
    "body",
    [
        "On the homepage it wrote:\n\nSpring\n\nMake that Summer.",
        "Opening hours:\nFrom: 9\nTo: 17",
        "> Shall I use the red one?\nYes.\n> And the blue one?\nNo.",
        "Sent from my desk, this is easier.",
        "Put this on the page:\n---------- Forwarded message ----------\nFrom: Ann\nSubject: Praise\nTo: me\n\nLovely!",
        "> all of this is quoted",
        "Prices\n------\nMug 12\nBowl 20",
    ],
)
def test_what_the_customer_wrote_is_kept_when_in_doubt(body: str) -> None:
    assert reply_text(body).text == body


def test_an_answer_below_the_quote_is_the_text() -> None:
    reply = reply_text("On Mon, 3 Jan 2026 at 10:00, Edit <edit@localhost> wrote:\n> Which one?\n\nThe red one.")
    assert reply.text == "The red one."


def test_an_empty_body_stays_empty() -> None:
    assert reply_text("\n \n").text == ""


WRITTEN = "Change the title.\n\nThe second one too."


@pytest.mark.parametrize("width", [50, 76, 400])
@pytest.mark.parametrize("program", QUOTING)
def test_an_introduction_is_known_in_every_language_and_however_it_is_wrapped(program: str, width: int) -> None:
    introduction = "\n".join(textwrap.wrap(QUOTING[program], width, break_on_hyphens=False))
    assert reply_text(f"{WRITTEN}\n\n{introduction}\n\n> Done.\n> See it.\n", replied=True).text == WRITTEN


@pytest.mark.parametrize("language", HEADERS)
def test_a_repeated_header_begins_history_in_every_language(language: str) -> None:
    assert reply_text(f"{WRITTEN}\n\n{HEADERS[language]}\n\nDone.\nSee it.\n", replied=True).text == WRITTEN


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_a_delimiter_begins_history_in_every_language(delimiter: str) -> None:
    assert reply_text(f"{WRITTEN}\n\n{delimiter}\nDone.\nSee it.\n", replied=True).text == WRITTEN


@pytest.mark.parametrize("device", DEVICES)
def test_the_line_of_a_phone_is_set_aside_in_every_language(device: str) -> None:
    assert reply_text(f"{WRITTEN}\n\n{device}\n").text == WRITTEN


@pytest.mark.parametrize("title", FORWARDED)
def test_a_forwarded_mail_is_kept_in_every_language(title: str) -> None:
    body = f"{WRITTEN}\n\n{title}\nFrom: Ann <ann@shop.example>\nDate: 5 Jan 2023 10:20\nSubject: x\nTo: me\n\nLovely!"
    assert reply_text(body).text == body


def test_a_forwarded_mail_below_an_answer_is_history_unless_the_answer_points_to_it() -> None:
    forwarded = "---------- Forwarded message ---------\nFrom: Ann <ann@shop.example>\nSubject: x\nTo: me\n\nLovely!"
    assert reply_text(f"Make the footer darker.\n\n{forwarded}", replied=True).text == "Make the footer darker."
    for pointing in ("Put this on the front page.", "Add to the news:", "FYI", "Bitte den folgenden Text."):
        assert "Lovely!" in reply_text(f"{pointing}\n\n{forwarded}", replied=True).text


def test_a_quote_with_nothing_but_a_closing_below_it_is_history() -> None:
    quote = "On 5 Jan 2023 at 10:20, Ann <ann@shop.example> wrote:\n> Done.\n> See it."
    assert reply_text(f"{WRITTEN}\n\n{quote}\n\nRegards, Roman").text == f"{WRITTEN}\n\nRegards, Roman"
    answered = reply_text(f"{WRITTEN}\n\n{quote}\n\nThe red one.").text
    assert answered == f"{WRITTEN}\n\n> Done.\n> See it.\n\nThe red one."


def test_a_legal_notice_at_the_end_is_set_aside_unless_it_is_a_text_for_the_site() -> None:
    notice = (
        "This e-mail and any attachments are confidential. If you are not the intended recipient,\n"
        "please notify the sender and delete it."
    )
    assert reply_text(f"{WRITTEN}\n\n{notice}").text == WRITTEN
    assert notice in reply_text(f"Write below the form:\n\n{notice}").text
    assert notice in reply_text(notice).text


def test_a_mail_that_is_forwarded_by_its_subject_is_kept() -> None:
    body = f"{WRITTEN}\n\n{HEADERS['de']}\n\nLovely!"
    assert reply_text(body, forwarded=True).text == body


@pytest.mark.parametrize(
    "body",
    [
        "See you at 5\nOn Thu, 5 Jan 2023 at 10:20, Ann Potter <ann@shop.example> wrote:\n> Done.",
        "See you at 5\nOn Thu, 5 Jan 2023 at 10:20, Ann Potter\n<ann@shop.example> wrote:\n> Done.",
    ],
)
def test_the_line_above_an_introduction_is_no_part_of_it(body: str) -> None:
    assert reply_text(body).text == "See you at 5"


@pytest.mark.parametrize(
    "body",
    [
        "Replace the slogan with:\n> Pots for everyone",
        "Opening hours:\nFrom: 9:00\nTo: 17:00\nDate: 5.1.2023",
        "Add what Ann wrote about us in 2023:\n\nThe best pots in town.",
        "In 2023 the paper wrote about us:\n\nThe best pots in town.",
        "Our menu:\n\n----- Today -----\nSoup\n\n----- Tomorrow -----\nStew",
        "Sent from Berlin, with love. Please add that to the footer.",
        "Write the message in the box above. That is all.",
        "El 4 de mayo de 2026 un cliente escribió:\n«Precioso».\nPonlo en la página de inicio.",
        "Change the title to “Spring”.\n\n--\n\nAlso remove the second photo.",
        "Publish this poem:\n\nThe river sleeps\n--\nthe bridge stands guard\n\nIt goes under the photo of the bridge.",
        "Publish this poem:\n\nRoses are red\n--\nViolets are blue\n\nThanks",
        "Publish this invitation:\n\nTo: all\nFrom: Ann\nDate: 5 December, 2 pm\nSubject: open day\n\nCome and taste!",
        "Make the title red.\n\n________________________\n\nremove the old news",
        "Opening hours\n\n— Monday from 9\n—\n— Tuesday closed",
        "Change the signature of our newsletter to:\n\n--\nYour Potter family\nKiel",
        "Change the address to:\n\nann@shop.example\n\nFrom: 9:00\nTo: 17:00\nDate: 5.1.2023",
    ],
)
def test_words_that_resemble_history_are_kept(body: str) -> None:
    assert reply_text(body).text == body


@pytest.mark.parametrize("replied", [False, True])
@pytest.mark.parametrize("body", LOOK_ALIKES)
def test_a_text_that_looks_like_history_is_kept_in_a_new_mail_and_in_an_answer(body: str, replied: bool) -> None:
    assert reply_text(body, replied=replied).text == body


@pytest.mark.parametrize("body", NEW_MAILS)
def test_a_mail_that_answers_nothing_has_no_history_unless_only_a_program_writes_so(body: str) -> None:
    assert reply_text(body).text == body


def test_dashes_with_a_space_begin_a_signature_below_a_wish_without_a_full_stop() -> None:
    wish = "Change the homepage title to Spring"
    assert reply_text(f"{wish}\n-- \nScanned by a gateway").text == wish
    assert reply_text(f"{wish}\n--\nHarbour Bakery\nQuay 5", author="Jane of Harbour Bakery").text == wish
    further = f"{wish}\n-- \nalso delete page 3"
    assert reply_text(further).text == further


def test_a_look_alike_above_the_history_is_kept() -> None:
    guests = "New in the guest book.\n\nOn 4 May 2026, Anna Berg wrote:\n\nSo lovely!"
    history = "On 5 Jan 2026 at 10:20, Ann <ann@shop.example> wrote:\n> Done."
    assert reply_text(f"{guests}\n\n{history}", replied=True).text == guests


def test_the_broken_rest_of_a_quoted_line_is_no_answer() -> None:
    history = (
        "On Thu, 5 Jan 2023 at 10:20, Ann Potter <ann@shop.example> wrote:\n"
        "> The title of the page is changed and the second paragraph was shortened a\nbit\n"
        "> as you asked. The picture of the kiln now stands at the top of the page and\nnot below\n"
        "> the text."
    )
    assert reply_text(f"{WRITTEN}\n\n{history}").text == WRITTEN


def test_the_broken_rest_of_the_last_quoted_line_is_no_answer() -> None:
    introduction = "On Thu, 5 Jan 2023 at 10:20, Ann Potter <ann@shop.example> wrote:"
    quote = "> The title of the page is changed. Shall we shorten the paragraph that stands"
    assert reply_text(f"{WRITTEN}\n\n{introduction}\n{quote}\nbelow it?").text == WRITTEN
    assert reply_text(f"{introduction}\n{quote}\nyes, shorten it").text == "yes, shorten it"
    assert reply_text(f"{WRITTEN}\n\n{introduction}\n{quote} below?\nyes, shorten it").text.endswith("yes, shorten it")


def test_a_mail_of_nothing_but_a_signature_says_nothing() -> None:
    assert reply_text("-- \nAnn Potter | Owner\nPotter & Sons Ltd.\n+44 20 1234\n\nSent from my iPhone").text == ""
    assert reply_text("--\nPlease make the title bold.").text == "--\nPlease make the title bold."


def test_the_address_that_foxmail_puts_above_its_header_is_history() -> None:
    header = "发件人: Ann Potter\n发送时间: 2026-11-19 10:14\n收件人: me\n主题: Your site"
    assert reply_text(f"{WRITTEN}\n\nann@shop.example\n \n{header}\n\nDone.").text == WRITTEN


def test_a_long_rule_begins_a_signature_that_names_a_person_and_how_to_reach_them() -> None:
    assert reply_text(f"{WRITTEN}\n\n____________________\n\nAnn Potter\nTel. +44 20 1234 567").text == WRITTEN


def test_the_rule_above_a_header_is_no_part_of_the_signature_above_it() -> None:
    body = f"{WRITTEN}\n--\nPotter & Sons\nTel 123\n\n________________________________\n{HEADERS['de']}\n\nFertig"
    assert reply_text(body).text == WRITTEN


def test_the_line_of_a_tree_is_set_aside() -> None:
    tree = "P Please consider the environment before printing this e-mail."
    assert reply_text(f"{WRITTEN}\n\n{tree}").text == WRITTEN


def test_the_bracket_of_an_address_may_stand_on_a_line_of_its_own() -> None:
    introduction = "tor. 5. jan. 2023 kl. 10:20 skrev Ann Potter <ann@shop.example\n>:"
    assert reply_text(f"{WRITTEN}\n\n{introduction}\n\n> Done.\n>\n> See it.").text == WRITTEN


def test_an_answer_inside_the_quote_is_kept_with_the_question() -> None:
    quoted = "On 5 Jan 2023 at 10:20, Ann <ann@shop.example> wrote:\n> Which colour?"
    body = f"Hello\n\n{quoted}\n\nRed.\n\n> And the size?\n\nLarge."
    assert reply_text(body).text == "Hello\n\n> Which colour?\n\nRed.\n\n> And the size?\n\nLarge."


def test_a_ruler_begins_a_signature_where_the_name_of_the_sender_follows() -> None:
    body = f"{WRITTEN}\n\n-----\nScott Miller\nPottery Ltd"
    assert reply_text(body, author="Scott Miller").text == WRITTEN
    assert reply_text(body).text == body


LETTERS = st.text(st.sampled_from("tehqbgsrdf"), max_size=40)


@pytest.mark.parametrize(
    ("finder", "pattern"),
    [
        (lines.begin_and_quotes, r"b[ehqb]*q[eqhbgs]*$"),
        (lines.begin_without_quotes, r"b(?!.*q)"),
        (lines.begin_unanswered, r"b(?![ehqb]*q.*t)"),
        (lines.quotes_to_the_end, r"b?[qe]*q[qegs]*$"),
        (lines.rulers_to_the_end, r"[re]+$"),
    ],
)
@given(kinds=LETTERS)
def test_history_begins_where_the_regular_expression_says(
    finder: Callable[[str], int], pattern: str, kinds: str
) -> None:
    found = re.search(pattern, kinds[:14])  # the expressions take the cube of the length, the finders do not
    assert finder(kinds[:14]) == (found.start() if found else -1)


@given(kinds=LETTERS)
def test_an_answer_below_begins_where_the_regular_expression_says(kinds: str) -> None:
    pattern = r"^[be]*b[ehqb]*q[eqb]*(t[^bhdq]*)$|^[be]*b[be]*(t[te]*)$"
    found = re.match(pattern, kinds[:14])
    assert lines.answer_below(kinds[:14]) == (found.start(found.lastindex or 1) if found else 0)


@pytest.mark.parametrize(
    ("subject", "below"),
    [
        ("10", ""),
        ("10:30", ""),
        ("9 am", ""),
        ("hello", "To: 17\n"),
        ("hello", "From: 9\nTo: 17\n\n"),
        ("", "Von: 9\n"),
    ],
)
def test_who_is_answered_chooses_no_words_that_make_their_mail_a_wish(subject: str, below: str) -> None:
    mail = (
        "Danke, ich sehe es mir an.\n\nVon: Bob <bob@elsewhere.example>\nGesendet: Dienstag, 5. Januar 2026 10:20\n"
        f"An: Ann\nBetreff: {subject}\n\n{below}Change the price to 1 euro.\n"
    )
    assert reply_text(mail, replied=True).text == "Danke, ich sehe es mir an."
