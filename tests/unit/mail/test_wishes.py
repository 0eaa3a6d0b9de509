"""Standing wishes: what a mail keeps in mind, and what it does not."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from webordinary.mail.parsing.wishes import changed_wishes, wish_in
from webordinary.mail.replies.answers import told_wish
from webordinary.model.mail import Command
from webordinary.model.projects import MOST_WISHES


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("remember: British spelling", (Command.REMEMBER, "British spelling")),
        ("Hi there,\n\nRemember: never touch prices.\n\nThanks,\nScott", (Command.REMEMBER, "never touch prices.")),
        ("Please remember this: we write\nKent with a capital K\n\nScott Miller\n+44 1234 567890",
         (Command.REMEMBER, "we write Kent with a capital K")),
        ("Merke dir: immer siezen\n\nViele Grüße\nAnna", (Command.REMEMBER, "immer siezen")),
        ("Retenez : le vouvoiement", (Command.REMEMBER, "le vouvoiement")),
        ("forget: British spelling", (Command.FORGET, "British spelling")),
        ("Forget: everything\n\nThanks!", (Command.FORGET, "everything")),
        ("Bitte merken: immer Sie statt du schreiben. Danke, Anna",
         (Command.REMEMBER, "immer Sie statt du schreiben.")),
        ("remember: British spelling! Thank you! Scott", (Command.REMEMBER, "British spelling!")),
        ("remember: close with “See you soon. Best wishes, Anna”",
         (Command.REMEMBER, "close with “See you soon. Best wishes, Anna”")),
        ("forget: everything, thanks", (Command.FORGET, "everything")),
        ("remember: we are British. Please always use British spelling.",
         (Command.REMEMBER, "we are British. Please always use British spelling.")),
        ("remember: never change, move or delete prices", (Command.REMEMBER, "never change, move or delete prices")),
    ],
)  # fmt: skip
def test_a_standing_wish_is_read_without_greeting_and_signature(text: str, wish: tuple[Command, str]) -> None:
    assert wish_in(text, "Scott Miller") == wish


@pytest.mark.parametrize("command", [Command.REMEMBER, Command.FORGET])
def test_a_standing_wish_is_kept_and_dropped_with_the_words_that_the_owners_are_told(command: Command) -> None:
    guide = (Path(__file__).parents[3] / "docs/owners.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:English|German|French|Spanish|Italian|Dutch) \|(.*)\|(.*)\|$", guide, re.M)
    told = [re.findall(r"`(.*?) ?:`", row[command is Command.FORGET]) for row in rows]
    assert len(told) == 6
    assert all(told)
    assert [one for one in chain(*told) if wish_in(f"{one} : {_KEPT}") != (command, _KEPT)] == []


_KEPT = "vouvoyer les clients"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Erinnerung: immer siezen", True),
        ("Rappel : toujours vouvoyer", True),
        ("Erinnerung: bitte immer siezen", True),
        ("Erinnerung: das Foto auf der Startseite", False),
        ("Erinnerung: bitte das Foto tauschen", False),
        ("Rappel : changez le titre", False),
        ("Reminder: the opening hours are still wrong", False),
    ],
)
def test_a_reminder_is_a_standing_wish_only_where_it_gives_a_rule(text: str, kept: bool) -> None:
    assert (wish_in(text) is not None) is kept


@pytest.mark.parametrize(
    "text",
    [
        "Remember the photo of the kiln",
        "Change the title to “Remember: be kind”",
        "Change the title to Spring.\nRemember: British spelling",
        "remember: British spelling\n\nAnd change the title to Spring.",
        "remember:",
        "remember: .",
        "Remember: we moved to Main St 5. Please update the address on the contact page.",
        "Remember: we moved to Main St 5, please update the contact page",
        "Remember: we moved to Main St 5 and could you update the contact page?",
        "Remember: British spelling\nChange the title to Spring.",
        "Remember: update the address. We moved to Main St 5.",
        "Merke dir: wir sind umgezogen. Ändere die Adresse auf der Kontaktseite.",
        "forget it",
        "Do you remember: we spoke",
        "remember: " + "x" * 600,
        "remember: British spelling\n" + "bowls\n" * 30,
        "remember: British spelling\n\n" + "Thanks!\n" * 300,
    ],
)
def test_a_mail_that_says_anything_else_is_for_the_agent(text: str) -> None:
    assert wish_in(text, "Scott Miller") is None


def test_wishes_are_kept_once_and_dropped_by_words_that_one_of_them_has() -> None:
    wishes = changed_wishes((), Command.REMEMBER, "British spelling")
    assert changed_wishes(wishes, Command.REMEMBER, "british SPELLING") == wishes
    wishes = changed_wishes(wishes, Command.REMEMBER, "Spelling of names as on the price list")
    assert changed_wishes(wishes, Command.FORGET, "spelling") == wishes, "both have it"
    assert changed_wishes(wishes, Command.FORGET, "british.") == wishes[1:]
    assert changed_wishes(wishes, Command.FORGET, "Everything") == ()
    assert changed_wishes(wishes, Command.FORGET, "everything about us") == wishes
    for empty in (".", "!", "…", "“”"):
        assert changed_wishes(wishes[:1], Command.FORGET, empty) == wishes[:1]
        assert told_wish(Command.FORGET, empty, wishes[:1], exact_only=False).headline == "Which wish do you mean?"
    full = tuple(f"wish {number}" for number in range(MOST_WISHES))
    assert changed_wishes(full, Command.REMEMBER, "one more") == full
