"""Standing wishes: `remember: British spelling`, `forget: British spelling`. They hold for every later change.

Only a first line that begins so, with its colon, is one: everything else is a wish for the agent. So is a mail that
gives a reason to remember, and asks for a change as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webordinary.mail.parsing.commands import LONGEST_COMMAND
from webordinary.mail.parsing.small_talk import Quotations, clauses_of
from webordinary.model.mail import Command
from webordinary.model.projects import MOST_WISHES, WISH_CHARACTERS

_BEGINS = re.compile(
    r"""(?xi) \W{0,3} (?:please\s+|bitte\s+)? (?:
        (?P<remember> (?:always\s+)? remember (?:\s+that|\s+this)? | keep\s+in\s+mind
            | merke?(?:n)?(?:\s+dir|\s+sie\s+sich)? | retene[zr] | (?:à\s+)?retenir | retiens | mémorise[rz]?
            | souviens-toi | souvenez-vous | rappelle-toi | rappelez-vous
            | recuerd[ae] | recordar | memori(?:za|zar|ce) | (?:ten|tenga)\s+en\s+cuenta
            | ricorda(?:ti|re)? | (?:si\s+)?ricordi | memorizza(?:re)? | ten(?:ga|ere)\s+presente | tieni\s+presente
            | onthoud(?:en)? )
        | (?P<remind> erinnerung | rappel | recordatorio | promemoria | herinnering | reminder )
        | (?P<forget> forget | vergiss | vergessen(?:\s+sie)? | oublie[zr]? | olvid(?:ar|[ae]) | dimentic(?:are|a|hi)
            | vergeet | vergeten )
    ) \s* : \s* (?P<wish> \S.* )"""
)
_POLITE = (
    r"(?:please|pls|bitte|svp|stp|s['\u2019]il (?:te|vous) plaît|por favor|per favore|alsjeblieft|alstublieft"
    r"|(?:can|could|would|will) you|(?:kannst|könntest) du|(?:können|könnten) sie|pouvez-vous|peux-tu)"
)
_RULE = (
    r"(?:always|never|do not|don['\u2019]t|no|use|write|spell|keep|avoid|be|say|immer|nie|niemals|kein\w*|nicht"
    r"|verwende\w*|benutze\w*|schreib\w*|toujours|jamais|ne|utilise\w*|écri\w*|siempre|nunca|usa|use|escrib\w+|sempre|mai|non"
    r"|scriv\w+|altijd|nooit|geen|niet|gebruik|schrijf)\b"
)
_CHANGE = (
    r"(?:change|update|add|remove|delete|replace|put|set|make(?!\s+sure)|move|rename|fix|correct|insert|publish|undo|swap"
    r"|create|upload|ändern?|ändere|aktualisieren?|ergänzen?|füge?n?|entfernen?|löschen?|lösche|ersetzen?|setzen?"
    r"|korrigieren?|trage?n?|changez?|changer|modifi(?:e|ez|er)|ajout(?:e|ez|er)|supprim(?:e|ez|er)|remplac(?:e|ez|er)"
    r"|corrig(?:e|ez|er)|met(?:s|tez|tre)|cambi[ae]r?|actuali(?:za|ce)|añad[ae]|quit[ae]|borr[ae]|elimin[ae]|sustituy[ae]"
    r"|pon(?:ga)?|aggiorn[ai]|aggiung[ai]|togli|sostituisci|corregg[ai]|mett[ai]|wijzig|verander|voeg|verwijder|vervang"
    r"|zet)\b"
)
_AND = r"\W*(?:(?:and|so|also|then|now|und|auch|dann|et|aussi|y|e|en|dan)\s+)*"
# Each line and each sentence is looked at together with all that follow it.
_MOST_LINES, _MOST_SENTENCES_BELOW = 20, 8
_AROUND = re.compile(r"^\W+|\W+$")
_SENTENCE = re.compile(r"[.!?;]\s+|\n(?=\W*[A-ZÄÖÜ])")
_CHANGE_NOW = re.compile(rf"(?i){_AND}(?:{_POLITE}\W+)?{_CHANGE}")
_ASKS = re.compile(rf"(?i){_AND}{_POLITE}\W+(?!{_RULE})\w")
_EVERYTHING = frozenset({"all", "everything", "alles", "tout", "todo", "tutto"})


def wish_in(text: str, sender_name: str = "") -> tuple[Command, str] | None:
    """REMEMBER or FORGET with its words; None where the mail says anything else as well."""
    if len(text) > LONGEST_COMMAND:
        return None
    lines = [line.strip() for line in text.strip().splitlines()]
    while lines and not _says(lines[0], sender_name):
        lines.pop(0)
    begins = _BEGINS.fullmatch(lines[0]) if lines else None
    if begins is None:
        return None
    words, rest = [begins["wish"]], lines[1:]
    while rest and rest[0] and _says("\n".join(rest), sender_name) and _says(rest[0], sender_name):
        words.append(rest.pop(0))
        if len(words) > _MOST_LINES:
            return None
    if _says("\n".join(["Thanks", *rest]), sender_name):
        return None
    wish = _without_thanks(" ".join(" ".join(words).split()), sender_name)
    if len(wish) > WISH_CHARACTERS or _asks_for_a_change("\n".join(words)):
        return None
    if begins["remind"] and not re.match(rf"(?i)(?:{_POLITE}\W+)?{_RULE}", wish):
        return None  # of a wish that is not done yet
    if not begins["forget"]:
        return (Command.REMEMBER, wish) if plain(wish) else None
    named = clauses_of(wish, sender_name)
    return Command.FORGET, named[0].text if len(named) == 1 else wish


def _without_thanks(wish: str, sender_name: str) -> str:
    """`… no prices. Thanks, Anna` without what stands behind its last sentence that says anything."""
    quotes = Quotations()
    words = quotes.set_aside(wish)
    ends = [end.end() for end in re.finditer(r"(?<=[.!?])\s+", words)][-_MOST_SENTENCES_BELOW:]
    last = next((end for end in ends if not _says(words[end:], sender_name)), len(words))
    return quotes.shown(words[:last]) if last < len(words) else wish


def plain(wish: str) -> str:
    """The words of a wish, to look for them in others; empty where it has none."""
    return _AROUND.sub("", wish.casefold())


def changed_wishes(wishes: Sequence[str], command: Command, wish: str) -> tuple[str, ...]:
    """The wishes after this command; the same where nothing fits, or there are too many. Safe to repeat."""
    if command is Command.REMEMBER:
        known = {one.casefold() for one in wishes}
        return tuple(wishes) if wish.casefold() in known or len(wishes) >= MOST_WISHES else (*wishes, wish)
    words = plain(wish)
    if not words:
        return tuple(wishes)
    if words in _EVERYTHING:
        return ()
    found = [one for one in wishes if words in one.casefold()]
    return tuple(one for one in wishes if one not in found) if len(found) == 1 else tuple(wishes)


def _asks_for_a_change(text: str) -> bool:
    """Whether one of several sentences asks for a change now, or a later part of a sentence asks for it politely."""
    sentences = [one for one in _SENTENCE.split(Quotations().set_aside(text)) if plain(one)]
    if len(sentences) > 1 and any(map(_CHANGE_NOW.match, sentences)):
        return True
    parts = [part for one in sentences for part in re.split(r",|\s(?=and\s|so\s|und\s|et\s)", one) if plain(part)]
    return any(map(_ASKS.match, parts[1:]))


def _says(text: str, sender_name: str) -> bool:
    """Whether it says more than a greeting, thanks, a closing or a name."""
    return bool(clauses_of(Quotations().set_aside(text), sender_name, name_below=True))
