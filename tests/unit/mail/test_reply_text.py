from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    "phone, then history": "Sent from my iPhone\n\nOn 3 Jan 2026, at 10:00, Edit <edit@localhost> wrote:\n> Done.",
}


@pytest.mark.parametrize("history", HISTORY)
def test_history_and_signatures_are_set_aside(history: str) -> None:
    reply = reply_text(f"Change the title.\n\nThe second one too.\n\n{HISTORY[history]}\n")
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
