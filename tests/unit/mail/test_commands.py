"""Which mails are commands, and what they name."""

from __future__ import annotations

import pytest

from webordinary.mail.parsing.commands import command_of, named_change
from webordinary.model.mail import Command


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("undo", ""),
        (" Undo! ", ""),
        ("undo one.html", "one.html"),
        ("Undo /about/.", "/about/"),
        ("undo https://edit.amelia.example.com/one.html", "https://edit.amelia.example.com/one.html"),
        ("undo 3f2a9b1c", "3f2a9b1c"),
        ("undo “Add a page about glazes”", "Add a page about glazes"),
        ('undo "Add a page".', "Add a page"),
        ("Please undo.", ""),
        ("undo one.html, please!", "one.html"),
    ],
)
def test_an_undo_may_name_a_change(text: str, named: str) -> None:
    assert command_of(text, "My site") is Command.UNDO
    assert command_of("", f"Re: {text}") is Command.UNDO
    assert named_change(text, "My site") == named


@pytest.mark.parametrize(
    "text",
    [
        "undo the last change",
        "undo it",
        "undo everything.",
        "undo yesterday's edits of one.html",
        "undo one.html\nand add a photo",
        "undo v1.2",
        "publish one.html",
    ],
)
def test_a_sentence_is_no_command(text: str) -> None:
    assert command_of(text, "My site") is Command.EDIT
    assert named_change(text, "My site") == ""


@pytest.mark.parametrize(
    "subject",
    [
        "publish",
        "Odp: publish",
        "Re[2]: publish",
        "RE: AW: publish",
        "Ré: publish",
        " Fwd : Re [3] : Publish! ",
        "Rép: publish",
    ],
)
def test_an_empty_mail_is_the_command_in_its_subject_whatever_a_mail_program_put_before_it(subject: str) -> None:
    assert command_of(" \n", subject) is Command.PUBLISH


def test_the_subject_of_an_undo_names_its_change_after_any_prefix() -> None:
    assert named_change("", "Re[2]: undo about.html") == "about.html"
