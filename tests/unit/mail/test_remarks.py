"""What is only told before a wish, and what may bind it."""

from __future__ import annotations

import pytest

from webordinary.mail.parsing.remarks import is_remark, speaks_of, without_remark
from webordinary.mail.parsing.small_talk import Clause


@pytest.mark.parametrize(
    "told",
    [
        "Our prices went up a little",
        "We have a new receptionist",
        "I hope you slept well",
        "The boats were late and I am dead on my feet",
        "Unsere Sprechzeiten ändern sich",
        "Nos horaires changent",
        "Nuestro horario cambia",
        "Abbiamo un piatto nuovo",
        "De contributie gaat iets omhoog",
    ],
)
def test_a_statement_without_a_binding_word_is_a_remark(told: str) -> None:
    assert is_remark(told)


@pytest.mark.parametrize(
    "binding",
    [
        "Our prices go up in January",
        "We never wanted a new fee",
        "If the board agrees we are happy",
        "The committee is still arguing",
        "The juniors have the same fee",
        "Everything is five percent dearer",
        "Our price was £45",
        "The new heading is too long",
        "Forget it please",
        "I had asked Tom to do something",
        "I dreamt you got this mail",
        "Wir haben den Titel nicht bestellt",
        "Les prix ont augmenté de 5 %",
    ],
)
def test_a_negation_condition_time_quantity_or_part_of_the_site_makes_it_no_remark(binding: str) -> None:
    assert not is_remark(binding)


def test_a_reason_before_a_wish_is_taken_off_and_a_time_is_not() -> None:
    reason = Clause("Our hours are changing: please close the door")
    assert without_remark(reason) == (Clause("please close the door"), ["Our hours are changing"])
    time = Clause("For today: please close the door")
    assert without_remark(time) == (time, [])


def test_a_question_is_no_remark() -> None:
    question = Clause("The fish was good", asks=True)
    assert without_remark(question) == (question, [])


def test_a_remark_with_a_longer_word_of_a_quotation_speaks_of_it() -> None:
    assert speaks_of("the glaze course is full", ["Glaze course, 3 May"])
    assert not speaks_of("our oven has arrived", ["Glaze course, 3 May"])
