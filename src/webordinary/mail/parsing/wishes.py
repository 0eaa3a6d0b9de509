"""Standing wishes: `remember: British spelling`, `forget: British spelling`. They hold for every later change.

Only a first line that begins so, with its colon, is one: everything else is a wish for the agent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webordinary.mail.parsing.small_talk import Quotations, clauses_of
from webordinary.model.mail import Command
from webordinary.model.projects import MOST_WISHES, WISH_CHARACTERS

_BEGINS = re.compile(
    r"""(?xi) \W{0,3} (?:please\s+|bitte\s+)? (?:
        (?P<remember> (?:always\s+)? remember (?:\s+that|\s+this)? | merke?(?:n)?(?:\s+dir|\s+sie\s+sich)?
            | retene[zr] | retiens | recuerd[ae] | ricorda | onthoud )
        | (?P<forget> forget | vergiss | vergessen(?:\s+sie)? | oublie[zr]? | olvid[ae] | dimentica | vergeet )
    ) \s* : \s* (?P<wish> \S.* )"""
)
_EVERYTHING = frozenset({"all", "everything", "alles", "tout", "todo", "tutto"})


def wish_in(text: str, sender_name: str = "") -> tuple[Command, str] | None:
    """REMEMBER or FORGET with its words; None where the mail says anything else as well."""
    lines = [line.strip() for line in text.strip().splitlines()]
    while lines and not _says(lines[0], sender_name):
        lines.pop(0)
    begins = _BEGINS.fullmatch(lines[0]) if lines else None
    if begins is None:
        return None
    words, rest = [begins["wish"]], lines[1:]
    while rest and rest[0] and _says("\n".join(rest), sender_name) and _says(rest[0], sender_name):
        words.append(rest.pop(0))
    if _says("\n".join(["Thanks", *rest]), sender_name):
        return None
    wish = " ".join(" ".join(words).split())
    if len(wish) > WISH_CHARACTERS:
        return None
    return (Command.REMEMBER if begins["remember"] else Command.FORGET), wish


def changed_wishes(wishes: Sequence[str], command: Command, wish: str) -> tuple[str, ...]:
    """The wishes after this command; the same where nothing fits, or there are too many. Safe to repeat."""
    if command is Command.REMEMBER:
        known = {one.casefold() for one in wishes}
        return tuple(wishes) if wish.casefold() in known or len(wishes) >= MOST_WISHES else (*wishes, wish)
    said = wish.casefold().strip(" .!")
    if said in _EVERYTHING:
        return ()
    found = [one for one in wishes if said in one.casefold()]
    return tuple(one for one in wishes if one not in found) if len(found) == 1 else tuple(wishes)


def _says(text: str, sender_name: str) -> bool:
    """Whether it says more than a greeting, thanks, a closing or a name."""
    return bool(clauses_of(Quotations().set_aside(text), sender_name, name_below=True))
