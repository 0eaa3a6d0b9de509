"""Mail commands, as people write them in six languages; free of AI.

A mail is a command only if small talk and one command consume all of its words. Any other word makes it an edit.
"""

from __future__ import annotations

import re
from dataclasses import replace

from webordinary.mail.parsing.small_talk import (
    LANGUAGES,
    Clause,
    Quotations,
    clauses_of,
    is_small_talk,
    word_set,
    words_in,
)
from webordinary.model.mail import Command

_PREFIXES = re.compile(r"^(?:(?:re|aw|sv|antw|odp|rép?|fwd?|wg|tr)\s*(?:\[\d+\])?\s*:\s*)+", re.I)


_FORWARD = re.compile(
    r"(?:fwd?|wg|tr|rv|i|vb|vl|pd|enc|redir\.?|doorst|videresend|vidarebefordra|ilt|i̇lt|転送|转发|轉寄|전달)\s*[:\uff1a]",
    re.I,
)


def is_forward(subject: str) -> bool:
    """Does the first prefix say that another mail was forwarded, as `Fwd:` does?"""
    return _FORWARD.match(subject.strip()) is not None


def is_reply(subject: str) -> bool:
    """Does the first prefix say that a mail was answered, as `Re:` does?"""
    return _PREFIXES.match(subject.strip()) is not None and not is_forward(subject)


def without_prefixes(subject: str) -> str:
    """The subject without the `Re:` and `Fwd:` that mail programs put before it, in any of their languages."""
    return _PREFIXES.sub("", subject.strip()).strip()


def reply_subject(subject: str) -> str:
    """`Re:` once, however often it went back and forth."""
    return "Re: " + (without_prefixes(subject) or "your website")


def own_words(subject: str) -> str:
    """The subject, if its writer chose it for this mail; an answer's is that of an older wish."""
    return "" if _PREFIXES.match(subject.strip()) else subject.strip()


_POLITE = word_set(
    "please pls plz kindly now just then afterwards so and "
    "bitte jetzt mal einfach dann danach anschließend und gerne svp stp maintenant et alors por "
    "favor ahora ya y entonces per favore adesso ora e allora pure alsjeblieft alstublieft aub nu maar dan en graag "
    "gleich sofort direkt doch lieber wieder immediately immédiatement directement subito meteen direct weer"
)
"""Words around a command that do not change it."""
_AGREES = re.compile("|".join((
    "(?:yes )?(?:that's|that is|it's|it is|this is|all) (?:exactly |just )?(?:right|correct|what i (?:wanted|meant))",
    "(?:i'm|i am|we're|we are) (?:very |so )?happy with (?:it|that|this)", "(?:good|ready) to go", "approved", "lgtm",
    "oh no", "oops", "(?:ja )?(?:das |so )?(?:stimmt|passt)(?: so| alles)?", "einverstanden", "in ordnung", "genau so",
    "(?:oui )?c'est (?:ça|bon)", "validé", "de acuerdo", "correcto", "(?:sí )?(?:así )?está bien", "me encanta",
    "(?:sì )?va bene così", "esatto", "approvato", "klopt(?: helemaal)?", "akkoord", "goedgekeurd",
)))  # fmt: skip
"""A sentence that says nothing beside a command, and would be an answer without one."""
_DISLIKES = re.compile("|".join((
    "(?:(?:i|we) (?:don't|do not) like (?:it|that|this)"
    "|(?:that's|that is|it's|this is) not what (?:i|we) (?:wanted|meant))"
    "(?: at all| after all| though| anymore)?", "(?:das |es )?gefällt mir (?:leider |gar |doch )*nicht(?: mehr)?",
    "(?:das )?(?:war|ist) nicht (?:das )?was ich (?:wollte|meinte)",
    "(?:(?:ça|cela|elle|il) ne me plaît (?:pas|plus)|je n'aime pas(?: ça)?)(?: du tout| finalement)?",
    "(?:eso |esto )?no me gusta(?: nada| así)?", "non mi piace(?: più| così| per niente)?",
    "(?:(?:dat|dit|het) (?:vind|is) ik? ?|(?:ik )?vind (?:het|dit|dat) (?:toch )?)niet (?:mooi|goed)",
    "(?:that|it) (?:was|is) a mistake|(?:my|by) mistake|(?:that|it) (?:looked|was) better before",
    "(?:das |es )?(?:war|ist) ein (?:versehen|fehler)",
    "(?:das |es )?sieht nicht (?:gut|schön) aus|vorher war (?:es|das) besser",
    "(?:c'est|c'était) une erreur|c'était mieux avant", "(?:fue|es|ha sido) un error|antes (?:estaba|era) mejor",
    "(?:è stato|era) un errore|(?:prima era|era) meglio(?: prima)?",
    "(?:het|dat) was een (?:vergissing|fout)|(?:het|dat) was (?:eerst|eerder) beter",
    "(?:i|we)(?:'ve| have)?(?: just)? changed (?:my|our) minds?(?: about (?:it|that|this))?",
    "ich hab(?:e es| es|'s|e) mir anders überlegt", "wir haben (?:es )?uns anders überlegt",
    "(?:j'ai|nous avons|on a) changé d'avis", "(?:he cambiado|cambié) de (?:opinión|idea)",
    "(?:ho|abbiamo) cambiato idea", "ik heb me bedacht", "ik ben van gedachten veranderd",
)))  # fmt: skip
"""A sentence that says nothing beside an undo."""
_HESITATES = re.compile(
    r"\A(?:(?:hmm*|oh(?! no)|oops|ups|ah|well|sorry|hm|tja|bof|actually|on second thoughts?|finalement|en fait"
    r"|al final|alla fine|eigentlich|eigenlijk|bij nader inzien)\b\W*)+",
    re.I,
)
_APART = r"(?:\s*,\s*|\s+[-\u2013\u2014]+\s+|(?<=\b[Nn]o)\.\s+)"
_NO = "|".join((
    "(?:no|nope|nah)(?: thanks| thank you)?(?: after all)?|(?:i'd |we'd )?(?:rather|better|maybe|perhaps) not",
    "not after all|(?:nein )?(?:doch |dann |lieber |eher |besser |vielleicht )+nicht|nein(?: danke| doch nicht)?",
    "non(?: merci)?(?: finalement)?|(?:plutôt|peut-être) pas|réflexion faite non|no(?: gracias)?|mejor (?:que )?no",
    "no(?: grazie)?|(?:meglio|forse) (?:di )?no|nee(?: (?:dank (?:je|u)|bedankt))?",
    "(?:nee )?(?:toch |liever |maar |beter )+niet",
))  # fmt: skip
"""Set apart it is no negation of what follows: `no, undo`, not `no undo`."""
_DECLINES = re.compile(rf"(?:(?:no|nope|nah|nein|nee|non) )?(?:{_DISLIKES.pattern})|{_NO}")
_MOST_NOES = 4
_CAN_YOU = "|".join((
    "(?:can|could|would|will) you", "is it possible to", "go ahead(?: and)?", "you (?:can|may)", "let's",
    "i(?:'d| would) like(?: you)? to", "(?:kannst|könntest|würdest) du", "(?:können|könnten|würden) sie",
    "du (?:kannst|darfst)", "sie (?:können|dürfen)", "(?:merci )?de",
    "peux-tu", "tu peux", "pouvez-vous", "vous pouvez", "pourriez-vous", "pourrais-tu",
    "puedes", "puede", "podrías", "podría", "puoi", "può", "potresti", "potrebbe", "(?:kun|kan|zou) (?:je|u|jij)",
    "(?:je|u) (?:kunt|kan|mag)", "on peut", "se puede", "si può",
))  # fmt: skip
_THE_LAST = "|".join((
    "(?:the|my|your|that|this) (?:last |latest |previous )?(?:change|edit|one)", "(?:die|meine) (?:letzte )?änderung",
    "la (?:dernière )?modification", "le dernier changement", "el (?:último )?cambio", "l'ultima modifica",
    "la modifica", "de (?:laatste )?wijziging",
))  # fmt: skip
_CHANGES = "|".join((
    "(?:the|these|this|my|your) (?:new )?changes?", "(?:the|my|our) (?:new )?(?:page|(?:web ?)?site)",
    "die(?:se)? änderung(?:en)?", "(?:la|les|ces|cette) modifications?",
    "(?:el|los|estos|este) cambios?", "(?:la|le) modific(?:a|he)", "de wijziging(?:en)?",
))  # fmt: skip
_IT = "it|this|that|this one|that one|them|these|those|es|das|ihn|ça|cela|le|la|les|lo|esto|eso|questo|het|dit|dat"
_EVERYTHING = (
    "all|all of it|all of them|all (?:the |my |our )?changes|everything|alles|alle (?:meine |unsere )?änderungen|tout"
    "|toutes (?:les|mes|nos) modifications|todo|todos (?:los|mis) cambios|tutto|tutte le (?:mie )?modifiche"
    "|alle wijzigingen"
)
_THE_TWO = "both|both of them|beide|beides|les deux|ambos|los dos|entrambi|allebei"
_PHRASES = {
    Command.PUBLISH: (
        "(?:IT )?(?:publish|veröffentlichen?|publizieren|freigeben|freischalten|(?:online|live) (?:stellen|schalten)"
        "|publier|publiez?|publica|publicar|publique"
        "|pubblica|pubblicare|pubblichi|publiceer|publiceren|veröffentlichen sie)(?: IT)?",
        "publish away", "on publie", "(?:IT )?(?:mettre|mets|mettez)(?:-l(?:e|a|es))?(?: IT)?(?: en)? ligne",
        "pon(?:lo|la|los|las|ga)?(?: IT)?(?: en)? línea", "mettil[oaie] online", "(?:(?:IT) )?mag (?:online|live)",
        "go live", "(?:(?:IT) )?kann (?:online|live)(?: gehen)?",
        "(?:make|put|push|take|bring) IT (?:live|public|online)", "zet IT (?:online|live)",
        "(?:stelle?|schalte?|stellen sie|schalten sie) IT (?:online|live|frei)",
        "publiez?-l(?:e|a|es)", "(?:publícal|publíquel|publicarl)[oa]s?", "(?:pubblical|pubblicarl)[oaie]",
    ),
    Command.UNDO: (
        "(?:undo|revert|annul(?:e|er|ez)|deshacer|deshaz|deshaga|anula|anular|annulla|annullare|annulli)(?: LAST)?",
        "annulation", "take (?:it|that|this) back", "(?:put|change|roll) (?:it|that) back", "roll back", "terugdraaien",
        "(?:LAST )?(?:wieder )?(?:rückgängig|rückgängig machen|zurücknehmen|ongedaan maken|ongedaan)",
        "mach(?:e|en sie)? LAST (?:wieder )?rückgängig", "annul(?:e|ez)-l[ea]", "des(?:hazlo|hágalo|hacerlo)",
        "annull(?:al|arl)[oa]", "maak LAST ongedaan", "draai LAST terug",
    ),
    Command.STATUS: (
        "status", "(?:what's|what is|(?:tell|send|give) me|wie ist|wat is) (?:the|der|de|my) (?:status|stand)",
        "(?:quel est le )?statut",
        "(?:cuál es el )?estado", "(?:qual è lo )?stato",
    ),
    Command.STOP: (
        "stopp?(?: working)?(?: on)?(?: (?:it|that|this|das|es))?", "ferma",
        "anhalten", "abbrechen", "arrêtez?", "arrêter", "detente", "detener",
        "para", "parar", "fermati", "fermare", "stoppen",
    ),
}  # fmt: skip


def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for the phrases of a command; IT and LAST stand for what it may name."""
    joined = "|".join(phrases).replace("IT", f"(?:{_IT}|{_CHANGES}|{_EVERYTHING}|{_THE_TWO})")
    last = f"(?:{_IT}|{_THE_LAST}|{_EVERYTHING})"
    return re.compile(rf"(?P<polite>(?:{_CAN_YOU}) )?(?:{joined.replace('LAST', last)})")


_COMMANDS = {command: _pattern(phrases) for command, phrases in _PHRASES.items()}
_NAMES_BOTH = re.compile(rf"\b(?:{_THE_TWO})\b")
_NAMES_ALL = re.compile(rf"\b(?:{_EVERYTHING})\b")
_NAMED = re.compile(
    r"""(?xi)
    undo \s+ (?:
        (?P<commit> [0-9a-f]{7,40} )
        | (?P<page> (?:https?:/)?/\S* | \S+\.[a-z][a-z0-9]{0,7} )
        | ["“„] (?P<title> [^"“”„\n]+ ) ["”“]
    )"""
)
"""An `undo` that names a change so that no sentence could be meant: its commit, its page or file, its title quoted."""
ALL, BOTH = "all", "both"
"""What a `publish` may name: every change, or its conversation with those that it cannot be separated from.

An `undo` that names ALL means the one change of its conversation; of several it is asked which."""


def command_of(text: str, subject: str, sender_name: str = "") -> Command:
    """The command that a mail gives by its whole text, or by its subject where the text is empty."""
    if _NAMED.fullmatch(_plainly(_command_text(text, subject))):
        return Command.UNDO
    found = _found(_command_text(text, subject), sender_name)
    return found[0] if found else Command.EDIT


def mentions(command: Command, text: str) -> bool:
    """Whether a mail's words hold the words of a command anywhere. An agent may then conclude that it is meant."""
    return bool(_COMMANDS[command].search(" ".join(text.casefold().split())))


def named_change(text: str, subject: str, sender_name: str = "") -> str:
    """Which change an `undo` names, or ALL; what a `publish` names, ALL or BOTH; else empty."""
    named = _NAMED.fullmatch(_plainly(_command_text(text, subject)))
    if named:
        return next((value.strip() for value in named.groups() if value), "")
    found = _found(_command_text(text, subject), sender_name)
    if not found or found[0] not in (Command.PUBLISH, Command.UNDO):
        return ""
    return ALL if _NAMES_ALL.search(found[1][0]) else BOTH if _NAMES_BOTH.search(found[1][0]) else ""


def publishes_or_undoes(clause: Clause) -> Command | None:
    """The command of one clause of a mail that asks for other things as well."""
    command, words = _command(clause) or (None, None)
    undoes_all = command is Command.UNDO and words is not None and _NAMES_ALL.search(words[0])
    return command if command in (Command.PUBLISH, Command.UNDO) and not undoes_all else None


def _command_text(text: str, subject: str) -> str:
    return (text if text.strip() else without_prefixes(subject)).strip()


def _plainly(words: str) -> str:
    """Without a please before or after; empty if it is too long for a command."""
    if len(words) > LONGEST_COMMAND:
        return ""
    return re.sub(r"(?i)\Aplease\s+|,?\s+please\Z", "", words.rstrip(".!?").strip())


def _found(words: str, sender_name: str) -> tuple[Command, re.Match[str]] | None:
    if len(words) > LONGEST_COMMAND:
        return None
    clauses = clauses_of(Quotations().set_aside(words), sender_name, name_below=True)
    clauses = [clause for clause in clauses if clause.asks or not _agrees(clause.text)]
    wanted = list(map(_without_dislike, clauses))
    found = [_command(clause) for clause in wanted if clause.text]
    commands = {one[0] if one else None for one in found}
    # `Undo it. No.` is no undo, but `Undo it. I don't like it.` is.
    ends_with_no = bool(clauses) and not wanted[-1].text and not _DISLIKES.fullmatch(_pieces(clauses[-1].text)[0])
    if wanted != clauses and (commands != {Command.UNDO} or ends_with_no):
        return None
    return found[0] if len(commands) == 1 else None


LONGEST_COMMAND = 2_000
"""Characters; a longer mail says more than a command."""
_FIRST_WORDS = frozenset(word for language in LANGUAGES for word in language.anchors)


def _agrees(text: str) -> bool:
    return _AGREES.fullmatch(" ".join(words_in(text))) is not None


def _without_dislike(clause: Clause) -> Clause:
    """A clause without what says `no` or `I don't like it` before a comma or dash, or as all of it."""
    text = clause.text
    for _ in range(_MOST_NOES):
        first, rest = _pieces(text)
        if first and not _DECLINES.fullmatch(first):
            break
        text = rest
    return replace(clause, text=text)


def _pieces(text: str) -> tuple[str, str]:
    """What stands before the first comma or dash, in small letters without hesitation; and the rest."""
    first, *rest = re.split(_APART, _HESITATES.sub("", text), maxsplit=1)
    return " ".join(first.casefold().replace("\u2019", "'").split()).strip(" .!"), "".join(rest).strip()


def _command(clause: Clause) -> tuple[Command, re.Match[str]] | None:
    text = _HESITATES.sub("", clause.text)
    first, _, rest = text.partition(",")
    words = _without_praise(words_in(rest if _agrees(first) else text))
    core = " ".join(word for word in words if word not in _POLITE)
    for command, phrases in _COMMANDS.items():
        if match := phrases.fullmatch(core):
            polite = match["polite"] or len(words) > len(core.split()) or command is Command.STATUS
            return (command, match) if polite or not clause.asks else None
    return None


def _without_praise(words: list[str]) -> list[str]:
    """`looks great please publish`: praise that no comma sets apart from a polite word or from the command."""
    for at in range(len(words) - 1, 0, -1):
        if words[at] in _POLITE and is_small_talk(" ".join(words[:at])):
            return words[at:]
    return words[1:] if len(words) > 1 and words[0] in _FIRST_WORDS else words
