"""Wishes in German, French, Spanish, Italian and Dutch, as the English words that the grammar has rules for.

A sentence is put into English word by word, and only if one language knows every word of it: a negation, a date or a
condition has no entry, so that such a sentence is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from webordinary.mail.parsing.small_talk import MARK

_TEXT = rf"(?= (?:{MARK}|dies\w* foto|cette photo|esta foto|questa foto|deze foto))"
"""Only before a quotation or a photo: `in „…“` is `to`, and `in der Liste` is not."""
_GERMAN = rf"""
could you = (?:könn(?:t(?:en|est)?|en)|kannst|würde(?:n|st|t)?) (?:sie|du|ihr)|ich (?:möchte|hätte gern)|wir möchten
attached is = (?:anbei|im anhang)(?: ist)?
change = ände(?:re|rn)|ersetzen?|(?:aus)?tauschen?|umbenennen|korrigieren?|aktualisieren?
 = bitte|sie|gerne?|mal|doch|noch|jetzt|nun|dort|da|es|auch
 = hinzu|ein\Z|um|aus|aber|heißen|lauten|stehen|sein|werden|steht dann
make = mach(?:en|e)?
to = (?:in|durch|zu|auf|gegen|mit){_TEXT}
from = von{_TEXT}
should = soll(?:en|te|ten)?|muss|müss(?:te|en)
says = steht|heißt|lautet
instead of = (?:an)?statt|anstelle von
new = neue[rnsm]?
a = eine?[nrms]?
this = dies(?:e[rnsm]?)?|angehängte[rnsm]?|beigefügte[rnsm]?
add = füge?n?|ergänzen?|setzen?|stellen?|(?:hinzu|ein)fügen|schreiben?
remove = entfernen?|lösch(?:en?|t)|streichen?
on the = (?:auf|in|an|zu|von|aus)(?: (?:der|dem|die|das|den))?|im|am|zum|zur|vom
the = der|die|das|den|dem|des|(?:den )?folgende[nrms]?|unser(?:e[nrms]?)?|mein(?:e[nrms]?)?
page = seite
homepage = startseite|homepage
about = über[ -]uns
contact = kontakt
title = (?:seiten)?titel
shows = zeigt
heading = überschrift
paragraph = absatz
sentence = satz|zeile
text = text|wort|wörter|preis|adresse|öffnungszeiten|uhrzeit|telefonnummer|knopf|schaltfläche
photo = foto|bild
list item = (?:listen)?(?:punkt|eintrag)|aufzählungspunkt
list = liste
background = hintergrund
background colour = hintergrundfarbe
headings = überschriften
colour = farbe
links = links
everywhere = überall|auf allen seiten
at the end = (?:ganz )?am ende|ganz unten
and = und
white = weiß
black = schwarz
red = rot
blue = blau
green = grün
yellow = gelb
grey = grau
first = erste[rnsm]?
second = zweite[rnsm]?
third = dritte[rnsm]?
last = letzte[rnsm]?
light = hell
dark = dunkel
"""
_FRENCH = f"""
could you = (?:pourri|pouv)ez-vous|(?:peux|pourrais)-tu|(?:je voudrais|j'aimerais)(?: que vous)?|nous voudrions
change = chang(?:er?|ez)|modifi(?:er?|ez)|remplac(?:er?|ez)|corrig(?:er?|ez)
 = merci d[e']|veuillez|svp|s'il (?:vous|te) plaît|y|maintenant|aussi
to = (?:en|par|pour|à|avec){_TEXT}
from = de{_TEXT}
should be = (?:doit|devrait|doivent|devraient)(?: être| dire)?
instead of = au lieu de|à la place de
this = cette|cet?|ci-jointe?
new = nouve(?:lle|au|l)
a = une?
add = ajout(?:er?|ez)|met(?:s|tez|tre)
remove = supprim(?:er?|ez)|enlev(?:er?|ez)|retir(?:er?|ez)|effac(?:er?|ez)
on the = (?:sur|dans|à|au)(?: (?:la|le|les|notre))?|aux
of the = (?:de|du|des)(?: (?:la|les|notre))?
the = les?|la|l'|notre|nos|mon|ma
page = page
homepage = page d'accueil
about = à propos
shows = montre
heading = titre{_TEXT}
title = titre
paragraph = paragraphe
sentence = phrase|ligne
text = texte|mot|prix|adresse|horaires|bouton
photo = photo|image
list item = élément
list = liste
background = (?:arrière-plan|fond)
headings = titres
colour = couleur
everywhere = partout
at the end = à la fin
and = et
first = premi(?:er|ère)
second = deuxième|seconde?
third = troisième
last = derni(?:er|ère)
white = blanc
black = noir
red = rouge
blue = bleu
green = vert
"""
_SPANISH = f"""
could you = (?:podría|puede)s?|(?:me|nos) gustaría(?: que)?|quisiera(?: que)?|queremos|quiero
change = cambi(?:ar?|e)|modifi(?:car?|que)|reempla(?:zar?|ce)|sustitu(?:ir|ye|ya)|corr(?:ige|egir|ija)
 = por favor|ahora|también
to = (?:por|a|en|con){_TEXT}
should be = (?:debe|debería|tiene que)(?: ser| decir)?|fuera|sea
instead of = en (?:vez|lugar) de
this = est[ea]|adjunt[ao]
new = nuev[ao]
a = una?
add = añad(?:ir|[ea])|agreg(?:ar?|ue)|pon(?:er|ga)?
remove = elimin(?:ar?|e)|borr(?:ar?|e)|quit(?:ar?|e)|suprim(?:ir|[ea])
on the = (?:en|sobre|a)(?: (?:el|la))?
of the = de(?:l| la| los| las)?
to the = al
the = el|los|las?|nuestr[ao]|mi
page = página
homepage = página (?:de inicio|principal)
about = (?:sobre nosotros|acerca de)
contact = contacto
shows = muestra
heading = título{_TEXT}|encabezado
title = título
paragraph = párrafo
sentence = frase|línea
text = texto|palabra|precio|dirección|horario|botón
photo = foto|imagen
list item = elemento
list = lista
background = fondo
headings = títulos|encabezados
colour = color
everywhere = en todas (?:partes|las páginas)
at the end = al final
and = y
first = primer[oa]?
second = segund[oa]
third = tercer[oa]?
last = últim[oa]
white = blanco
black = negro
red = rojo
blue = azul
green = verde
"""
_ITALIAN = f"""
could you = (?:potrest[ie]|potrebbe|può|puoi)|vorrei|vorremmo
change = cambi(?:are|ate|a)?|modific(?:are|ate|a|hi)|sostitu(?:ire|ite|isci|isca)|corregg(?:ere|ete|i|a)
 = per (?:favore|piacere|cortesia)|cortesemente|adesso|ora|anche
to = (?:in|con|a){_TEXT}
should be = (?:deve|dovrebbe)(?: essere| dire)?
instead of = invece di|al posto di
this = quest[ao]|allegat[ao]
new = nuov[ao]
a = un[ao']?
add = aggiung(?:ere|ete|i|a)|mett(?:ere|ete|i|a)|inseri(?:re|te|sci|sca)
remove = elimin(?:are|ate|a|i)|rimuov(?:ere|ete|i|a)|tog(?:liere|liete|li|lie)|cancell(?:are|ate|a|i)
on the = (?:sull?|nell?|dall?)(?:[ae]|')?|(?:in|su)
of the = (?:dell?|dei|delle|di)(?:[ao]|')?
to the = all?(?:[ae]|')?|ai
the = il|lo|la|gli|le|i|l'|nostr[ao]|mi[ao]
page = pagina
homepage = home ?page|pagina (?:iniziale|principale)
about = chi siamo
contact = contatt[io]
shows = mostra
heading = titolo{_TEXT}|intestazione
title = titolo
paragraph = paragrafo
sentence = frase|riga
text = testo|parola|prezzo|indirizzo|orario|pulsante
photo = foto|immagine
list item = voce|punto
list = (?:elenco|lista)
background = sfondo
headings = titoli
colour = colore
everywhere = ovunque|dappertutto|su tutte le pagine
at the end = alla fine
and = e
first = prim[oa]
second = second[oa]
third = terz[oa]
last = ultim[oa]
white = bianco
black = nero
red = rosso
blue = blu
green = verde
"""
_DUTCH = f"""
could you = (?:kun|wil|zou|kan)(?:t)? (?:je|u|jij)|ik (?:wil|zou)|we willen
change = verander(?:en|t)?|wijzig(?:en)?|vervang(?:en)?|aanpassen|corrigeer|corrigeren
 = alsjeblieft|alstublieft|aub|graag|ook|nu|even|kunnen|willen|er|toe|zijn|worden|luiden|staan|heten
make = maak
to = (?:in|door|naar|met){_TEXT}
from = van{_TEXT}
should = moet|moeten|zou moeten
says = staat
instead of = in plaats van
this = dez|dit|deze|bijgevoegde
new = nieuwe?
a = een
add = voeg|toevoegen|zet|zetten|plaats(?:en)?
remove = verwijder(?:en)?|schrap(?:pen)?
on the = (?:op|aan|in|van)(?: (?:de|het))?|bij
the = de|het|onze|mijn
page = pagina
homepage = startpagina|homepage
about = over ons
contact = contact
title = titel
shows = toont
heading = kop(?:tekst)?
paragraph = alinea|paragraaf
sentence = zin|regel
text = tekst|woord|prijs|adres|openingstijden|knop
photo = foto|afbeelding
list item = (?:lijst)?(?:item|punt)
list = lijst
background = achtergrond
headings = koppen
colour = kleur
everywhere = overal
at the end = aan het einde?
and = en
first = eerste
second = tweede
third = derde
last = laatste
light = licht
dark = donker
white = wit
black = zwart
red = rood
blue = blauw
green = groen
"""
_PAGE_WORDS = re.compile(r"(?i)\b([a-zäöüß]+(?:-[a-zäöüß]+)?)-?(seite|pagina)\b")
"""`Kontaktseite`, `Über-uns-Seite`, `contactpagina`: the page's name and the word page in one."""
_AS_IT_IS = rf"{MARK}|#\w+|->|=>|→|[:,\d]+"
_VERBS = frozenset(("change", "add", "remove", "make"))


def _entries(table: str) -> list[tuple[str, re.Pattern[str]]]:
    lines = [line.partition(" = ") for line in table.strip("\n").splitlines()]
    return [
        (english.strip(), re.compile(rf"(?:{words})(?![\w'])|(?:{words})(?<=')", re.I)) for english, _, words in lines
    ]


_TABLES = [_entries(table) for table in (_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _DUTCH)]


def in_english(said: str, pages: Iterable[str]) -> str | None:
    """A sentence of one of these languages as an English one; None where a word of it is known to none of them.

    The names of pages stay what they are. The verb goes to the front; in German and Dutch it may stand at the end.
    """
    said = re.sub(r"(?i)\b(hell|dunkel|licht|donker)(?=[a-z])", r"\1 ", said.replace("¿", " ").replace("¡", " "))
    text = " ".join(_PAGE_WORDS.sub(_apart, said).split())
    names = "|".join(re.escape(name) for name in sorted(pages, key=len, reverse=True) if name) or "(?!)"
    kept = re.compile(rf"(?:{names}|{_AS_IT_IS})(?![\w'])|{MARK}", re.I)
    return next((found for table in _TABLES if (found := _translated(text, table, kept)) is not None), None)


def _apart(found: re.Match[str]) -> str:
    name, page = found[1].rstrip("-"), found[2]
    return found[0] if name.lower() in ("start", "home", "haupt") else f"{name} {page}"


def _translated(text: str, table: list[tuple[str, re.Pattern[str]]], kept: re.Pattern[str]) -> str | None:
    words: list[str] = []
    at = 0
    while at < len(text):
        matches = [(match, english) for english, entry in table if (match := entry.match(text, at))]
        found = max(matches, key=lambda one: one[0].end(), default=None)
        same = kept.match(text, at)
        if same is not None and (found is None or same.end() >= found[0].end()):
            at, word = same.end(), same[0]
        elif found is not None:
            at, word = found[0].end(), found[1]
        else:
            return None
        words += [word] if word else []
        at += text[at : at + 1] == " "
    return " ".join(_verb_first(words))


def _verb_first(words: list[str]) -> list[str]:
    """`could you the title to “…” change` with its only verb in front, in each part that `and` joins."""
    parts: list[list[str]] = [[]]
    said = words[:1] == ["could you"]
    for word in words[said:]:
        parts.append([]) if word == "and" else parts[-1].append(word)
    turned = [
        sorted(part, key=lambda word: word not in _VERBS) if sum(word in _VERBS for word in part) == 1 else part
        for part in parts
    ]
    joined = [word for part in turned for word in ("and", *part)][1:]
    return ["could you", *joined] if said else joined
