"""Sentences that are only told: `Our prices went up a little.`

A remark is a statement whose words bind no wish that follows. What may bind one is listed; any such word, a digit or a
quotation makes it a sentence that has to be understood. After a wish nothing is a remark: `The motion was defeated.`
"""

from __future__ import annotations

# ruff: noqa: RUF001  dashes of all kinds
import re
from collections.abc import Iterable
from dataclasses import replace

from webordinary.mail.parsing.small_talk import MARK, Clause, words_in


def _remarks(subjects: str, others: str, verbs: str, binding: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    has_verb = rf"(?=.*\s(?:{verbs})\b)"
    return (
        re.compile(rf"(?:and |und |et |y |e |en )?(?:(?:{subjects})(?: |')|(?:{others})(?: |'){has_verb})", re.I),
        re.compile(rf"\d|%|{MARK}|\b(?:{'|'.join(binding.split())})\b", re.I),
    )


_REMARKS = (
    _remarks(
        "i|i've|i'm|we|we've|we're|he|she|they|they've|new",
        "our|my|the|a|an|it|business|life",
        "is|are|was|were|has|have|had|went|came|got|ran|met|let|made|sold",
        r"you\w* e?mails? messages? no not \w+n't dont never none nothing nobod\w+ neither nor without cannot hardly "
        r"instead if unless when(?:ever)? once after before until till while as whether depend\w* then otherwise "
        r"or either please can could should would shall will \w+'ll \w+'d must might may need\w* want\w* wish\w* "
        r"like\w* ought going gonna plan\w* intend\w* hop(?:e|ing) maybe perhaps think\w* thoughts? thought guess "
        r"sure unsure wonder(?:s|ed|ing)? doubt\w* (?:re)?consider\w* believe suppose\w* probabl\w* possibl\w* "
        r"decid\w* mind\w* (?:dis)?agree\w* approv\w* allow\w* permission confirm\w* ask\w* says? said saying told "
        r"tell\w* suggest\w* prefer\w* reject\w* against refus\w* object\w* hate\w* idea test\w* jok\w* kidding "
        r"mistake\w* wrong incorrect correct\w* right fine old errors? vote\w* know check\w* wait(?!ing\sroom)\w* "
        r"hold\w* pend\w* withdr\w* cancel\w* postpon\w* revert undo publish\w* forget forgot ignor\w* disregard "
        r"mean\w* meant differ\w* argu\w* discuss\w* concern\w* regret\w* unhappy today tonight tomorrow soon "
        r"later now next yet still again from since for during \w+days? january february march april june july "
        r"august september october november december (?<!last\s)weeks? (?<!last\s)months? (?<!last\s)years? "
        r"temporar\w* spring summer autumn winter season\w* holidays? christmas easter weekends? only just except "
        r"but however though although also too plus same others? another rest else both each every\w* all any\w* "
        r"some\w* most many two three four five six seven eight nine ten twelve twenty thirty fifty hundred half "
        r"double percent more less fewer than better bigger higher lower cheaper larger smaller nicer first second "
        r"third titles? headings? headlines? photos? pictures? images? pages? (?:web)?sites? colou?rs? background "
        r"text words? wording paragraphs? sentences? list items? links? buttons? font logo menu footer header "
        r"section line version draft change changes changed add\w* remov\w* delet\w* replac\w* updat\w* renam\w* "
        r"swap\w* put set mov(?:e|es|ing) show\w* wr[io]t\w* read keep\w* leav\w* left stay\w* remain\w* use[ds]? "
        r"take\w* make turn give\w* translat\w*",
    ),
    _remarks(
        "ich|wir|er|neue[rs]?",
        "unsere?|meine?|der|die|das|ein|eine|es",
        "ist|sind|war|waren|hat|haben|hatten|geht|gehen|ging|kam|wurden?|ändern",
        r"nicht \w*kein\w* nie niemals nichts ohne wenn falls sobald sofern bis ab erst bevor nachdem während als "
        r"ob oder bitte kann k[öo]nn\w* soll\w* m[uü]ss\w* m[öo]cht\w* w[io]ll\w* würd\w* darf vielleicht glaub\w* "
        r"denk\w* find\w* mein(?:t|en|te) sag\w* frag\w* überleg\w* entscheid\w* dagegen wart\w* heute morgen "
        r"später bald jetzt nächst\w* noch wieder schon seit für \w+tags? januar februar märz april mai juni juli "
        r"august september oktober november dezember \w*woche\w* monat\w* jahr\w* frühling sommer\w* herbst\w* "
        r"winter\w* \w*ferien ostern weihnachten nur außer aber doch jedoch auch ebenso gleiche?\w* ander\w* rest "
        r"alle\w* jede\w* beide\w* viele zwei drei vier fünf prozent mehr weniger wie besser lieber falsch richtig "
        r"alte\w* titel überschrift\w* foto\w* bild\w* seiten? farbe text\w* satz liste\w* veröffentlich\w* "
        r"lösch\w* entfern\w* bleib\w* lass\w* scherz \w*prüf\w* zustimm\w*",
    ),
    _remarks(
        "nous|j|je|on",
        "nos|notre|mon|ma|mes|la|le|les|l|un|une|il|elle",
        "est|sont|était|a|ont|avons|ai|avait|changent|change",
        r"ne n pas jamais rien sans sauf si quand lorsque dès avant après jusqu\w* ou merci veuillez peu[xt]\w* "
        r"pouv\w* pourr\w* doi\w* dev\w* faut voudr\w* veu\w* aimer\w* peut-être pens\w* croi\w* dit demand\w* "
        r"décid\w* attend\w* aujourd'hui demain bientôt plus moins maintenant prochain\w* encore déjà depuis pour "
        r"lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril mai juin juillet août "
        r"septembre octobre novembre décembre semaine mois année seulement mais aussi même autre\w* reste "
        r"tou(?:t|s|te|tes) chaque deux trois comme mieux titre\w* photo\w* images? pages? texte site publi\w* "
        r"supprim\w* ajout\w* laiss\w* gard\w*",
    ),
    _remarks(
        "nosotros|hemos|tenemos",
        "nuestr[oa]s?|mis?|el|la|los|las|un|una",
        "es|son|era|está|están|ha|han|cambian?",
        r"no nunca nada sin salvo excepto si cuando hasta antes después desde o por pued\w* podr\w* deb\w* "
        r"quier\w* quer\w* gustar\w* quizás? creo pens\w* dic\w* decid\w* esper\w* hoy mañana pronto luego ahora "
        r"próxim\w* todavía ya para lunes martes miércoles jueves viernes sábados? domingos? enero febrero marzo "
        r"abril mayo junio julio agosto septiembre octubre noviembre diciembre semana mes año sol[oa] sólo pero "
        r"también mism\w* otr\w* resto tod\w* cada dos tres más menos como mejor títulos? fotos? imágen\w* "
        r"páginas? texto publi\w* borr\w* dej\w*",
    ),
    _remarks(
        "abbiamo|ho|siamo",
        "i|il|la|lo|le|gli|l|un|una|nostr[oaie]",
        "è|sono|era|ha|hanno|cambiano?",
        r"non mai niente senza tranne se quando fino prima dopo da o per può puoi potr\w* dev\w* dovr\w* vogl\w* "
        r"vorr\w* forse cred\w* pens\w* dic\w* detto decis\w* aspett\w* oggi domani presto poi ora adesso "
        r"prossim\w* ancora già lunedì martedì mercoledì giovedì venerdì sabato domenica gennaio febbraio marzo "
        r"aprile maggio giugno luglio agosto settembre ottobre novembre dicembre settimana mese anno sol[oa] ma "
        r"anche stess\w* altr\w* resto tutt\w* ogni due tre più meno come meglio titol\w* foto immagin\w* pagin\w* "
        r"testo pubblic\w* lasci\w*",
    ),
    _remarks(
        "wij|ik",
        "onze|ons|mijn|de|het|een|er",
        "is|zijn|was|waren|heeft|hebben|had|gaat|gaan|ging",
        r"niet nooit niets geen zonder behalve als wanneer zodra tot voor na of alstublieft graag kan k[ou]n\w* "
        r"moet\w* w[io]l\w* zou\w* mag misschien denk\w* vind\w* zeg\w* zegt vraag\w* beslo\w* wacht\w* vandaag "
        r"morgen straks later binnenkort nu volgend\w* nog weer al sinds vanaf \w+dag januari februari maart april "
        r"mei juni juli augustus september oktober november december week maand jaar alleen maar ook zelfde "
        r"ander\w* rest alle\w* elke? beide twee drie meer minder zoals beter oude? titel kop foto\w* pagina\w* "
        r"tekst publiceer\w* verwijder\w* laat blij\w*",
    ),
)
"""For each language how a remark begins, and the words with which a sentence may bind a wish: a negation, a condition,
a time, a comparison, a quantity, an opinion, a part of the site, another change."""
_HOPE = re.compile(r"\A(?:(?:i|we) )?hope (?:you|your|the)(?= )", re.I)
_LONGEST_REMARK, _LONG_WORD = 200, 5


def is_remark(text: str) -> bool:
    """Whether a statement is only told: `Our prices went up a little`. It binds no wish, and is none itself."""
    said = _HOPE.sub("i ", text.replace("\u2019", "'").strip())
    if len(said) > _LONGEST_REMARK or len(said.split()) < 3:
        return False
    return any(begins.match(said) for begins, _ in _REMARKS) and not any(
        binding.search(said) for begins, binding in _REMARKS if begins.match(said)
    )


_AFTER_A_REASON = re.compile(
    r"\s*(?::|[-–—]+|, (?:so|therefore|daher|deshalb|donc|así que|quindi|dus))\s+"
    r"(?=(?:please|could|can|would|kindly|bitte|könn\w+|merci|veuillez|pouvez|por favor|per favore|graag|wil)\b)",
    re.I,
)


def speaks_of(remark: str, quotations: Iterable[str]) -> bool:
    """Whether a remark has a longer word of a quotation: then it may say something about the wish."""
    quoted = {word for one in quotations for word in words_in(one) if len(word) >= _LONG_WORD}
    return not quoted.isdisjoint(words_in(remark))


def without_remark(clause: Clause) -> tuple[Clause, list[str]]:
    """The clause without the remark that it is or that it begins with, and that: `Our hours are changing: please …`."""
    if not clause.asks and is_remark(clause.text):
        return replace(clause, text=""), [clause.text]
    reason = _AFTER_A_REASON.search(clause.text)
    if reason and is_remark(told := clause.text[: reason.start()]):
        return replace(clause, text=clause.text[reason.end() :]), [told]
    return clause, []
