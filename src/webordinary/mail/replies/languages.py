"""The language of a reply: that of the mail, with gettext catalogues (`.po`) for what we say in it.

Our texts are written in English and stored so, in results too. A catalogue recognises them when a reply is laid out: a
text equals a `msgid`, or fills its {placeholders}. A text that no catalogue knows, such as an agent's own words, stays.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from itertools import chain
from pathlib import Path

from webordinary.mail.parsing.small_talk import word_set
from webordinary.model.errors import Permanent
from webordinary.model.mail import ParsedMail

ENGLISH = "en"
MAX_CATALOGUE_BYTES = 500_000
_LONGEST = 1_000
"""Characters of a text with placeholders; a longer one is nothing of ours."""
_DEEPEST = 3
_PLACE = re.compile(r"\{(\w+)\}")
_ENGLISH_WORDS = word_set(
    "the a and to of is on in please change can you with for this that it be should page thanks hello hi i we my our "
    "add remove new as from have could would photo super no not yes you your are do what where when how"
)
"""Without the words of commands, which are written in any language."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The texts of one language, and words by which its mails are known."""

    language: str
    words: frozenset[str]
    exact: dict[str, str] = field(default_factory=dict)
    patterns: tuple[tuple[str, re.Pattern[str], str], ...] = ()
    """Each with the text before its first placeholder."""

    def say(self, text: str, depth: int = 0) -> str:
        """The text in this language, as a whole or paragraph by paragraph and line by line; else as it is."""
        if text in self.exact:
            return self.exact[text]
        for gap in ("\n\n", "\n"):  # before the patterns: a placeholder does not reach into the next sentence of ours
            if gap in text:
                return gap.join(self.say(part, depth) for part in text.split(gap))
        known = self._known(text, depth)
        if known is not None:
            return known
        bare = _BULLET.match(text)
        return f"{bare[0]}{self.say(text[bare.end() :], depth)}" if bare else text

    def _known(self, text: str, depth: int) -> str | None:
        if len(text) > _LONGEST or depth >= _DEEPEST:
            return None
        listed = text.split(", ") if text.startswith("the ") else []
        if len(listed) > 1 and "“" not in listed[0]:  # pages; not one with an excerpt that has a comma
            return ", ".join(self.say(one, depth) for one in listed)
        for begin, pattern, words in self.patterns:
            if text.startswith(begin) and (found := pattern.fullmatch(text)):
                # What stands in quotation marks is the customer's, or of a page; a command is ours.
                values = {
                    name: value
                    if text[: found.start(name)].endswith("“") and name != "kind"
                    else self.say(value, depth + 1)
                    for name, value in found.groupdict().items()
                }
                return _PLACE.sub(partial(self._filled, values), words)
        return None

    def _filled(self, values: Mapping[str, str], place: re.Match[str]) -> str:
        """The value of a placeholder; in quotation marks its own are the inner ones of the language."""
        value = values.get(place[1], place[0])
        if not place.string[: place.start()].rstrip(_SPACES).endswith(_OPENING):
            return value
        before, after = _INNER_QUOTES.get(self.language, ("“", "”"))
        return _QUOTED.sub(lambda quoted: f"{before}{quoted[1]}{after}", value)


_SPACES, _OPENING = " \u00a0\u202f", tuple("“„«")
_INNER_QUOTES = {"de": ("\u201a", "\u2018"), "nl": ("\u2018", "\u2019")}
_QUOTED = re.compile(r"[“„«\"][ \u00a0\u202f]?([^“”„«»\"]*?)[ \u00a0\u202f]?[“”»\"]")
_FRENCH_SPACE = re.compile(r"(?<=«) | (?=[»;:!?])")
"""A line must not end before such a mark, nor after an opening one."""
_LABELS = r"(?:the homepage|the [^.“”]+? page)(?:, (?:the homepage|the [^.“”]+? page))*"
"""What our summaries call pages: no sentence, which may follow in the same line."""
_BULLET = re.compile(r"- |\d{1,2}\. ")


def read_catalogue(path: str, text: str) -> Catalogue:
    """A catalogue from the text of its `.po`, named like its language; entries without a translation are left out.

    Raises Permanent with the line that cannot be read.
    """
    exact: dict[str, str] = {}
    patterns = []
    words: frozenset[str] = frozenset()
    language = Path(path).stem
    for where, source, given in _entries(path, text):
        target = _FRENCH_SPACE.sub("\u00a0", given) if language == "fr" and source else given
        if not source:
            known = re.search(r"^X-Common-Words:(.*)$", target, re.M)
            words = frozenset(known[1].split()) if known else words
        elif not target:
            continue
        elif _PLACE.search(source):
            pieces = _PLACE.split(source)
            shape = "".join(
                re.escape(p) if n % 2 == 0 else f"(?P<{p}>{_shape_of(p, pieces[n - 1])})" for n, p in enumerate(pieces)
            )
            try:
                patterns.append((pieces[0], re.compile(shape, re.S), target))
            except re.error as problem:
                raise Permanent(f"{where}: {problem.msg}; write each {{placeholder}} once, as in our texts") from None
        else:
            exact[source] = target
    patterns.sort(key=lambda one: -len(one[1].pattern))
    return Catalogue(language, words, exact, tuple(patterns))


def _shape_of(name: str, before: str) -> str:
    is_label = name in ("page", "pages") and before.endswith((" of ", " on ", " to ", " from "))
    return _LABELS if is_label else ".+?"


def _entries(path: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Where an entry ends, as path and line; its text, and the translation."""
    entry: dict[str, list[str]] = {}
    field = ""
    for number, line in enumerate([*text.splitlines(), 'msgid ""'], 1):
        quoted = re.match(r'\s*(?:(msgid|msgstr)\s+)?(".*")\s*$', line)
        if quoted is None:
            continue
        field = quoted[1] or field
        if field == "msgid" and "msgstr" in entry:
            yield f"{path}:{number - 1}", "".join(entry["msgid"]), "".join(entry["msgstr"])
            entry = {}
        if field == "" or (field == "msgstr" and "msgid" not in entry):
            raise Permanent(f"{path}:{number}: a translation without its text; write msgid first, then msgstr")
        try:
            entry.setdefault(field, []).append("" + ast.literal_eval(quoted[2]))
        except (SyntaxError, TypeError, ValueError):
            raise Permanent(f'{path}:{number}: no text in quotes; write \\" for a quote inside of it') from None


@cache
def own_catalogues() -> tuple[Catalogue, ...]:
    """Those that come with the program."""
    folder = files("webordinary.mail.replies") / "locale"
    found = sorted((one for one in folder.iterdir() if one.name.endswith(".po")), key=lambda one: one.name)
    return tuple(read_catalogue(one.name, one.read_text("utf-8")) for one in found)


def catalogues(folder: Path | None = None) -> tuple[Catalogue, ...]:
    """Our own, and those of an operator's folder, which go first and replace ours of the same language."""
    theirs = [read_catalogue(str(path), _text_of(path)) for path in _files_in(folder)] if folder else []
    known = {one.language for one in theirs}
    return (*theirs, *(one for one in own_catalogues() if one.language not in known))


def _files_in(folder: Path) -> Sequence[Path]:
    if not folder.is_dir():
        raise Permanent(f"{folder} is no folder; make it, or leave `translations` empty")
    return sorted(folder.glob("*.po"))


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            read = file.read(MAX_CATALOGUE_BYTES + 1)
        if len(read) > MAX_CATALOGUE_BYTES:
            raise Permanent(f"{path} is larger than {MAX_CATALOGUE_BYTES:,} bytes; keep the texts of replies only")
        return read.decode("utf-8")
    except OSError as problem:
        raise Permanent(f"{path} cannot be read ({problem.strerror}); see to its owner and mode") from problem
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise Permanent(f"{path}:{line}: not UTF-8; save the file as UTF-8") from None


def language_of(mail: ParsedMail, known: Sequence[Catalogue], earlier: Iterable[ParsedMail] = ()) -> Catalogue | None:
    """The language that a mail is written in, None for English: by its common words, then by other mails.

    `earlier` are those of its conversation, for a `Ja`; what it quotes goes last, as its sender may
    have written none of it. A word that languages share, as `Photo` or `en`, tells nothing alone.
    """
    perhaps = None
    for text in chain((mail.text or mail.subject,), (one.text or one.subject for one in earlier), (mail.elided,)):
        plain = text.lower()[:5_000].replace("\u2019", "'")
        words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", re.sub(r"[“\"„«].*?[”\"“»]", " ", plain))
        counts = [sum(word in one.words for word in words) for one in known]
        most, english = max(counts, default=0), sum(word in _ENGLISH_WORDS for word in words)
        if english > most:
            return None
        if most > english:
            likely = known[counts.index(most)]
            if counts.count(most) == 1:
                return likely
            perhaps = perhaps or likely
    return perhaps
