"""Answers to a question of the built-in agent, in six languages: yes, no, thanks, and which of the listed places."""

from __future__ import annotations

from webordinary.mail.parsing.small_talk import Quotations, clauses_of, word_set, words_in

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
