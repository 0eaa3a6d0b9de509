"""Wishes in German, French, Spanish, Italian and Dutch, as the English words that the grammar has rules for.

A sentence is put into English word by word, and only if one language knows every word of it: a negation, a date or a
condition has no entry, so that such a sentence is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container

from webordinary.mail.parsing.small_talk import MARK

_TEXT = (
    rf"(?= (?:{MARK}|(?:dies\w*|cette|esta|questa|deze|de|la|das|dem) (?:foto|photo|bild)|das angeh|celle|celui|quella"
    "|l[ao] adjunt|die in))"
)
"""Only before a quotation or a photo: `in „…“` is `to`, and `in der Liste` is not."""
_GERMAN = rf"""
could you = (?:könn(?:t(?:en|est)?|en)|kannst|würde(?:n|st|t)?) (?:sie|du|ihr)|ich (?:möchte|hätte gern)|wir möchten
attached is = (?:anbei|im anhang)(?: ist)?
with it = damit|dadurch
add = (?:nehmen?|nimm)(?=.* auf\Z)
remove = (?:nehmen?|nimm)(?=.* (?:heraus|raus|weg|runter|von|aus)\b)
the one attached = (?:das|die) angehängten?(?! foto| bild)
photo of the = (?:foto|bild) (?:vo[nm]|des)(?: (?:der|dem|den))?(?! \w*seite| {MARK})
for = für
changes = dinge|sachen|änderungen|punkte
at the end of = am ende(?= de[rs] )
under = unter(?:halb)?
set = setzen?
two = zwei
three = drei
prices = preise|zeiten
becomes = wird(?: zu)?|werden zu
attached is = hier(?: ist)?
change = ände(?:re|rn)|ersetzen?|anpassen|(?:aus)?tauschen?|umbenennen|korrigieren?|aktualisieren?
 = bitte|sie|gerne?|mal|doch|noch|jetzt|nun|dort|da|es|auch
 = hinzu|ein\Z|auf\Z|um|aus|weg|raus|heraus|aber|heißen|lauten|stehen|sein|werden|steht dann
make = mach(?:en|e)?
to = (?:in|durch|zu|auf|gegen|mit){_TEXT}
from = von{_TEXT}
should = soll(?:en|te|ten)?|muss|müss(?:te|en)
says = steht|heißt|lautet
instead of = (?:an)?statt|anstelle von
new = neue[rnsm]?
a = eine?[nrms]?
this = dies(?:e[rnsm]?)?|angehängte[rnsm]?|beigefügte[rnsm]?
add = füge?n?|ergänzen?|stellen?|(?:hinzu|ein)fügen|schreiben?
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
text = text|wort|wörter|nummer|preis|adresse|öffnungszeiten|uhrzeit|telefonnummer|knopf|button|schaltfläche
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
_FRENCH = rf"""
photo of the = photo (?:de|du|des|d')(?: (?:la|l'))?(?! page| {MARK})
attached = (?:ci-)?jointe?s?
the one attached = cel(?:le|ui) (?:en pièce jointe|ci-jointe?)
add it = ajoute[zr]?-l[ae]|met(?:s|tez)-l[ae]
for = pour
changes = choses|modifications
it = l'(?=ajout|mett|remplac|enlev|supprim)
becomes = devien(?:t|nent)
two = deux
three = trois
prices = les prix
attached is = voici|ci-joint
could you = (?:pourri|pouv)ez-vous|(?:peux|pourrais)-tu|(?:je voudrais|j'aimerais)(?: que vous)?|nous voudrions
change = chang(?:er?|ez)|modifi(?:er?|ez)|remplac(?:er?|ez)|corrig(?:er?|ez)
 = merci d[e']|veuillez|svp|s'il (?:vous|te) plaît|y|maintenant|aussi
to = (?:en|par|pour|à|avec){_TEXT}
from = de{_TEXT}
should be = (?:doit|devrait|doivent|devraient)(?: être| dire| devenir)?
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
text = texte|mot|téléphone|numéro(?: de téléphone)?|prix|adresse|horaires|bouton
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
_SPANISH = rf"""
it = l[ao](?= (?:puede|añad|ponga))
becomes = pasa a ser
two = dos
three = tres
prices = precios
add it = añád[ae]l[ao]|agrég[au]el[ao]|p[óo]n(?:ga)?l[ao]
photo of the = (?:foto|imagen) del?(?: (?:la|los|las))?(?! página| {MARK})
the one attached = l[ao] (?:adjunt[ao]|que adjunto)
for = para
changes = cosas|cambios
attached is = (?:te |le )?adjunto|aquí (?:está|tiene)
could you = (?:podría|puede)[sn]?|podéis|podríais|(?:me|nos) gustaría(?: que)?|quisiera(?: que)?|queremos|quiero
change = cambi(?:ar?|en?|ad)|modifi(?:car?|quen?)|reempla(?:zar?|cen?)|sustitu(?:ir|ye|yan?)|corr(?:ige|egir|ijan?)
 = por favor|ahora|también
to = (?:por|a|en|con){_TEXT}
should be = (?:debe|debería|tiene que)(?: ser| decir)?|fuera|sea
instead of = en (?:vez|lugar) de
this = est[ea]|adjunt[ao]
new = nuev[ao]
a = una?
add = añad(?:ir|[ea]n?|id)|agreg(?:ar?|uen?|ad)|pon(?:er|gan?|ed)?
remove = elimin(?:ar?|en?|ad)|borr(?:ar?|en?|ad)|quit(?:ar?|en?|ad)|suprim(?:ir|[ea]n?|id)
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
text = texto|palabra|teléfono|número(?: de teléfono)?|precio|dirección|horario|botón
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
_ITALIAN = rf"""
it = l[ao](?= (?:aggiung|mett|inseri|sostitu))
becomes = divent(?:a|are|i)
two = due
three = tre
prices = prezzi
add it = aggiung[ai]l[ao]|mettil[ao]|inserisc[ai]l[ao]
photo of the = (?:foto|immagine) (?:d[ie]|dell?[ao']?|dei|delle)(?! pagina| {MARK})
from = da{_TEXT}
the one attached = quell[ao] (?:allegat[ao]|in allegato)
for = per
changes = cose|modifiche
attached is = \Ain allegato|ecco|allego
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
text = testo|parola|telefono|numero(?: di telefono)?|prezzo|indirizzo|orario|pulsante
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
_DUTCH = rf"""
attached = in de bijlage
photo of the = (?:foto|afbeelding) van(?: (?:de|het))?(?! \w*pagina| {MARK})
the one attached = (?:die|degene) in de bijlage
for = voor
changes = dingen|wijzigingen
it = die
attached is = \A(?:hierbij|bijgaand|bijgevoegd|in de bijlage)
becomes = wordt
two = twee
three = drie
prices = prijzen
could you = (?:kun|wil|zou|kan)(?:t)? (?:je|u|jij)|ik (?:wil|zou)|we willen
change = verander(?:en|t)?|wijzig(?:en)?|vervang(?:en)?|aanpassen|corrigeer|corrigeren
 = alsjeblieft|alstublieft|aub|graag|ook|nu|even|kunnen|willen|er|toe|zijn|worden|luiden|staan|heten
make = maak
to = (?:in|door|naar|met){_TEXT}
from = van{_TEXT}
should = moet|moeten|zou moeten
says = staat
instead of = in plaats van
this = dit|deze|bijgevoegde
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
text = tekst|woord|telefoonnummer|nummer|prijs|adres|openingstijden|knop
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
_AS_IT_IS = rf"{MARK}|of(?= {MARK})|#\w+|->|=>|→|[:,\d]+"
_VERBS = frozenset(("change", "add", "remove", "make", "set"))


def _entries(table: str) -> list[tuple[str, re.Pattern[str]]]:
    lines = [line.partition(" = ") for line in table.strip("\n").splitlines()]
    return [
        (english.strip(), re.compile(rf"(?:{words})(?![\w'])|(?:{words})(?<=')", re.I)) for english, _, words in lines
    ]


_TABLES = [_entries(table) for table in (_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _DUTCH)]


_LONGEST_ENDING = 2
_OF_THE_SITE = re.compile(r"[A-ZÄÖÜÉÈÀ][\w'-]{3,}")


def in_english(said: str, pages: Collection[str], known: Container[str] = ()) -> str | None:
    """A sentence of one of these languages as an English one; None where a word of it is known to none of them.

    The names of pages stay what they are, and so do `known` words of the site with a capital, such as those of what a
    photo shows. The verb goes to the front; in German and Dutch it may stand at the end.
    """
    said = re.sub(r"(?i)\b(hell|dunkel|licht|donker)(?=[a-z])", r"\1 ", said.replace("¿", " ").replace("¡", " "))
    text = " ".join(_PAGE_WORDS.sub(lambda found: _apart(found, pages), said).split())
    names = "|".join(re.escape(name) for name in sorted(pages, key=len, reverse=True) if name) or "(?!)"
    kept = re.compile(rf"(?:{names}|{_AS_IT_IS})(?![\w'])|{MARK}", re.I)
    return next((found for table in _TABLES if (found := _translated(text, table, kept, known)) is not None), None)


def _apart(found: re.Match[str], pages: Collection[str]) -> str:
    """`Preisseite` as `preise seite`, where that is the only page whose name differs by an ending."""
    name = found[1].rstrip("-").replace("-", " ").lower()
    alike = [one for one in pages if one and (one.startswith(name) or name.startswith(one))]
    alike = [one for one in alike if abs(len(one) - len(name)) <= _LONGEST_ENDING]
    known = name if name in pages or len(alike) != 1 else alike[0]
    return found[0] if name in ("start", "home", "haupt") else f"{known} {found[2]}"


def _translated(
    text: str, table: list[tuple[str, re.Pattern[str]]], kept: re.Pattern[str], known: Container[str]
) -> str | None:
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
        elif words and (name := _OF_THE_SITE.match(text, at)) and name[0].lower() in known:
            at, word = name.end(), name[0]
        else:
            return None
        words += [word] if word else []
        at += text[at : at + 1] == " "
    return re.sub(r"\bthe (?=the )", "", " ".join(_verb_first(words)))


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
