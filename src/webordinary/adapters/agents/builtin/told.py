"""What an owner tells: wishes that are told as facts, and news beside a wish that binds nothing.

`The tent is £24 now instead of £23` is a wish if it has an old value and a new one of the same kind, or a new one and
the word *now*, and if each of its other words is known here or stands beside the old value on the page. A sentence is
news only if all of its words are known as harmless in one language, or if it says of something that it has changed, and
nothing else. Decisions, doubts, conditions and days to come are no such words.
"""

from __future__ import annotations

# ruff: noqa: RUF001  dashes of all kinds
import re

from webordinary.adapters.agents.builtin.words import LANGUAGES, STOP
from webordinary.mail.parsing.small_talk import LANGUAGES as SMALL_TALK
from webordinary.mail.parsing.small_talk import MARK, word_set, words_in

MONEY = re.compile(r"[€£$] ?\d[\d.,]*\d|[€£$] ?\d|\d[\d.,]* ?(?:[€£$]|(?:euros?|pounds?|dollars?)\b)", re.I)
_CLOCK = r"\d{1,2}(?:[.:]\d\d)?(?: ?(?:am|pm|uhr|h|uur)\b)?"
_KINDS = {
    "money": MONEY,
    "address": re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w"),
    "phone": re.compile(r"[+(]?\d[\d ()/-]{6,}\d(?![\w-])"),
    "hours": re.compile(
        rf"{_CLOCK} ?(?:[–-]|bis|to|a|tot|à) ?{_CLOCK}|\d{{1,2}}:\d\d|\d{{1,2}}(?:[.:]\d\d)? ?(?:am|pm|uhr|h|uur)\b",
        re.I,
    ),
}
"""What a value is, the surest kind first."""
_WAS = re.compile(
    r"(?:instead of|in place of|rather than|and not|not|no longer|it was|was|used to be|it says|down from|up from|from"
    r"|(?:an)?statt|anstelle von|und nicht mehr|und nicht|nicht mehr|nicht|bisher|vorher|bislang|von|die alte|der alte"
    r"|au lieu de|et non plus|et non|contre|en vez de|en lugar de|y no|ya no(?: es)?|antes|invece di|e non|non più"
    r"|non è più"
    r"|in plaats van|en niet(?: meer)?|niet meer|niet|was)(?: (?:the|die|der|den|la|le|el|il|de|het|à|a))?[ ,]*\Z",
    re.I,
)
"""What stands before the old value."""
_UNTIL = re.compile(r"\b(?:until|till|til|bis|jusqu'à|hasta las?|hasta|fino alle|tot)(?=\s+\x00)", re.I)
_NOW = word_set(
    "now nowadays jetzt nun sofort neuerdings désormais maintenant dorénavant ahora adesso ora nu voortaan passe"
)
_SMALL = word_set(
    "is are it it's that's be costs cost should must say says read reads the our my a an at on in of for per we "
    "stay open close start finish shut and has have changed to please so goes up down from number phone telephone "
    "price fee email e-mail address new night day hour kostet kosten ist sind soll sollen beträgt lautet lauten die "
    "der das den dem unser unsere unserer mein meine neue neuer ab sofort pro nacht tag stunde haben wir auf "
    "telefonnummer nummer preis gilt nicht mehr es im am le la les l' notre nos mon ma est sont passe passent coûte "
    "coûtent à par nuit jour numéro de téléphone prix en el los las nuestro nuestra son cuesta cuestan por noche "
    "día precio teléfono número abrimos cerramos il lo gli i nostro nostra è sono costa costano al notte giorno "
    "prezzo numero telefono di het onze ons mijn kost dag uur prijs telefoonnummer zijn van now "
)
_NO_PLACE = STOP | word_set("from ab since seit dès desde da vanaf if you your sie vous")


def read_fact(said: str) -> dict[str, str] | None:
    """The new value, the old one or nothing, and the words that must stand beside it; None if this is no such fact."""
    for kind, pattern in _KINDS.items():
        values = list(pattern.finditer(said))
        if not values:
            continue
        olds = [one for one in values if _WAS.search(said[: one.start()])]
        news = [one for one in values if one not in olds]
        if len(values) > 2 or len(news) != 1:
            return None
        rest = said
        for one in reversed(values):
            before = rest[: one.start()]
            before = before[: marked.start()] if one in olds and (marked := _WAS.search(before)) else before
            rest = f"{before} \x00 {rest[one.end() :]}"
        words = re.findall(r"[^\W\d_][\w'’-]*|\d\S*", _UNTIL.sub(" ", rest).lower().replace("from now on", "now"))
        beside = [word for word in words if word not in _SMALL | _NOW]
        bound = _NO_PLACE - ({words[0]} if kind == "hours" and "should" in words else set())  # `Saturday should say …`
        if any(word in bound or word[0].isdigit() for word in beside) or len(beside) > 6:
            return None
        if not beside and (kind not in ("phone", "address") or not olds):
            return None
        if not olds and (kind != "money" or not set(words) & _NOW):
            return None
        told = {"new": news[0][0].strip(), "near": " ".join(beside)}
        told |= {"everywhere": "yes"} if kind in ("phone", "address") and not beside else {}
        return told | ({"old": olds[0][0].strip()} if olds else {})
    return None


def only_tells(said: str) -> str:
    """The value of which words say that it is so now, and nothing else: `our phone is now 555 0110`."""
    values = [found for pattern in _KINDS.values() for found in pattern.finditer(said)]
    rest = set(re.findall(r"[^\s.!]+", said.replace(values[0][0], " ", 1).lower())) if values else set()
    return values[0][0] if rest & _NOW and rest <= (_SMALL | _NOW) - STOP else ""


_CHANGING = (
    "(?:price|fee|hour|time|number|address|subscription|rate|phone|email|e-mail|date|menu|charge|opening|closing)"
)
_SUBJECT = r" (?!(?:not?|n[oe]ver|nothing|none|neither|ha(?:s|ve|d)|is|are|was|were|may|might|could|of)\b)[\w'&-]+"
_CHANGED = re.compile(
    rf"(?:(?:(?:the|our|my)(?:{_SUBJECT}){{1,4}}|(?:{_SUBJECT[1:]} ){{0,3}}(?:{_CHANGING}|subs)s?) (?:"
    r"(?:has|have) (?:(?:just|now|finally|recently|been) )*(?:changed|moved|updated|postponed|gone up|gone down)"
    r"|(?:is|are) (?:now )?(?:different|changing|moving|new|going up|going down)|changed|moved|went (?:up|down))"
    rf"|new (?:phone |opening |telephone )?{_CHANGING}s?|we(?: have|'ve got|'ve)(?: got)? (?:a )?new {_CHANGING}s?"
    r"|we(?:'re| are)? (?:now )?(?:open|start|clos|meet)(?:e|ing)?(?: (?!on |in |at )[\w-]+){0,3} (?:earlier|later)"
    r"|we(?:'re| are|'ve| have)(?: had to)? (?:putt?|rais)(?:e|ed|ing)?(?: (?:the|our|up))* (?:prices|fees)(?: up)?"
    r")(?: (?:again|now|on \w+days|from now on|these days|slightly|a (?:little|bit|tiny bit)))*"
    r"|(?:(?:unsere?|die|der|das)(?: \w+){1,3} (?:(?:haben|hat) sich (?:etwas )?geändert|änder[nt]+ sich"
    r"|w(?:ird|urde) verschoben)"
    r"|wir haben (?:jetzt )?(?:eine )?neue \w*(?:zeiten|preise|nummer|adresse))"
    r"|(?:nos|notre|les?|la)(?: \w+){1,4} (?:(?:ont|a) (?:un peu )?changé|change(?:nt)?|est (?:reporté|déplacé)e?)"
    r"|(?:nuestr[oa]s?|los?|las?|el)(?: \w+){1,3} (?:han? cambiado|cambian?)"
    r"|(?:i|il|gli|le|la|l')(?: ?\w+){1,3} (?:(?:è|sono) cambiat[oaie]|cambia(?:no)?)"
    r"|(?:de|het|onze)(?: \w+){1,3} (?:(?:is|zijn) (?:veranderd|gewijzigd)|gaat (?:iets )?omhoog|verander(?:t|en))",
    re.I,
)
"""`Our hours have changed` gives the reason of a wish, and nothing else."""
_DAYS_TO_COME = word_set(
    "monday tuesday wednesday thursday friday saturday sunday tomorrow tonight soon christmas easter about "
    "with for since you you're your ever keep make making made working"
)
_BECAUSE = re.compile(
    r"(?: ,)? (?:because|weil|denn|car|parce que|porque|perché|poiché|omdat|want) (?P<reason>[^,:;]+)\Z", re.I
)
_TELL_ME = re.compile(
    r"(?:,? and|,| und|,? et) (?:please )?(?:let me know|tell me"
    r"|(?:schicken|geben|sagen) sie mir(?: bitte)?(?: kurz)? bescheid|gib mir(?: bitte)?(?: kurz)? bescheid"
    r"|(?:prévenez|préviens)-moi)"
    r"(?: (?:when|once|wenn|sobald|quand) (?:it's|it is|that's|that is|you're|you are|es|das|c'est)(?: \w+)? ?\w*)?\Z",
    re.I,
)
_PIECES = re.compile(r"( , so | , | : | [-–—] |, )", re.I)


def is_news(text: str) -> bool:
    """Whether a sentence or a part of one tells news that binds no wish."""
    said = " ".join(text.replace("\u2019", "'").split()).strip(" .!,:;-–—")
    if not said or re.search(rf"{MARK}|\d|\?", said):
        return False
    if _CHANGED.fullmatch(said):
        return True
    words = [part for word in words_in(said) for part in _apart(word)]
    for language, small in zip(LANGUAGES, SMALL_TALK, strict=True):
        known = language.told | language.news | (small.fillers - _DAYS_TO_COME)
        if set(words) <= known and set(words) & language.told and len(words) > 2:
            return True
    return False


def _apart(word: str) -> list[str]:
    """`season's` as `season` and `'s`, `I've` as `i` and `have`."""
    found = re.fullmatch(r"(\w+)'(s|ve|d|re)", word)
    return [found[1], {"s": "'s", "ve": "have", "d": "had", "re": "are"}[found[2]]] if found else [word]


def without_news(text: str) -> str:
    """A sentence without the reasons before and after its wish."""
    text = _TELL_ME.sub("", text)
    because = _BECAUSE.search(text)
    if because and not re.search(rf"{MARK}|\d", because["reason"]) and not word_set(because["reason"].lower()) & STOP:
        text = text[: because.start()]
    pieces = _PIECES.split(text)
    while len(pieces) > 2 and is_news(pieces[0]):
        pieces = pieces[2:]
    while len(pieces) > 2 and is_news(pieces[-1]):
        pieces = pieces[:-2]
    return "".join(pieces)
