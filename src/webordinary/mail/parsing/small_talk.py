"""The clauses of a mail that say what is wished: without greeting, small talk, thanks, closing and name.

A clause is small talk only if each of its words is a word of small talk in one language. One other word makes it a
clause that has to be understood.
"""

from __future__ import annotations

# ruff: noqa: RUF001  dashes and quotation marks of all kinds are the point
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby

_OPENING = re.compile(r"[“\"«»„]|(?<![\w'\u2019])[\u2018']")
_SINGLE = re.compile(r"[\u2019'](?!\w)|[\u2018]|\n\s*\n")
_CLOSING = {
    "“": re.compile(r"”|\"(?=[\s.,;:!?)]|\Z)|\n\s*\n"),
    '"': re.compile(r"[\"”]|\n\s*\n"),
    "«": re.compile(r"»|\n\s*\n"),
    "»": re.compile(r"«|\n\s*\n"),
    "„": re.compile(r"[“”\"]|\n\s*\n"),
    "\u2018": _SINGLE,
    "'": _SINGLE,
}
"""What ends a quotation; an empty line shows that it was none."""
_NEXT_SENTENCE = re.compile(r"\s+(?!To\b)[A-ZÄÖÜÀÉÈ][A-Za-zäöüàéèß]+")
_LONGEST_QUOTE = 2_000
_FIRST, _LAST = 0xE000, 0xF8FF  # a private-use character stands for each quotation
MARK = f"[{chr(_FIRST)}-{chr(_LAST)}]"


class Quotations:
    """The quotations of one mail: a mark stands for each of them, so that no rule reads what is in them."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def set_aside(self, text: str) -> str:
        """The text with a mark in place of each quotation."""
        text, parts, done = re.sub(MARK, "", text), [], 0
        ends: dict[str, tuple[int, bool]] = {}
        for opening in _OPENING.finditer(text):
            begin, mark = opening.end(), opening[0]
            if opening.start() < done or len(self._texts) > _LAST - _FIRST:
                continue
            if ends.get(mark, (-1, False))[0] < begin:
                ends[mark] = self._end(text, mark, begin)
            end, closes = ends[mark]
            if closes and 0 < end - begin <= _LONGEST_QUOTE:
                is_sentence = text[begin:end].rstrip().endswith((".", "!", "?"))
                stop = "." if is_sentence and _NEXT_SENTENCE.match(text, end + 1) else ""
                parts += [text[done : opening.start()], self.mark(text[begin:end]), stop]
                done = end + 1
        return "".join([*parts, text[done:]])

    @staticmethod
    def _end(text: str, mark: str, begin: int) -> tuple[int, bool]:
        """Where the next closing mark is, or what shows that there is none, and which of both it is."""
        found = _CLOSING[mark].search(text, begin)
        return (found.start(), found[0][0] not in "\n\u2018") if found else (len(text), False)

    def mark(self, quotation: str) -> str:
        """Set one text aside."""
        self._texts.append(" ".join(quotation.split()))
        return chr(_FIRST + len(self._texts) - 1)

    def text(self, mark: str) -> str:
        """The quotation of a mark."""
        return self._texts[ord(mark) - _FIRST]

    def shown(self, text: str) -> str:
        """The text with its quotations put back, for people."""
        return re.sub(MARK, lambda mark: f"“{self.text(mark[0])}”", text).strip()


@dataclass(frozen=True, slots=True)
class Language:
    """The words of small talk: `anchors` make a clause small talk, `fillers` may stand around them."""

    anchors: frozenset[str]
    fillers: frozenset[str]

    def has(self, words: list[str]) -> bool:
        """Whether these words are small talk, all of them."""
        return any(word in self.anchors for word in words) and all(
            word in self.anchors or word in self.fillers for word in words
        )


def word_set(words: str) -> frozenset[str]:
    """The words of a line."""
    return frozenset(words.split())


def _language(anchors: str, fillers: str) -> Language:
    return Language(word_set(anchors), word_set(fillers))


_PHRASES = {
    "guten morgen": "hallo", "buenos días": "hola", "qué tal": "hola", "can you do that": "thanks",
    "as always": "again", "sent from my": "thanks",
    "von meinem": "danke", "bonne journée": "merci", "as ever": "again", "take care": "thanks",
    "no worries": "thanks", "no problem": "thanks", "no rush": "thanks", "no hurry": "thanks", "ça marche": "merci",
    "speak soon": "thanks", "talk soon": "thanks", "that's all": "thanks", "that's it": "thanks",
    "long time no see": "hello", "that is all": "thanks", "how was": "hope",
    "go up": "hope", "gone up": "hope", "me again": "hello", "by the way": "also", "it's finally": "hope",
    "how is": "hope", "let me know": "thanks", "if you have any questions": "thanks",
    "if anything is unclear": "thanks",
    "if you need anything": "thanks", "do not hesitate to contact me": "thanks", "feel free to contact me": "thanks",
    "don't hesitate to contact me": "thanks", "don't hesitate to ask": "thanks", "in advance": "thanks",
    "im voraus": "danke", "d'avance": "merci", "de antemano": "gracias", "in anticipo": "grazie", "alvast": "bedankt",
    "have a good one": "thanks", "you're a star": "thanks", "bonne soirée": "merci", "à bientôt": "merci",
    "buona giornata": "grazie", "buona serata": "grazie",
    "see you": "bye",
    "look forward": "hope", "looking forward": "hope", "we've moved house": "hope",
    "how are": "hope", "we've moved": "hope", "we have moved": "hope", "we moved": "hope", "it was moved": "hope",
    "we have changed": "hope", "we've changed": "hope", "we changed": "hope", "has changed": "hope",
    "have changed": "hope", "s'il te plaît": "svp", "s'il vous plaît": "svp", "mit freundlichen": "freundliche",
}  # fmt: skip
"""Phrases with a word that means something else on its own."""
LANGUAGES = (
    _language(
        "hi hello hey hiya dear greetings thanks thank thx ty tx cheers ta great good perfect lovely beautiful nice "
        "wonderful fantastic awesome brilliant excellent amazing super love loved hope hoping hopefully regards wishes "
        "best sincerely faithfully yours sorry happy fine well ok okay yes yep yeah wow appreciate appreciated "
        "grateful bye gorgeous superb terrific stunning cool delighted pleased congratulations welcome xx xo xxx "
        "warmly smashing splendid marvellous impressed enjoy enjoyed kudos bravo",
        "i i'm im i've you you're youre you've we we're the a an this that that's thats these it it's its is are was "
        "were am be been have has had having my your yours' our us me all everything everyone everybody so very much "
        "really just again about for of to in on with and as at always from there here how day week weekend evening "
        "morning afternoon night year time today work working works job help helping site website web site's new look "
        "looks looking sound sounds feel feels doing going sun sunny weather rain raining family dog cat kids holiday "
        "holidays christmas easter summer spring autumn winter busy quick quickly fast finding find finds team guys "
        "folks sir madam sirs both lot lots many kind kindly kindest warm warmest soon see speak talk hear hearing "
        "forward bother bothering trouble keep keeping treating her him too also now already wish absolutely totally "
        "pretty quite such what's up iphone ipad phone android samsung galaxy mobile monday friday bit done did made "
        "making turned out customers clients everyone's star stars rock legend patience support effort since last "
        "long ago it'll address phone number opening hours prices price webmaster admin advance million bunch ever "
        "another message mail email got getting getting's sending sent hot cold enjoying bank"
        "confusion inconvenience fault",
    ),
    _language(
        "hallo hi hey moin servus grüezi guten liebe lieber liebes danke dank dankeschön vielen super toll tolle "
        "klasse perfekt prima schön schöne wunderbar großartig gut gute gefällt freundliche freundlichen schönen grüße "
        "grüßen gruß gruss grüsse herzliche herzlichen viele beste besten mfg lg vg ja passt genau ok okay spitze "
        "hoffe geehrte geehrter tschüss ciao gruesse",
        "mit den die der das dem ein eine einen ich wir du sie ihnen dir euch ihr ihre deine dein mir uns und ist sind "
        "sieht aus so es alles für im am zum zur auch jetzt ganz schönen tag abend woche wochenende arbeit hilfe "
        "schnelle noch einmal nochmal zusammen alle team damen herren sehr frau herr geht mal vorab wieder wirklich "
        "echt seite website neue neu aussehen",
    ),
    _language(
        "bonjour bonsoir salut merci parfait super génial beau belle magnifique bien excellent cordialement "
        "cordiales salutations amicalement bravo oui ok d'accord chère cher bises top joli jolie impeccable",
        "à a tous toutes madame monsieur beaucoup très c'est est tout le la les de du des et pour votre ton ta vous tu "
        "je j'espère que va vas allez travail aide bonne bon journée soirée semaine week-end mille encore ça cela le "
        "site page nouveau nouvelle avec mes meilleures sentiments distingués bien plaît",
    ),
    _language(
        "hola buenos buenas gracias perfecto genial estupendo bueno bien excelente fantástico saludo saludos cordiales "
        "beso besos abrazos atentamente sí vale ok querido querida estimado estimada abrazo adiós bonito bonita "
        "precioso preciosa",
        "días tardes noches muchas muchísimas a todos todas y el la los las de del por tu su ayuda trabajo está queda "
        "se ve muy todo que espero estés un una cordial señor señora me encanta mil otra vez ahora",
    ),
    _language(
        "buon buona ciao salve buongiorno buonasera grazie perfetto ottimo bello bella bellissimo bellissima benissimo "
        "bene fantastico saluti cordiali cordialmente sì ok va caro cara gentile gentili abbraccio arrivederci bravo "
        "distinti splendido",
        "a tutti tutte e il la i le di del per il tuo vostro suo aiuto lavoro è molto tutto mille tante spero che stia "
        "stai sia così ora un una signor signora mi piace ancora",
    ),
    _language(
        "hallo hoi dag goedemorgen goedemiddag goedenavond beste bedankt dank dankjewel perfect prima mooi mooie goed "
        "geweldig fijn top super leuk groet groeten groetjes vriendelijke met ja ok oké lieve fantastisch",
        "allemaal je jullie u wel zo heel erg veel het de een en is ziet er uit dit dat voor hulp werk van ik hoop dat "
        "met gaat nu nog een keer alles mevrouw meneer team ook",
    ),
)
_CLOSES = re.compile(
    r"\b(?:thanks|thank you|thx|ta|cheers|regards|greetings|wishes|best|yours(?: \w+ly)?|sincerely|love|bye|xx+"
    r"|take care|(?:speak|talk|see you) soon|have a (?:nice|lovely|good|great|wonderful) (?:day|evening|week(?:end)?)"
    r"|gr[üu](?:ß|ss)e?n?|danke|lg|vg|mfg|merci|cordialement|amicalement|salutations|bises|gracias|saludos?|atentamente"
    r"|abrazos?|besos?|grazie|abbraccio?|saluti|cordialmente|ciao|bisous|groet(?:en|jes)?|bedankt|dank)\b",
    re.I,
)
_GREETS = re.compile(
    r"(?:hi|hello|hey|hiya|dear|good (?:morning|afternoon|evening|day)|grüß gott|coucou|hallo"
    r"|moin|servus|guten (?:morgen|tag|abend)|liebe[rs]?|(?:sehr )?geehrte[r]?"
    r"|bonjour|bonsoir|salut|ch[eè]re?|hola"
    r"|buen[oa]s (?:d[ií]as|tardes)|estimad[oa]|querid[oa]|ciao"
    r"|salve|buongiorno|buonasera|gentile|car[oa]|hoi|dag|beste|lieve|goede(?:morgen|middag|navond))\b",
    re.I,
)
_DAYTIME = re.compile(r"(?:morning|afternoon|evening)(?: all| everyone| everybody| team)?", re.I)
_DAYTIME_AND_NAME = re.compile(r"(?:Morning|Afternoon|Evening) [A-Z][a-z'-]+")
_SMILEY = re.compile(r"[:;]-?[)(D]|[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f\u200d]+|(?<!\S)\^\^(?!\S)|<3")
_BULLET = re.compile(r"^[ \t]*(?:[-*•–]|\(?\d{1,2}[.)]|\(?[a-h]\)|p\.?p?\.?s\.?[:,]?(?=\s))[ \t]+", re.I)
_ENDS = re.compile(
    r"(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\bNo\.)(?<!\b[A-Z]\.)"
    r"(?<=[.!?…])(?!(?<=\d\.)\s(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z]*\b)[\s)]+|;\s*"
)
"""A sentence ends there; `1. Dezember` is a date."""
_CONTACT = re.compile(r"[\w.+-]+@[\w.-]+|https?://\S+|www\.\S+|[+(]?\d[\d\s()/-]{5,}")
_MOST_NAMES = 3
_MAX_NAME_WORDS, _WRAPPED, _MAX_PIECES = 6, 50, 100


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a mail that is no small talk; `asks` if a question mark ends it."""

    text: str
    asks: bool = False
    block: int = 0
    """How many empty lines stand before it."""


def words_in(text: str) -> list[str]:
    """The words of a text in small letters, without punctuation."""
    plain = _SMILEY.sub(" ", text).lower().replace("\u2019", "'")
    for phrase, word in _PHRASES.items():
        plain = plain.replace(phrase, word)
    # What begins or ends a word is looked for once: a mail of apostrophes took time with the square of its length.
    return re.findall(rf"(?<!['-])['-]*+[\w&@+]++(?:['-]++[\w&@+]++)*|{MARK}", plain)


_SETS_A_TIME = re.compile(
    r"\bas soon as (?!possible|you)|\b(?:from|since|starting|as of|until|till) (?:now|today|tonight|\w+day\b|next|this"
    r"|christmas|easter|spring|summer|autumn|winter)",
    re.I,
)


_TELLS_TO_DO = re.compile(
    r"(?:.*\band )?(?:(?:also|now|just|again|so|thanks|thank you) )*"
    r"(?:(?:keep (?!.*\bup\b)|help|made|see) (?:it|this|that|the|our|my|us|all|everything)"
    r"|have (?:it|this|that|our|my|everything|the (?!best|most))|look"
    r"|(?:thank|welcome|wish) (?:all|everyone|our|the))\b"
    r"|.*\b(?:to|for|thank|welcome|wish) (?:(?:all|everyone|of|also) )*(?:the |our |my )?(?:new )?"
    r"(?:customers|clients|guests|visitors)\b"
)
"""Words of small talk that tell what to do: `keep it warm`, `have the site look nice`, `welcome our customers`."""


def is_small_talk(text: str) -> bool:
    """Whether a text says nothing about the site; also with one letter wrong in a longer word."""
    words = words_in(text)
    if _SETS_A_TIME.search(text) or (len(words) > 1 and _TELLS_TO_DO.match(" ".join(words))):
        return False
    return not words or any(language.has(words) or language.has(_mended(words, language)) for language in LANGUAGES)


def _mended(words: list[str], language: Language) -> list[str]:
    return [
        word if word in language.anchors or word in language.fillers else _nearest(word, language) for word in words
    ]


@cache
def _nearest(word: str, language: Language) -> str:
    """The word of small talk that differs by one letter; negations and longer words stay what they are."""
    if not 4 <= len(word) <= 12 or not word.isalpha() or word in _NOT_A_TYPO | MEANINGFUL:
        return word
    return nearest_of(word, (*sorted(language.anchors), *sorted(language.fillers))) or word


_NOT_A_TYPO = word_set(
    "think dont wont cant didnt isnt wait late later live text dark bold move wide mean tall more none make please "
    "nicer finer surer send list start starts quote quit size thin warn wording words word heading greeting back could "
    "even fond home least main than those times weeks years where cost place each amend here today tell name main mach "
    "macht mache wider steht stehen seite seiten dann wort blau ajout dans vert hazlo haga groen laat lass todas alla "
    "allen einde esta mein liere prim podr pouv"
)
"""Words that a wish may have; a letter more, less or other would make small talk of them."""


def nearest_of(word: str, known: Iterable[str]) -> str:
    """The first known word that differs from `word` by one letter; empty if there is none."""
    return next((one for one in known if _one_apart(word, one)), "")


def _one_apart(word: str, known: str) -> bool:
    """One letter added, left out, changed or swapped with its neighbour; the first letter is right."""
    if len(known) < 4 or word[0] != known[0] or abs(len(word) - len(known)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(word, known, strict=False)) if a != b), min(len(word), len(known)))
    rest, other = word[at:], known[at:]
    swapped = len(rest) > 1 and rest[:2] == other[:2][::-1] and rest[2:] == other[2:]
    return swapped or rest[1:] == other[1:] or rest[1:] == other or rest == other[1:]


def clauses_of(
    text: str, sender_name: str = "", starts: re.Pattern[str] | None = None, *, name_below: bool = False
) -> list[Clause]:
    """The clauses of a mail whose quotations are set aside; a line that `starts` matches begins a new one.

    With `name_below`, a last line of one or two words in capitals is a name also where no closing stands before it.
    """
    found: list[Clause] = []
    names_may_follow, block = False, 0
    lines = _lines(text, starts)
    if name_below:
        lines = _without_names_below([line for line in lines if not _is_notice(line)])
    for line in lines:
        block += line == ""
        if names_may_follow and (line == "" or _is_name(line)):
            continue
        if sender_name and set(words_in(line)) <= set(words_in(sender_name)):
            continue
        clauses, names_may_follow = _clauses_of_line(line, set(words_in(sender_name)))
        found += [replace(clause, block=block) for clause in clauses]
    return found


_DISCLAIMS = re.compile(
    r"(?:this|the|diese|ce|este|quest[ao]|dit|deze) (?:e-?mail|message|nachricht|courriel|mensaje|messaggio|bericht)"
    r"\b[^.?!]{0,80}\b(?:confidential|vertraulich|confidentiel|confidencial|riservat|vertrouwelijk)",
    re.I,
)
_OF_A_NOTICE = word_set(
    "this the e-mail email mail message and or its any all files file attachments attached documents information "
    "is are be may might can contain contains confidential legally privileged proprietary private protected by law "
    "intended solely only exclusively for use of addressee addressees recipient recipients named above person "
    "individual entity to whom it which they addressed strictly in diese nachricht und der enthält kann "
    "vertraulich vertrauliche vertraulichen informationen enthalten sind ist sowie anhänge anlagen ihre nur für "
    "den die das adressaten empfänger bestimmt ausschließlich ce courriel cet et les joints sont est confidentiel "
    "confidentiels destinés destiné exclusivement à la personne laquelle ils il adressés adressé au destinataire "
    "este correo mensaje y sus archivos adjuntos es son confidencial confidenciales destinado exclusivamente al "
    "destinatario questo questa messaggio gli allegati è sono riservato riservati riservata e destinato "
    "esclusivamente dit deze bericht de bijlagen zijn vertrouwelijk en uitsluitend alleen bestemd voor "
    "geadresseerde ontvanger"
)
_TO_A_WRONG_READER = re.compile(
    r"(?i)intended recipient|addressee|in error|irrtümlich|versehentlich|par erreur|por error|per errore|ten onrechte"
)


def _is_notice(line: str) -> bool:
    """Is this line a legal notice and nothing else? “This mail is confidential, please wait with it” is none."""
    if not _DISCLAIMS.match(line):
        return False
    first, *others = (one for one in re.split(r"[.?!]+(?:\s+|\Z)", line) if one)
    plain = set(re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)?", first.lower())) <= _OF_A_NOTICE
    return plain and all(map(_TO_A_WRONG_READER.search, others))


def _without_names_below(lines: list[str]) -> list[str]:
    """The lines of a mail without the name, and the company, that stand at its end below a whole sentence."""
    lines = [re.sub(r"(?<=[a-z]) x+\Z", "", line) for line in lines]
    at = len(lines)
    while at > 1 and len(lines) - at < _MOST_NAMES and lines[at - 1].istitle() and _is_name(lines[at - 1]):
        at -= 1
    if at == len(lines) or len(lines[at].split()) > 2:
        return lines
    above = next((line for line in reversed(lines[:at]) if line), "")
    signed = re.search(rf"(?:[.!?)]|{MARK})\Z", above)
    return lines[:at] if at == len(lines) - 1 or signed else lines


def _clauses_of_line(line: str, own_name: set[str]) -> tuple[list[Clause], bool]:
    """The clauses, and whether the line ends in thanks or a closing, below which a name stands."""
    found, closed = [], False
    sentences = _ENDS.split(_BULLET.sub("", line))
    for number, sentence in enumerate(sentences, 1):
        if number == len(sentences) > 1 and _is_signature(sentence, own_name, closed=closed):
            break
        text = _peeled(sentence.strip())
        closed = _closes(_last_piece(sentence)) if sentence.strip() else closed
        if text.strip(" .!?,:-–—…"):
            found.append(Clause(text.strip(" .!,;–—…?"), asks=sentence.rstrip().endswith("?")))
    return found, closed


def _is_signature(sentence: str, own_name: set[str], *, closed: bool) -> bool:
    """`Publish, thank you! Scott`: the last sentence is the sender's own name, or one word in capitals after thanks."""
    words = words_in(sentence)
    return bool(words) and (set(words) <= own_name or (closed and len(words) == 1 and _is_name(sentence.strip())))


def without_own_name(text: str, sender_name: str) -> str:
    """`Change … please. Scott` without the name of its sender."""
    last = re.search(r"(?<=[.!?\"”»])\s+(?P<name>[^.!?\n\"“”«»„]{1,60})[.!]?\s*\Z", text[-_LONGEST_END:])
    words = set(words_in(last["name"])) if last else set()
    if last is None or not words or not words <= set(words_in(sender_name)):
        return text
    return text[: len(text) - len(last[0])]


def _lines(text: str, starts: re.Pattern[str] | None) -> list[str]:
    """The lines as they were written: lines that a mail program wrapped are joined."""
    joined: list[list[str]] = []
    for line in (" ".join(_SMILEY.sub(" . ", line).split()) for line in text.strip().split("\n")):
        if joined and _goes_on(joined[-1], line, starts):
            joined[-1].append(line)
        else:
            joined.append([line])
    return [line for line, _ in groupby(map(" ".join, joined))]


def _goes_on(pieces: list[str], line: str, starts: re.Pattern[str] | None) -> bool:
    # The last pieces do: what is longer is neither a closing nor short. All of them each time would be quadratic.
    before = " ".join(pieces[-_LAST_PIECES:])
    if not before or not line or before[-1] in ".!?;:," or _BULLET.match(line):
        return False
    if len(pieces) <= _LAST_PIECES and len(before) <= _LONGEST_END and _is_end(before):
        return False
    if starts is not None and starts.match(line):
        return False
    if re.match(MARK, before[-1]) and line[0].isupper() and is_small_talk(line):
        return False
    return len(before) >= _WRAPPED or line[0].islower() or re.match(MARK, line) is not None


_LAST_PIECES, _LONGEST_END = 20, 400


def _is_end(line: str) -> bool:
    return is_small_talk(line) or bool(_GREETS.match(line) and len(line.split()) <= 3)


def _peeled(sentence: str) -> str:
    """The sentence without greeting before it and small talk before and after it, as far as commas set them apart."""
    pieces = re.split(r"(\s*,\s*|\s+[-–—]+\s+|:\s+(?=[A-Z]))", sentence)
    if len(pieces) > _MAX_PIECES:
        return sentence
    if is_small_talk(pieces[0]) and is_small_talk(sentence):
        return ""
    while pieces and (is_small_talk(pieces[-1]) or _thanks_a_person(pieces[-1]) or _signs(pieces)):
        pieces = pieces[:-2]
    while (
        pieces
        and not pieces[0].lower().startswith("if ")
        and (is_small_talk(pieces[0]) or _is_greeting(pieces[0]) or _thanks_a_person(pieces[0]))
    ):
        pieces = pieces[2:]
    return "".join(pieces)


def _is_greeting(piece: str) -> bool:
    """`Hi`, `Dear Scott`, `Hello Mrs Miller`: a greeting and at most three words that may be a name."""
    greets = _GREETS.match(piece)
    rest = piece[greets.end() :].split() if greets else []
    if _DAYTIME.fullmatch(piece.strip(" .!")) or _DAYTIME_AND_NAME.fullmatch(piece.strip(" .!")):
        return True
    return (
        greets is not None
        and len(rest) <= 3
        and all(word[:1].isupper() or word in ("or", "and") or is_small_talk(f"hi {word}") for word in rest)
    )


def _thanks_a_person(piece: str) -> bool:
    thanks = _CLOSES.search(piece.strip())
    thanked, rest = (piece.strip()[: thanks.end()], piece.strip()[thanks.end() :].strip()) if thanks else ("", "")
    return (rest != "" and _is_name(rest) and is_small_talk(thanked)) or _closes(piece)


def _signs(pieces: list[str]) -> bool:
    """`…, thanks, Scott`: the last piece is a name because the one before it is a closing."""
    if len(pieces) < 3 or not _is_name(pieces[-1]):
        return False
    return _closes(pieces[-3]) or is_small_talk(pieces[-3]) or (_is_name(pieces[-3]) and _signs(pieces[:-2]))


_ABOUT_WHAT = re.compile(r"\s(?:from|aus|for)\s")


def _closes(piece: str) -> bool:
    """`Thanks`, `Kind regards from the barn`, `Thanks for yesterday`; not `Thanks for adding …`."""
    talk, *about = _ABOUT_WHAT.split(piece.strip(), maxsplit=1)
    words = about[0].split() if about else []
    asks = any(_means_something(word) or word.endswith("ing") or re.search(MARK, word) for word in words)
    short = len(words) <= _MAX_NAME_WORDS and not asks
    return _CLOSES.search(piece) is not None and (is_small_talk(piece) or (short and _closing_words(talk)))


def _closing_words(talk: str) -> bool:
    return _CLOSES.search(talk) is not None and is_small_talk(talk)


def _last_piece(sentence: str) -> str:
    return re.split(r"\s*,\s*|\s+[-–—]+\s+", sentence.strip(" ,.!"))[-1].strip()


def _is_name(line: str) -> bool:
    """Whether a line below a closing may be a name, a company or an address: few words with capitals."""
    rest = _CONTACT.sub(" ", line)
    words = re.findall(r"[^\s,.|·/()&:-]+", rest)
    if (
        any(len(one.split()) > _MAX_NAME_WORDS for one in re.split("[|·]", rest))
        or re.search(MARK, line)
        or line.rstrip().endswith("?")
    ):
        return False
    if len(words) == 1 and words[0].islower():
        return len(words[0]) <= 12 and words[0].isalpha() and not _means_something(words[0])
    return all(
        word[0].isupper() or word[0].isdigit() or word in ("tel", "phone") or word in _PARTICLES for word in words
    ) and not any(map(_means_something, words))


_PARTICLES = word_set(
    "of and the von vom zum zur am im de la le les di da del della du des et y e van der den dem x xx"
)
MEANINGFUL = word_set(
    "from do not no never don't dont but except only until till unless wait hold stop later tomorrow tonight monday "
    "tuesday wednesday thursday friday saturday sunday next after before first please if when maybe perhaps yet still "
    "also plus undo publish revert status change add remove delete replace nicht kein keine aber erst morgen später "
    "bitte warten pas mais demain attends attendre ne no pero mañana espera non ma domani aspetta niet maar "
    "morgen wacht"
)


def _means_something(word: str) -> bool:
    return word.lower().strip("'’") in MEANINGFUL
