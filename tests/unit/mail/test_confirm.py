"""The answer to "did you write this?": only a plain yes releases a mail."""

from __future__ import annotations

import pytest

from webordinary.mail.confirm import ConfirmationAnswer, answer_in


@pytest.mark.parametrize("text", ["yes", "Yes, I did.", "Ja, das war ich!", "ok", "Yes please\n\nScott Miller"])
def test_a_plain_yes_releases(text: str) -> None:
    assert answer_in(text) is ConfirmationAnswer.YES


@pytest.mark.parametrize(
    "text",
    [
        "Yes? I didn't write this!",
        "OK, that wasn't me",
        "Ja, das war keine Mail von mir",
        "ok\nbut I did not write it",
        "yes, what is this about",
        "",
        "who are you",
    ],
)
def test_anything_but_a_plain_yes_releases_nothing(text: str) -> None:
    assert answer_in(text) is not ConfirmationAnswer.YES


def test_a_no_is_a_no() -> None:
    assert answer_in("No, never saw it") is ConfirmationAnswer.NO
