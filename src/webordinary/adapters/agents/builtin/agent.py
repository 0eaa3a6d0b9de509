"""BuiltinAgent: does every wish of a mail or none, and says plainly which one stopped it.

It also reads answers to its own questions, in six languages: yes, no, thanks, and the chosen places of a list.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from webordinary.adapters.agents.builtin.draft import Draft
from webordinary.adapters.agents.builtin.edits import EditContext, Unclear, follow
from webordinary.adapters.agents.builtin.grammar import EXAMPLES, Grammar, Misunderstood, Wish
from webordinary.adapters.agents.builtin.page import Overlap
from webordinary.jobs.ports import AgentResult, AgentTask, Answered, Asked, Changed, NotUnderstood
from webordinary.mail.parsing.small_talk import MARK, Quotations, clauses_of, word_set, words_in
from webordinary.model.claims import CancelToken

MAX_LENGTH, MAX_WISHES, MAX_ASIDE = 50_000, 30, 3
_SHOWN, _MAX_SHOWN, _MAX_CHOICES = 200, 8_000, 100
ABILITIES = "I can do exact, simple changes. For example:\n" + "\n".join(f"- {example}" for example in EXAMPLES)
_ABOUT_US = re.compile(r"(?:please )?(?:help(?: me)?|what can (?:i|we|you)\b.{0,100})", re.I | re.S)
_REMOVES_IT = re.compile(
    r"(?i)(?:please |bitte |merci de )?(?:(?:remove|delete|take) (?:it|that|this)(?: out| off| away)?"
    r"|(?:supprim|enlev|retir|effac)e[zr]?-l[ae]s?|(?:lösch|entfern)en? (?:sie )?(?:es|das|ihn|sie)"
    r"|(?:elimín|bórr|quít|elimin|rimuov|togl)[aei]l[ao]s?|verwijder (?:het|dat|hem|die))(?:,? [\w ]{3,15})?"
)
_AROUND_ANSWER = re.compile(
    r"(?i)\A(?:(?:please|i mean|it's|just|only|(?:the|that)(?: one| place)?(?= (?:on|in|at)\b)"
    r"|(?:celle|celui|el|la|quello|quella|degene)(?= (?:de|del|della|dell|en|op|sur|su)\b))[ ,]+)+"
    r"|,? (?:please|only)\Z"
)
_END = re.compile(r"(?i)(?:at )?the (?:very )?(?:end|bottom)(?: of (?:the|that) page)?|at the end(?: on the page)?")
_BELOW = re.compile(
    rf"(?i)(?:below|under|after|beneath) (?:the )?(?:heading |text |paragraph )?(?P<under>{MARK}|.{{1,60}})"
)
_MONTH = (
    r"(?:jan|ene|gen|feb|fév|mar(?![ikt])|mär|maa|apr|avr|abr|ma[iy]o?\b|mag|mei|jun|jui|giu|jul|lug|aug|aoû|ago|sep|sett"
    r"|o[ck]t|ott|nov|dez|d[eé]c(?!o)|dic)[a-zéû]*\b"
)
_WEEKDAY = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|\w{3,7}d[iì]|dimanche"
    r"|sabato|domenica|lunes|martes|mi[ée]rcoles|jueves|viernes|s[áa]bado|domingo|(?:maan|dins|woens|\w{3,6}r|zon)dag)\b"
)
_DAY = rf"(?:\d{{1,2}}(?:st|nd|rd|th|er|[.º°])?(?: (?:of|de))? {_MONTH}|{_MONTH} \d"
_DAY += r"|\d{1,2}(?:\.\d{1,2}\.|/\d{1,2}\b))"
_DATE = re.compile(
    rf"(?i)\b(?:on|am|le|el|al|il|op|the|den)(?: the)? {_DAY}|\b(?:tomorrow|demain|domani)\b"
    r"|\b(?:from|until|till?|by|since|as of|starting|ab|bis|seit|zum|dès|à partir du?|jusqu['\u2019](?:à|au)|desde"
    r"|hasta|dal?|a partir del?|fino al?|vanaf|tot)(?: (?:the|next|dem|le|el|il|end of|ende))* "
    rf"(?:{_DAY}|{_MONTH}|{_WEEKDAY})"
    rf"|\b(?:next|nächsten) {_WEEKDAY}|\A(?:bitte )?(?:on|am) {_WEEKDAY}(?! (?:is|ist|we|haben))"
)
_NO_DATE = re.compile(
    rf"(?i)“[^“”]*”|\b(?:every|each|jeden|chaque|cada|ogni|elke) {_WEEKDAY}"
    rf"|{_WEEKDAY} ?(?:to|until|till|bis|à|au|a|al|tot|t/m|and|und|et|-|\u2013) ?{_WEEKDAY}"
)
"""Texts, opening hours, and days that come again."""
_NO_DATES = (
    "I do simple changes at once and keep no dates: write on the day itself, without the date. Or ask the person who "
    "looks after your site for an agent that keeps dates."
)
_MOST_REPEATS = 2
"""How often a question is put again after answers that were not understood."""
_FORGOTTEN = "{}"


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for its answer: the mail, the wish that was unclear, and the places to choose from.

    Without a wish it asks whether the parts `aside`, which were not understood, may be left aside, or which page the
    mail means by a name `unknown`.
    """

    mail: str
    wish: int | None
    choices: tuple[tuple[str, int], ...] = ()
    aside: tuple[str, ...] = ()
    question: str = ""
    repeats: int = 0
    unknown: str = ""

    def session(self) -> str:
        """The question as the session of a thread keeps it."""
        told = {"mail": self.mail, "wish": self.wish, "choices": self.choices[:_MAX_CHOICES], "aside": self.aside}
        return json.dumps({**told, "question": self.question, "repeats": self.repeats, "unknown": self.unknown})

    def asked(self) -> Asked:
        """The question, to which an answer may come."""
        return Asked(self.question, self.session())

    def again(self, answer: str) -> Asked | None:
        """The same question after an answer that was not understood; None if it was put often enough."""
        if not self.question or self.repeats >= _MOST_REPEATS:
            return None
        session = replace(self, repeats=self.repeats + 1).session()
        return Asked(f"I did not understand “{_begin(answer)}”, so nothing was changed.\n\n{self.question}", session)

    @classmethod
    def of(cls, session: str) -> OpenQuestion | None:
        """The question of a session; None if it holds none."""
        try:
            told: Any = json.loads(session or _FORGOTTEN)
            wish, choices = told["wish"], tuple((str(page), int(n)) for page, n in told["choices"])
            question, repeats = str(told.get("question", "")), int(told.get("repeats", 0))
            number = None if wish is None else int(wish)
            aside, unknown = tuple(map(str, told["aside"])), str(told.get("unknown", ""))
            return cls(str(told["mail"]), number, choices, aside, question, repeats, unknown)
        except (ValueError, KeyError, TypeError):
            return None

    def answered(self, answer: str, grammar: Grammar) -> list[Wish] | None:
        """All wishes with what the customer answered; None if the mail is no answer to this question."""
        wishes, quotes = grammar.read(self.mail, Quotations(), self.aside), Quotations()
        clauses = clauses_of(quotes.set_aside(answer), name_below=True)
        if isinstance(wishes, Misunderstood):
            return None  # the pages have other names by now
        if self.wish is None:
            return wishes if agrees(answer) else None
        if self.wish >= len(wishes):
            return None
        wish, found = wishes[self.wish], None
        if wish.doubt and agrees(answer):
            found = [replace(wish, doubt=False)]
        elif len(clauses) == 1:  # else it says more than an answer does
            found = self._completed(wish, clauses[0].text, grammar, quotes)
        return [*wishes[: self.wish], *found, *wishes[self.wish + 1 :]] if found else None

    def _completed(self, wish: Wish, said: str, grammar: Grammar, quotes: Quotations) -> list[Wish] | None:
        if wish.doubt and re.fullmatch(MARK, said):
            return [replace(wish, doubt=False, slots={**wish.slots, "new": quotes.text(said)})]
        chosen = choice_in(said, len(self.choices))
        if chosen and len(chosen) == len(self.choices) and wish.kind == "text":
            return [replace(wish, everywhere=True)]
        if chosen:  # the later place of a page first: an edit moves those behind it
            places = sorted((self.choices[n - 1] for n in chosen), reverse=True)
            return [replace(wish, page=page, pick=pick) for page, pick in places]
        said = _answer_in(said, grammar)
        if wish.get("under") and (spot := _spot(said, quotes)):
            kept = {name: text for name, text in wish.slots.items() if name not in ("under", "heading", "nth")}
            return [replace(wish, slots={**kept, **spot})]
        page = grammar.page_of(said)
        return [replace(wish, page=page)] if page else None

    def on_page(self, answer: str, grammar: Grammar) -> str:
        """The mail with the page that an answer names, for the one that the site does not have; else empty."""
        clauses = clauses_of(Quotations().set_aside(answer), name_below=True) if self.unknown else []
        page = grammar.page_of(_answer_in(clauses[0].text, grammar)) if len(clauses) == 1 else ""
        mail = re.sub(rf"(?i)\b{re.escape(self.unknown)} page\b", lambda _: f"{page} page", self.mail)
        return re.sub(rf"(?i)\b{re.escape(self.unknown)}-?seite\b", lambda _: f"Seite {page}", mail) if page else ""


def _answer_in(said: str, grammar: Grammar) -> str:
    return _AROUND_ANSWER.sub("", _AROUND_ANSWER.sub("", said)).strip()


def _spot(said: str, quotes: Quotations) -> dict[str, str]:
    """The slots of a place on a page that an answer names: its end, or the words to stand below."""
    if _END.fullmatch(said):
        return {"end": "at the end"}
    below = _BELOW.fullmatch(said)
    under = below["under"] if below else said if re.fullmatch(MARK, said) else ""
    return {"under": quotes.text(under) if re.fullmatch(MARK, under) else under} if under else {}


_TOPIC_WORDS = 2
"""A subject of so few words names a topic (`Our website`); a longer one that is not understood may be a wish."""


class BuiltinAgent:
    """Deterministic: it needs no key and no network."""

    is_free = True

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        """Follow the instruction on a draft; the workspace changes only when all of it was clear."""
        result = self._run(task, token)
        return replace(result, session=_FORGOTTEN) if task.session and not result.session else result

    def _run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        if len(task.instruction) > MAX_LENGTH:
            return NotUnderstood(
                f"Your mail is longer than the {MAX_LENGTH:,} characters that I read, so nothing was changed. "
                "Please send what is to be changed in a shorter mail, or in several."
            )
        context = EditContext(Draft(task.workspace, token), task.attachments)
        grammar, asked = Grammar(context.page_names()), OpenQuestion.of(task.session)
        if asked is not None and declines(task.instruction):
            return Answered("All right.")
        if asked is not None and (answered := asked.answered(task.instruction, grammar)) is not None:
            return _follow_all(replace(asked, repeats=0), answered, context, token)
        if asked is not None and (mail := asked.on_page(task.instruction, grammar)):
            return self._run(replace(task, instruction=mail, session=""), token)
        wishes = grammar.read(task.instruction, Quotations())
        above = [] if wishes else grammar.read(task.subject, Quotations())
        if not wishes and above and (isinstance(above, list) or len(task.subject.split()) > _TOPIC_WORDS):
            # only greetings and thanks stand below the wish
            return self._run(replace(task, instruction=task.subject, subject=""), token)
        if isinstance(wishes, Misunderstood):
            removes = _REMOVES_IT.fullmatch(wishes.said)
            if removes or _ABOUT_US.fullmatch(wishes.said):
                return (
                    Asked("What shall I remove? Please copy its words from the page.")
                    if removes
                    else Answered(ABILITIES)
                )
            if unknown := grammar.unknown_page(wishes.said):
                pages = context.labels(context.draft.pages())
                question = f"I did not find a page called “{unknown}”, so nothing was changed. Your site has {pages}."
                return OpenQuestion(task.instruction, None, question=question, unknown=unknown).asked()
            about = _NO_DATES if _DATE.search(_NO_DATE.sub(" ", wishes.said)) else ABILITIES
            said = f"I did not understand “{_begin(wishes.said)}”, so nothing was changed.\n\n{about}"
            rest = _without(wishes, task.instruction, grammar)
            return rest or (asked and asked.again(wishes.said)) or NotUnderstood(said)
        thanked = asked is not None and thanks(task.instruction)  # a file may be that of the mail asked about
        if not wishes and task.instruction.strip() and (thanked or not task.attachments):
            if thanks(task.instruction):
                return Answered("You are welcome!", asked.session() if asked else "")
            again = asked.again(task.instruction.strip()) if asked else None
            return again or Answered("Thank you for your mail. It does not ask for a change.")
        if not wishes:
            return NotUnderstood(f"Your mail does not say what to change, so nothing was changed.\n\n{ABILITIES}")
        if len(wishes) > MAX_WISHES:
            return NotUnderstood(
                f"That is more than {MAX_WISHES} wishes in one mail. Please send them in smaller parts."
            )
        return _follow_all(OpenQuestion(task.instruction, None), wishes, context, token)


def _without(unclear: Misunderstood, mail: str, grammar: Grammar) -> Asked | None:
    """The question whether the rest of a mail shall be done; None if too little of it is understood."""
    aside = [unclear.said]
    while isinstance(rest := grammar.read(mail, Quotations(), aside), Misunderstood):
        aside.append(rest.said)
        if len(aside) > MAX_ASIDE:
            return None
    if not rest or len(rest) < len(aside):
        return None
    said = " and ".join(f"“{_begin(one)}”" for one in aside)
    if rest[0].kind in ("publish", "undo"):
        question = f"I did not understand {said}, so nothing was done yet. If you mean “{rest[0].kind}”, reply “yes”."
    else:
        question = (
            f"I did not understand {said}, so nothing was changed yet. Shall I do the rest of your mail without it? "
            "Reply “yes”, or write it again in other words."
        )
    return OpenQuestion(mail, None, aside=tuple(aside), question=question).asked()


def _follow_all(mail: OpenQuestion, wishes: list[Wish], context: EditContext, token: CancelToken) -> AgentResult:
    """Do all wishes on the draft, then write it; the first one that is unclear stops all of them."""
    words, then = [], ""
    settled: dict[str, Wish] = {}
    for number, wish in enumerate(wishes):
        token.check()
        if settled.setdefault(wish.target, wish).slots != wish.slots:
            return Asked(
                f"“{_begin(settled[wish.target].said)}” and “{_begin(wish.said)}” are about the same thing, so nothing "
                "was changed. Which of them shall I do?"
            )
        if wish.kind in ("publish", "undo"):
            if number < len(wishes) - 1 or (wish.kind == "undo" and number):
                return NotUnderstood(f"Please send “{wish.said}” in a mail of its own. Nothing was changed.")
            then = wish.kind
            break
        before = context.draft.changes()
        try:
            summary = follow(wish, context)
        except Unclear as unclear:
            rest = f"\n\nThis is about “{_begin(wish.said)}”. Nothing was changed yet." if len(wishes) > 1 else ""
            question = _shown(unclear.question) + rest
            return replace(mail, wish=number, choices=unclear.choices, question=question).asked()
        except Overlap:
            return Asked(f"I could not do “{_begin(wish.said)}”: it would change the same place twice.")
        words.append(summary if context.draft.changes() != before else f"That is so already: {wish.said}")
    summary = _shown("\n".join(words))
    if not context.draft.changes():
        return Answered(summary, then=then)
    context.draft.write()
    return Changed(summary, then=then)


def _begin(part: str) -> str:
    return part if len(part) <= _SHOWN else part[: _SHOWN - 1] + "…"


def _shown(text: str) -> str:
    """A text for people: stray bytes of a page as the letters that they most likely are, and not without end."""
    text = re.sub("[\udc80-\udcff]", lambda byte: bytes([ord(byte[0]) - 0xDC00]).decode("cp1252", "replace"), text)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


_YES = word_set(
    "yes yep yeah yup ok okay sure certainly absolutely definitely go do exactly ja jawohl jep klar gern gerne genau "
    "mach mache machen oui d'accord faites fais allez-y vas-y volontiers sí si claro vale adelante hazlo hágalo sì "
    "certo fallo faccia volentieri jazeker zeker doe graag"
)
_WITH_YES = word_set(
    "please pls thanks thank you kindly it that this the rest so then just ahead with of my mail course fine good "
    "great perfect like would be right too bitte danke dank vielen das den die sie du es tun natürlich auch mal passt "
    "gut der in ordnung tu merci svp ça le reste bien sûr avec plaisir cela va y gracias por favor el resto que bueno "
    "lo grazie per favore fai pure il va bene così procedi alsjeblieft alstublieft aub maar de het je wel bedankt u "
    "goed hoor natuurlijk prima dat is"
)
_NO = word_set(
    "no nope nah nein nee nö non nicht niet leave cancel forget never lass lassen vergiss laisse laissez laat "
    "déjalo déjela déjelo lascia lasci"
)
_WITH_NO = word_set(
    "thanks thank you please it that this as is all the be alone mind better rather not don't do need i we changed my "
    "nothing anymore then sorry danke dank bitte sie es das so wie ist doch lieber nicht nichts vielen mehr gut schon "
    "stehen bleiben merci svp comme c'est ça tel quel rien tant pis tomber pas la peine gracias por favor así está "
    "como nada mejor grazie per favore stare così com'è niente va bene meglio bedankt je u wel maar zo het niet laten "
    "hoeft liever zitten"
)
_NUMBERS = tuple(
    map(
        word_set,
        (
            "first 1st erste erster ersten erstes eins premier première primero primera primer primo prima eerste uno",
            "second two 2nd zwei zweite zweiter zweiten zweites deux deuxième seconde dos segundo segunda due secondo "
            "seconda twee tweede",
            "third three 3rd drei dritte dritter dritten drittes trois troisième tres tercero tercera tre terzo terza "
            "drie derde",
            "fourth four 4th vier vierte vierter vierten viertes quatre quatrième cuatro cuarto cuarta quattro quarto "
            "quarta vierde",
            "fifth five 5th fünf fünfte fünfter fünften fünftes cinq cinquième cinco quinto quinta cinque vijf vijfde",
            "sixth six 6th sechs sechste sechster sechsten sechstes sixième seis sexto sexta sei sesto sesta zes zesde",
            "seventh seven 7th sieben siebte siebter siebten sept septième siete séptimo séptima sette settimo settima "
            "zeven zevende",
            "eighth eight 8th acht achte achter achten huit huitième ocho octavo octava otto ottavo ottava achtste",
        ),
    )
)
_LAST = word_set("last letzte letzter letzten letztes dernier dernière último última ultimo ultima laatste")
_ONE = word_set("one un une una een één")
"""A number, except beside another one: `the first one`."""
_AROUND_NUMBER = word_set(
    "the number no nr and place places please only just in on at i mean option it's die der das den dem und nummer "
    "stelle stellen an bitte nur le la les numéro et svp el los las número y por favor il lo i gli numero e per favore "
    "de het en plaats graag ones of them ort orte punkt"
)
_ALL = word_set(
    "all everywhere every each everything alle allen alles überall tous toutes partout todos todas todo tutti tutte "
    "ovunque dappertutto overal allemaal"
)
_AROUND_ALL = word_set(
    "pages page them those places of in on the auf seiten seite jeder pages lieux sur dans endroits en partes páginas "
    "lugares su pagine posti pagina's op plaatsen"
)
_BOTH = word_set("both beide beiden ambos ambas entrambi entrambe allebei")
_THANKS = word_set(
    "thanks thank thx ty cheers danke dank dankeschön merci gracias grazie bedankt dankjewel dankuwel super perfect"
)


def _said(answer: str) -> set[str]:
    """The words of an answer that are no small talk, thanks, closing or name."""
    clauses = clauses_of(Quotations().set_aside(answer), name_below=True)
    return {word for clause in clauses for word in words_in(clause.text)}


def agrees(answer: str) -> bool:
    """Whether an answer says yes and nothing else."""
    return bool(set(words_in(answer)) & _YES) and _said(answer) <= _YES | _WITH_YES


def declines(answer: str) -> bool:
    """Whether an answer says no and nothing else."""
    said = _said(answer)
    return bool(said & _NO) and said <= _NO | _WITH_NO


def thanks(mail: str) -> bool:
    """Whether a mail of small talk thanks."""
    return bool(set(words_in(mail)) & _THANKS)


def choice_in(answer: str, places: int) -> tuple[int, ...]:
    """The numbers of the places that an answer chooses out of so many; none if it says anything else."""
    words = [word for word in words_in(answer) if word not in _AROUND_NUMBER]
    if any(word in _ALL or (word in _BOTH and places == 2) for word in words):
        others = [word for word in words if word not in _ALL | _BOTH | _AROUND_ALL]
        return tuple(range(1, places + 1)) if all(_number(word, places) == places for word in others) else ()
    if len(words) > 1:
        words = [word for word in words if word not in _ONE]
    numbers = {_number(word, places) for word in words}
    return tuple(sorted(numbers)) if all(1 <= one <= places for one in numbers) else ()


def _number(word: str, places: int) -> int:
    if word.isdecimal() and len(word) <= 3:
        return int(word)
    if word in _LAST:
        return places
    return next((n for n, names in enumerate(_NUMBERS, 1) if word in names), 1 if word in _ONE else 0)
