"""What each kind of wish does to the draft of a site; each gives the words for the customer, or asks."""

from __future__ import annotations

import posixpath
import re
import struct
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TypeVar

from webordinary.adapters.agents.builtin.colours import READABLE, change_colour, contrast
from webordinary.adapters.agents.builtin.draft import Draft
from webordinary.adapters.agents.builtin.grammar import Wish
from webordinary.adapters.agents.builtin.page import ASIDE, HEADINGS, Element, Page, Patch, Picture, Span
from webordinary.adapters.agents.builtin.told import MONEY
from webordinary.jobs.ports import AttachedFile
from webordinary.mail.parsing.small_talk import word_set
from webordinary.model.jobs import NO_PHOTO
from webordinary.model.mail import AttachmentKind

LISTED = 8
_LONGEST_NAME, _STEM, _MENU_WORDS, _MOST_HEADS = 100, 4, 4, 10_000
_SEPARATOR = re.compile(r"(?<!\s)\s++(?:[|\u00b7\u2013\u2014:-]|&[mn]dash;|&middot;)\s++")
_REGIONS = {"footer": "footer", "header": "header", "menu": "nav"}
_HEADS = ("title", "h1")
_CARDS = frozenset(("li", "tr", "dd", "p", "figure"))
_ORDER = ("first", "second", "third", "fourth", "fifth", "sixth")
_HEADS_BY_DIGEST: dict[bytes, tuple[str, ...]] = {}
"""Title and main heading of pages by the digest of their text: most pages are as they were at the mail before."""

Place = tuple[str, Element]
"""An element of a page."""
Spot = TypeVar("Spot", Element, Span)


class Unclear(Exception):
    """A wish could mean several things, or something is missing; `choices` are pages, with the place on each."""

    def __init__(self, question: str, choices: Iterable[tuple[str, int]] = ()) -> None:
        super().__init__(question)
        self.question, self.choices = question, tuple(choices)


class EditContext:
    """The draft and the photos of the mail."""

    def __init__(self, draft: Draft, attachments: tuple[AttachedFile, ...] = ()) -> None:
        self.draft = draft
        self.photos = [file for file in attachments if file.attachment.kind is AttachmentKind.IMAGE]

    def page_names(self) -> dict[str, str]:
        """The pages by file name, by their name in the address, by title and heading; the homepage by "" as well."""
        pages = self.draft.pages()
        names: dict[str, set[str]] = {"": {pages[0]}} if pages else {}
        called = [(name, page) for page in pages for name in (page, *self._names(page))]
        for name, page in [*called, *(self._menu(pages[0]) if pages else ())]:
            names.setdefault(" ".join(name.lower().replace("\u2019", "'").split()), set()).add(page)
        return {name: found.pop() for name, found in names.items() if len(found) == 1}

    def _menu(self, home: str) -> Iterable[tuple[str, str]]:
        """What the links of the homepage call the other pages, in a few words."""
        pages, parsed, folder = set(self.draft.pages()), self.draft.page(home), posixpath.dirname(home)
        for link in parsed.all("a"):
            page = posixpath.normpath(posixpath.join(folder, link.attributes.get("href", "").partition("#")[0]))
            if page in pages and 0 < len((name := parsed.words(link)).split()) <= _MENU_WORDS:
                yield name, page

    def _names(self, page: str) -> Iterable[str]:
        slug = PurePosixPath(self.draft.layout.slug(page)).name
        text = self.draft.text(page).encode("utf-8", "surrogateescape")
        if (key := sha256(PurePosixPath(page).suffix.encode() + text).digest()) not in _HEADS_BY_DIGEST:
            if len(_HEADS_BY_DIGEST) >= _MOST_HEADS:
                _HEADS_BY_DIGEST.clear()
            parsed = self.draft.page(page)
            said = [parsed.words(head) for head in (parsed.title, *parsed.all("h1")[:1]) if head is not None]
            _HEADS_BY_DIGEST[key] = tuple(one for one in said if len(one) <= _LONGEST_NAME)
        heads = _HEADS_BY_DIGEST[key]
        return [
            name for name in (slug, slug.replace("-", " "), *heads, *(_SEPARATOR.split(h)[0] for h in heads)) if name
        ]

    def label(self, page: str) -> str:
        """How to call a page in a reply."""
        name = PurePosixPath(self.draft.layout.slug(page)).name.replace("-", " ").replace("_", " ")
        return f"the {name} page" if name else "the homepage"

    def labels(self, pages: Iterable[str]) -> str:
        """A short list of pages."""
        names = list(dict.fromkeys(map(self.label, pages)))
        return ", ".join(names[:LISTED]) + (" and more" if len(names) > LISTED else "")

    def target(self, wish: Wish) -> str:
        """The page of a wish: named by itself or by a heading, or the only one; the homepage for its title."""
        pages = self.draft.pages()
        if not pages:
            raise Unclear("I found no page on your site that I could change: I change pages in HTML and in Markdown.")
        page = wish.page or (pages[0] if len(pages) == 1 or wish.kind == "title" else "")
        if not page and (under := wish.get("under").lower()):
            found = {place[0] for place in self.find(wish, *HEADINGS) if self.words(place).lower() == under}
            found = found or {place[0] for place in self.find(wish, "p", "li") if under in self.words(place).lower()}
            page = found.pop() if len(found) == 1 else ""
        if not page:
            raise Unclear(f"On which page? Your site has {self.labels(pages)}.", ((one, 0) for one in pages))
        return page

    def find(self, wish: Wish, *names: str) -> list[Place]:
        """The elements of these names where the wish may mean them."""
        return [
            (page, one)
            for page in self.sources(wish)
            for one in self.draft.page(page).all(*names)
            if _in_region(one, wish)
        ]

    def spans(self, wish: Wish, words: str) -> list[tuple[str, Span]]:
        """Where these words stand and the wish may mean them."""
        found = ((page, self.draft.page(page).find(words)) for page in self.sources(wish))
        return [(page, span) for page, spans in found for span in spans if _in_region(span.element, wish)]

    def sources(self, wish: Wish) -> list[str]:
        """The pages that a wish may mean."""
        return [wish.page] if wish.page else self.draft.pages()

    def words(self, place: Place) -> str:
        """What a visitor reads there."""
        return self.draft.page(place[0]).words(place[1])

    def fill(self, place: Place, new: str) -> None:
        """Give an element these words in place of its own."""
        page, element = place
        if element.fixed or self.draft.page(page).within(element, "p", "ul", "ol", "img", "a"):
            raise Unclear(
                f"There is more than text in that place of {self.label(page)}. Which words should be changed?"
            )
        self.draft.replace(page, self.draft.page(page).filled(element, new))


def follow(wish: Wish, context: EditContext) -> str:
    """Do one wish on the draft; the words for the customer."""
    if wish.doubt:
        raise Unclear(
            f"Shall the new text be exactly “{wish.get('new')}”? Reply “yes”, or write it in quotation marks: “…”."
        )
    return EDITS[wish.kind](wish, context)


def _in_region(element: Element | None, wish: Wish) -> bool:
    return not wish.region or (element is not None and _REGIONS[wish.region] in element.outer | {element.name})


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def _one_of(found: list[tuple[str, Spot]], wish: Wish, context: EditContext, what: str) -> tuple[str, Spot]:
    """The only place, or the one that the customer chose; else the question which one is meant."""
    found = found[wish.pick - 1 : wish.pick] if wish.pick else found
    if len(found) == 1:
        return found[0]
    if not found:
        where = f" on {context.label(wish.page)}" if wish.page else ""
        raise Unclear(f"I did not find {what}{where}. Please copy it from the page exactly as it is there.")
    counts: Counter[str] = Counter()
    lines, choices = [], []
    for n, (page, element) in enumerate(found, 1):
        counts[page] += 1
        choices.append((page, counts[page]))
        if n <= LISTED:
            lines.append(f"{n}. {context.label(page)}: {_around(context.draft.page(page), element)}")
    lines += [f"and {len(found) - LISTED} more"] * (len(found) > LISTED)
    listing = "\n".join(lines)
    number = "its number or its page" if len(counts) > 1 else "its number"
    raise Unclear(
        f"I found {what} in {len(found)} places:\n{listing}\nWhich one do you mean? Reply with {number}"
        + (", or with “everywhere”." if wish.kind == "text" else "."),
        choices,
    )


def _around(page: Page, place: Element | Span) -> str:
    """The words as a visitor reads them, with some of those around them."""
    if isinstance(place, Element):
        return f"begins with “{_short(place.attributes.get('alt', '') or page.words(place))}”"
    before = re.sub(r"\A[^<>]*>", " ", page.source[max(0, place.start - 200) : place.start])
    after = re.sub(r"<[^<>]*\Z", " ", page.source[place.start : place.end + 200])
    text, _, rest = page.markup.read(f"{before}\0{after}").partition("\0")
    return f"“…{text[-40:]}{rest[:80]}…”"


def replace_text(wish: Wish, context: EditContext) -> str:
    """Replace text that stands in one place, or everywhere if the customer says so."""
    old, new, near = wish.get("old"), wish.get("new"), wish.get("near")
    beside = near or wish.get("about") or wish.get("section")
    hits = [
        (page, span)
        for page, span in context.spans(wish, old)
        if not beside or _stands_with(context.draft.page(page), span.element, beside)
    ]
    if not wish.everywhere or not hits:
        hits = [_one_of(hits, wish, context, f"“{old}”" + (f" with “{beside}”" if beside else ""))]
    by_page: dict[str, list[Patch]] = {}
    for name, span in hits:
        page = context.draft.page(name)
        found = page.source[span.start : span.end]
        written = page.markup.escape(_cased(found, old, new), span.element)
        by_page.setdefault(name, []).append(Patch(span.start, span.end, written))
        by_page[name] += _mail_link(page, span, old, new) + _phone_link(page, span, old, new)
    for name, patches in by_page.items():
        before = [one.name for one in context.draft.page(name).elements]
        context.draft.replace(name, *dict.fromkeys(patches))
        if [one.name for one in context.draft.page(name).elements] != before:
            raise Unclear(f"“{new}” means something special at that place of {context.label(name)}. Any other words?")
    times = f" in {len(hits)} places" if len(hits) > 1 else ""
    return f"Changed “{old}” to “{new}” on {context.labels(by_page)}{times}."


def set_value(wish: Wish, context: EditContext) -> str:
    """Change a value, or the only price, of the entry, row or card that has these words: `the price of the bowl`."""
    near, old = wish.get("near"), wish.get("old")
    prices = [
        (name, Span(text.start + price.start(), text.start + price.end(), text.element))
        for name in context.sources(wish)
        for text in context.draft.page(name).texts
        for price in MONEY.finditer(context.draft.page(name).source[text.start : text.end])
    ]
    places = context.spans(wish, old) if old else prices
    found = [one for one in places if not near or _stands_with(context.draft.page(one[0]), one[1].element, near)]
    if not (wish.everywhere and old and found):
        found = [_one_of(found, wish, context, f"“{old or near}”")]
    for name, span in reversed(found):
        page = context.draft.page(name)
        old = page.source[span.start : span.end]
        written = page.markup.escape(wish.get("new"), span.element)
        links = _mail_link(page, span, old, wish.get("new")) + _phone_link(page, span, old, wish.get("new"))
        context.draft.replace(name, Patch(span.start, span.end, written), *links)
    return f"Changed “{old}” to “{wish.get('new')}” on {context.labels(name for name, _ in found)}."


def _mail_link(page: Page, span: Span, old: str, new: str) -> list[Patch]:
    """A link that writes to the address that it shows goes on doing so."""
    link = span.element
    if link is None or link.attributes.get("href") != f"mailto:{old}" or not re.fullmatch(r"[\w.+@-]+", new):
        return []
    at = page.source.find(f"mailto:{old}", link.start, link.inner_start) + len("mailto:")
    return [Patch(at, at + len(old), new)]


def _phone_link(page: Page, span: Span, old: str, new: str) -> list[Patch]:
    """A link that calls the number that it shows goes on doing so."""
    link, digits = span.element, re.sub(r"\D", "", new)
    found = re.search(r"tel:([+\d]+)", page.source[link.start : link.inner_start]) if link is not None else None
    if link is None or found is None or not re.fullmatch(r"[\d ()/+-]{7,}", new):
        return []
    was = re.sub(r"\D", "", old)
    if not found[1].endswith(was.lstrip("0")) or was[:1] != digits[:1]:
        return []
    kept = found[1][: len(found[1]) - len(was.lstrip("0"))]
    return [Patch(link.start + found.start(1), link.start + found.end(1), kept + digits.lstrip("0"))]


def _stands_with(page: Page, place: Element | None, words: str) -> bool:
    """Whether the entry or card of a text, or the heading above it, has all these words: `the price of the bowl`."""
    card = place
    while card is not None and card.name not in _CARDS and not page.within(card, *HEADINGS):
        card = card.parent
    headings = page.all(*HEADINGS)
    above = bisect_left(headings, place.start if place else 0, key=lambda heading: heading.start) - 1
    around = [one for one in (card, headings[above] if above >= 0 else None) if one is not None]
    around += _named_by(page, card) if card is not None else []
    said, text = re.findall(r"\w+", words.lower()), " ".join(map(page.words, around))
    return all(re.search(rf"\b{re.escape(_singular(word))}", text, re.I) for word in said)


def _named_by(page: Page, card: Element) -> list[Element]:
    """The head of the table of a row, or the term of a description."""
    if card.name == "dd":
        return [one for one in page.all("dt") if one.end <= card.start][-1:]
    table = next((one for one in reversed(page.all("table")) if one.start < card.start and card.end <= one.end), None)
    return page.within(table, "tr")[:1] if table is not None and card.name == "tr" else []


def _singular(word: str) -> str:
    return word[:-1] if len(word) > _STEM and word.endswith("s") else word


def _cased(found: str, old: str, new: str) -> str:
    """`Open` for `open`, where the page begins a sentence and the customer does not."""
    starts = found[:1].isupper() and old[:1].islower()
    return new[:1].upper() + new[1:] if starts else new


def set_title(wish: Wish, context: EditContext) -> str:
    """Set a page's title, or the part of it before the site's name, and the main heading where that says the same."""
    name = context.target(wish)
    new, old, page, label = wish.get("new"), wish.get("old"), context.draft.page(name), context.label(name)
    title, heading = page.title, next(iter(page.all("h1")), None)
    says = page.words(heading) if heading and not heading.fixed else ""
    whole = page.words(title) if title else ""
    parts = _SEPARATOR.split(whole)
    part = next((one for one in parts if one in (says, old)), parts[0] if _names_the_site(parts, context) else whole)
    if old and old not in (says, whole, part):
        raise Unclear(f"The title of {label} is not “{old}”. What should be changed?")
    if title is None and heading is not None and says:
        context.fill((name, heading), new)
        return f"Changed the heading of {label} to “{new}”."
    if title is None or title.fixed:
        raise Unclear(f"The title of {label} is not one that I could change. What should be changed instead?")
    patches, note = [page.filled(title, whole.replace(part, new, 1))], ""
    if part != whole and title.tag:  # only the characters of the part
        spans = [one for one in page.find(part) if one.element is title]
        patches = [Patch(one.start, one.end, page.markup.escape(new, title)) for one in spans[:1]] or patches
    if heading is not None and says:
        if says == part:
            patches.append(page.filled(heading, new))
        elif says != new:
            note = f" The big heading on the page still says “{says}”."
    context.draft.replace(name, *patches)
    return f"Changed the title of {label} to “{new}”.{note}"


def _names_the_site(parts: list[str], context: EditContext) -> bool:
    """Whether the second of two parts of a title stands in the titles of other pages too."""
    if len(parts) != 2:
        return False
    titles = ((page, context.draft.page(page).title) for page in context.draft.pages())
    ends = [_SEPARATOR.split(context.words((page, title)))[-1] for page, title in titles if title is not None]
    return ends.count(parts[1]) > 1


def set_heading(wish: Wish, context: EditContext) -> str:
    """Set the quoted heading, or the main heading of a page."""
    old, new = wish.get("old"), wish.get("new")
    if old:
        found = [place for place in context.find(wish, *HEADINGS) if context.words(place).lower() == old.lower()]
        place, what = _one_of(found, wish, context, f"the heading “{old}”"), f"heading “{old}”"
    else:
        name, what = context.target(wish), "heading"
        mains = context.draft.page(name).all("h1") or context.draft.page(name).all(*HEADINGS)
        if len(mains) != 1:
            raise Unclear(
                f"I found {len(mains) or 'no'} main headings on {context.label(name)}. What should be changed?"
            )
        place = (name, mains[0])
    context.fill(place, new)
    return f"Changed the {what} of {context.label(place[0])} to “{new}”."


def _kinds(wish: Wish) -> tuple[str, ...]:
    """The elements that the wish's word for a kind means."""
    kind = wish.get("kind").lower()
    if re.search("item|bullet|entry|point", kind):
        return ("li",)
    return HEADINGS if kind == "heading" else ("p",) if kind == "paragraph" else ("p", "li", *HEADINGS[1:])


def _block(wish: Wish, context: EditContext) -> Place:
    """The paragraph, item or heading that a wish names by its beginning or by its number."""
    if wish.get("nth"):
        name = context.target(wish)
        return name, _counted(context, name, wish)
    begins = " ".join(wish.get("old").split())
    found = [place for place in context.find(wish, *_kinds(wish)) if context.words(place).startswith(begins)]
    return _one_of(found, wish, context, f"a text that begins with “{begins}”")


def _counted(context: EditContext, name: str, wish: Wish) -> Element:
    """The first, second or last paragraph or item of a page, if all of them stand together."""
    page, nth = context.draft.page(name), wish.get("nth").lower()
    lists = page.lists()
    found = lists[0] if _kinds(wish) == ("li",) and len(lists) == 1 else []
    if _kinds(wish) == ("p",) and len(page.running_text()) == len(page.text_of("p")):
        found = page.running_text()
    at = len(found) - 1 if nth == "last" else _ORDER.index(nth)
    if not 0 <= at < len(found):
        raise Unclear(
            f"I am not sure which place on {context.label(name)} you mean. Please copy the words that stand there."
        )
    return found[at]


def replace_block(wish: Wish, context: EditContext) -> str:
    """Give a paragraph, item or heading other words."""
    place = _block(wish, context)
    before = context.words(place)
    context.fill(place, wish.get("new"))
    return f"Changed “{_short(before)}” to “{wish.get('new')}” on {context.label(place[0])}."


def remove(wish: Wish, context: EditContext) -> str:
    """Remove a whole paragraph, item or heading where the words are all of it; else just the words."""
    text, kinds, section = " ".join(wish.get("text").split()), _kinds(wish), wish.get("section")
    found = [one for one in context.find(wish, *kinds) if context.words(one) == text]
    if section:
        found = [one for one in found if _stands_with(context.draft.page(one[0]), one[1], section)]
    if label := wish.get("label"):
        begins = re.compile(rf"{re.escape(label)}(?:\Z|\W+(?![^\W\d_])(?!\s))", re.I)  # `Rice bowl, 22 euros`
        found = [one for one in context.find(wish, "li", "tr") if begins.match(context.words(one))]
        text = label
    elif wish.get("list"):
        found = [one for one in found if _is_listed(context.draft.page(one[0]), one[1], wish.get("name"))]
    elif text and not found and kinds not in (("p",), ("li",), HEADINGS):
        spans = [
            one for one in context.spans(wish, text) if one[1].element is None or one[1].element.name not in _HEADS
        ]
        page, span = _one_of(spans, wish, context, f"“{text}”")
        if not wish.get("kind") and not _is_whole(context.draft.page(page), span):
            raise Unclear(f"“{text}” is only a part of a sentence. If just that shall go: “remove the words “{text}””.")
        context.draft.replace(page, _cut(context.draft.page(page).source, span.start, span.end))
        return f"Removed “{_short(text)}” from {context.label(page)}."
    place = _one_of(found, wish, context, f"“{text}”") if text else _block(wish, context)
    page, element = place
    if element.fixed:
        raise Unclear(f"That text of {context.label(page)} comes from the site's program, which I do not change.")
    words = _short(context.words(place))
    context.draft.replace(page, _without(context.draft.page(page).source, element))
    return f"Removed “{words}” from {context.label(page)}."


def _is_whole(page: Page, span: Span) -> bool:
    """Whether words are whole sentences, or all that stands between two marks."""
    before, after = page.source[: span.start].rstrip(), page.source[span.end :].lstrip()
    ends = page.source[span.end - 1] in ".!?…" or after[:1] in ("<", "", ".", "!", "?")
    return ends and before[-1:] in (">", ".", "!", "?", ":", "")


def _without(source: str, block: Element) -> Patch:
    """The block and its lines, with one of the empty lines around it."""
    start, end = source.rfind("\n", 0, block.start) + 1, source.find("\n", block.end) + 1 or len(source)
    if source[start : block.start].strip() or source[block.end : end].strip():
        return Patch(block.start, block.end, "")
    empty = re.compile(r"[ \t]*\r?\n").match(source, end)
    before = start == 0 or re.search(r"\n[ \t]*\r?\n\Z", source[max(0, start - 200) : start])
    return Patch(start, empty.end() if empty and before else end, "")


def _cut(source: str, start: int, end: int) -> Patch:
    """The words, and the space that would be one too many."""
    if source[end : end + 1] in (".", "!", "?") and source[:start].rstrip()[-1:] in (".", "!", "?", ">", ""):
        end += 1  # a whole sentence goes with its end
    ends = source[end : end + 1] in (" ", ".", ",", "!", "?", "<", "\n", "\r", "")
    if source[start - 1 : start] == " " and ends:
        start -= 1
    elif source[end : end + 1] == " " and source[start - 1 : start] in (">", "\n", ""):
        end += 1
    return Patch(start, end, "")


def add(wish: Wish, context: EditContext) -> str:
    """Add a paragraph or an item of a list: its kind, its place or its form says which."""
    text = wish.get("text")
    if wish.get("list") and wish.get("kind") == "paragraph":
        raise Unclear(f"Shall “{_short(text)}” be a paragraph or a list item? Please write which.")
    below_item = wish.get("under") and any(wish.get("under") == context.words(one) for one in context.find(wish, "li"))
    listed = wish.get("list") or (wish.get("kind") and _kinds(wish) == ("li",) and not wish.get("nth"))
    if listed and not below_item:
        return _add_item(wish, context)
    name = context.target(wish)
    page, place = context.draft.page(name), _place(wish, context)
    if place is not None and place.name == "li":
        items = next(one[: one.index(place) + 1] for one in page.lists() if place in one)
        context.draft.replace(name, page.markup.item(page, items, text))
        return f"Added “{text}” to the list on {context.label(name)}."
    above_a_list = any(_is_called(page, items, wish.get("under")) for items in page.lists() if wish.get("under"))
    if above_a_list and not wish.get("kind") and text[-1:] not in ".!?…":
        return _add_item(replace(wish, page=name), context)
    if wish.get("kind") == "heading" or (not wish.get("kind") and text[-1:] not in ".!?…"):
        raise Unclear(f"Shall “{_short(text)}” be a paragraph or a list item? Please write which.")
    last = page.running_text()[-1:]
    context.draft.replace(name, page.markup.block(page, place or (last[0] if last else None), text))
    return f"Added the paragraph “{_short(text)}” to {context.label(name)}."


def _place(wish: Wish, context: EditContext) -> Element | None:
    """The heading, paragraph or item that something is to stand below, if the wish names one."""
    name, under = context.target(wish), " ".join(wish.get("under").split())
    page = context.draft.page(name)
    if wish.get("nth"):
        return _counted(context, name, wish)
    if wish.get("top"):
        first = [one for one in page.all("h1") if one.parent and "main" in one.parent.outer | {one.parent.name}]
        if len(first) != 1:
            raise Unclear(f"Below which heading or paragraph of {context.label(name)} should it stand?")
        return first[0]
    if not under:
        return None
    headings = [one for one in page.all(*HEADINGS) if page.words(one).lower() == under.lower()]
    found = (
        headings
        if headings or wish.get("heading")
        else [one for one in page.all("p", "li") if not one.fixed and under in page.words(one)]
    )
    if len(found) != 1:
        known = ", ".join(f"“{page.words(one)}”" for one in page.all(*HEADINGS)[:LISTED])
        raise Unclear(f"I found no single heading “{under}” on {context.label(name)}. It has: {known}. Which one?")
    return found[0]


def _add_item(wish: Wish, context: EditContext) -> str:
    text, named = wish.get("text"), wish.get("name") or wish.get("under")
    called = "" if wish.page else context.page_names().get(named.lower(), "")
    named = "" if called else named  # the events list is the one on the page Events
    pages = [wish.page or called] if wish.page or called else context.draft.pages()
    lists = [(name, items) for name in pages for items in context.draft.page(name).lists()]
    found = [(name, one) for name, one in lists if _is_called(context.draft.page(name), one, named)] if named else lists
    if not found:
        raise Unclear(
            f"I found no list{f' “{named}”' if named else ''} there. To which list on which page should it go?"
        )
    first, _ = _one_of([(name, items[0]) for name, items in found], wish, context, "a list"), None
    items = next(items for name, items in found if (name, items[0]) == first)
    page = context.draft.page(first[0])
    if text in map(page.words, items):
        return f"“{text}” is in the list on {context.label(first[0])} already."
    context.draft.replace(first[0], page.markup.item(page, items, text))
    return f"Added “{text}” to the list on {context.label(first[0])}."


def _is_listed(page: Page, element: Element, named: str) -> bool:
    """Whether an item stands in a list, and in one of this name if there is a name."""
    return any(element in items and (not named or _is_called(page, items, named)) for items in page.lists())


def _is_called(page: Page, items: list[Element], words: str) -> bool:
    """Whether the heading above a list has these words, or its first item begins with them."""
    if page.words(items[0]).lower().startswith(words.lower()):
        return True
    headings = page.all(*HEADINGS)
    above = bisect_left(headings, items[0].start, key=lambda heading: heading.start) - 1
    if above < 0:
        return False
    said, names = (
        {word[:_STEM] for word in re.findall(r"\w{4,}", text.lower())} for text in (page.words(headings[above]), words)
    )
    return re.search(rf"\b{re.escape(words)}", page.words(headings[above]), re.I) is not None or bool(
        names and names <= said
    )


def add_photo(wish: Wish, context: EditContext) -> str:
    """Put the attached photos onto a page: below a heading, or after its first section."""
    count = len(context.photos)
    if not count:
        raise Unclear(NO_PHOTO)
    wanted = wish.get("photos") or "one"
    if (count > 1) != (wanted != "one") or wanted not in ("one", "many", str(count)):
        raise Unclear(f"Your mail has {count} photos attached. Which of them should be added, and to which page?")
    name, told = context.target(wish), wish.get("alt")
    page, place = context.draft.page(name), _place(wish, context)
    if place is None:
        places = page.running_text()[-1:] if wish.get("end") else _picture_places(page)
        place = places[0] if places else None
    pictures = [_picture(context, photo, name, told) for photo in context.photos]
    patches = [page.markup.block(page, place, picture) for picture in pictures]
    context.draft.replace(name, Patch(patches[0].start, patches[0].end, "".join(patch.new for patch in patches)))
    what = "the photo" if count == 1 else f"{count} photos"
    return f"Added {what}{f' ({told})' if told else ''} to {context.label(name)}.{_wordless(pictures)}"


def _picture_places(page: Page) -> list[Element]:
    """After the first section of the main part; in an article or in Markdown after the text."""
    sections = [
        one for one in page.all("section", "header", "div") if one.parent and one.parent.name in ("main", "article")
    ]
    return sections[:1] or page.running_text()[-1:]


def _picture(context: EditContext, photo: AttachedFile, page: str, told: str) -> Picture:
    """The photo in the site's folder, as this page names it, with words for people who cannot see it."""
    with photo.path.open("rb") as file:
        width, height = size_of(file.read(_MAX_HEADER))
    stem, suffix = PurePosixPath(photo.attachment.name).stem, PurePosixPath(photo.attachment.name).suffix.lower()
    plain = unicodedata.normalize("NFC", stem.lower()).translate(_AS_ASCII)
    plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60] or "photo"
    file_name = f"{context.draft.layout.pictures}/{plain}{_SUFFIXES.get(photo.attachment.media_type, suffix)}"
    draft, copy = context.draft, ""
    added = draft.add_file(file_name, photo.path)
    if photo.webp and draft.takes_copies(page):
        copy = draft.layout.address(draft.add_file(f"{PurePosixPath(added).with_suffix('.webp')}", photo.webp), page)
    words = re.sub(r"[^\w]+|_+", " ", PurePosixPath(photo.attachment.sent_as).stem or stem).strip()
    words = "" if re.fullmatch(r"(?:img|image|dsc|photo|pxl|screenshot|file)?[\s\d]*", words, re.I) else words
    return Picture(draft.layout.address(added, page), told or words, width, height, copy)


def _wordless(pictures: list[Picture]) -> str:
    if len(pictures) != 1 or pictures[0].shows:
        return ""
    return " What does it show? Reply “the photo shows …”, for people who cannot see it."


def _the_picture(wish: Wish, context: EditContext) -> Place:
    """The only picture of the text that shows what the wish says, or that is on the page."""
    wanted = wish.get("subject")
    found = [(page, one) for page, one in context.find(wish, "img") if _shows(one, wanted) and not one.outer & ASIDE]
    if not wanted and not wish.page:  # a description may be the answer to our question
        found = [place for place in found if wish.kind == "alt" and not place[1].attributes.get("alt")]
        if not found:
            raise Unclear("Which photo do you mean, and on which page?")
    return _one_of(found, wish, context, f"a photo{f' of “{wanted}”' if wanted else ''}")


_ARTICLES = word_set(
    "the a an my our der die das dem den des ein eine einer unser unsere la le les l un une d du notre el los las una "
    "nuestro nuestra il lo gli i uno nostra nostro de het een onze ons"
)


def _shows(image: Element, wanted: str) -> bool:
    words = set(re.findall(r"[a-z0-9]+", wanted.lower())) - _ARTICLES
    file = PurePosixPath(image.attributes.get("src", "")).stem
    seen = set(re.findall(r"[a-z0-9]+", f"{image.attributes.get('alt', '')} {file}".lower()))
    return all(seen & {word, f"{word}s", f"{word}es"} for word in words)


def replace_photo(wish: Wish, context: EditContext) -> str:
    """Show the attached photo where another one was."""
    name, image = _the_picture(wish, context)
    if len(context.photos) != 1:
        raise Unclear("Several photos are attached. Which one should be shown there?" if context.photos else NO_PHOTO)
    wanted, page = wish.get("subject"), context.draft.page(name)
    picture = _picture(context, context.photos[0], name, re.sub(r"\Athe (?=\w)", "The ", wish.get("alt") or wanted))
    context.draft.replace(name, page.markup.other_picture(page, image, picture))
    _drop_unused(context, name, _files_of(page, image))
    return f"Replaced the photo{f' of “{wanted}”' if wanted else ''} on {context.label(name)}.{_wordless([picture])}"


def _files_of(page: Page, image: Element) -> list[str]:
    """The addresses of a picture: its own, and those of its other sizes and kinds."""
    within = image.parent if image.parent is not None and image.parent.name == "picture" else None
    sources = [one for one in page.all("source") if one.parent is within] if within else []
    sets = [one.attributes.get("srcset", "") for one in (image, *sources)]
    listed = [entry.split()[0] for one in sets for entry in one.split(",") if entry.strip()]
    return list(dict.fromkeys([image.attributes.get("src", ""), *listed]))[:_MOST_SIZES]


def _drop_unused(context: EditContext, page: str, sources: Iterable[str]) -> None:
    """Remove the files of a picture that no page and no style of a plain site names any more."""
    draft = context.draft
    for source in sources if draft.layout.kind == "plain" else ():
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page), source))
        name = posixpath.basename(file)
        if ":" in source or source.startswith("/") or not name or file.startswith(".."):
            continue
        if not any(name in draft.text(one) for one in (*draft.pages(), *draft.styles())):
            draft.remove_file(file)


def remove_photo(wish: Wish, context: EditContext) -> str:
    """Take a picture off a page, with the figure around it; its copies go too, the photo stays in its folder."""
    name, image = _the_picture(wish, context)
    whole, page = image, context.draft.page(name)
    while whole.parent is not None and whole.parent.name in ("figure", "picture"):
        whole = whole.parent
    context.draft.replace(name, _without(page.source, whole))
    _drop_unused(context, name, _files_of(page, image)[1:])
    return f"Removed the photo “{image.attributes.get('alt', '')}” from {context.label(name)}."


def describe_photo(wish: Wish, context: EditContext) -> str:
    """Give the only picture of a page words for people who cannot see it."""
    name, image = _the_picture(wish, context)
    page, attributes = context.draft.page(name), image.attributes
    width, height = (int(attributes[side]) if attributes.get(side, "").isdigit() else 0 for side in ("width", "height"))
    picture = Picture(attributes.get("src", ""), wish.get("text"), width, height)
    context.draft.replace(name, page.markup.other_picture(page, image, picture))
    return f"The photo on {context.label(name)} is described as “{wish.get('text')}” now."


_AS_ASCII = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe", "å": "aa", "œ": "oe"})
_SUFFIXES = {f"image/{kind}": f".{kind}" for kind in ("png", "gif", "webp", "avif")} | {"image/jpeg": ".jpg"}
_MOST_SIZES = 40
_MAX_HEADER = 300_000
"""Bytes; the size of a JPEG stands behind its colour profile."""


def size_of(head: bytes) -> tuple[int, int]:
    """Width and height of a PNG or JPEG; zeros for anything else, and for damaged files."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack_from(">II", head, 16)
        at = 2
        while head.startswith(b"\xff\xd8"):
            mark, kind, length, height, width = struct.unpack_from(">BBHxHH", head, at)
            if mark != 0xFF or length < 2:
                break
            if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
                return width, height
            at += 2 + length
    except struct.error:
        pass
    return 0, 0


def set_colour(wish: Wish, context: EditContext) -> str:
    """Change a colour where the styles declare it."""
    part = wish.get("part") or wish.get("plain") or wish.get("heading") or "background"
    if question := change_colour(part, wish.get("tint"), context.draft):
        raise Unclear(question)
    ratio = contrast(part, context.draft)
    look = "" if ratio >= READABLE else "\nPlease look whether the text is still easy to read."
    if 0 < ratio < READABLE:
        look = (
            f"\nThat is hard to read: the contrast of text and background is {ratio:.1f} to 1 now, and should be "
            f"{READABLE} to 1 or more. Another colour may be better."
        )
    return f"Changed the colour of the {part} to {wish.get('tint')}.{look}"


def _ask_for_place(wish: Wish, context: EditContext) -> str:
    del wish
    pages = context.labels(context.draft.pages())
    raise Unclear(f"What shall I do with the photo? Your site has {pages}. Please attach it to your reply again.")


EDITS: dict[str, Callable[[Wish, EditContext], str]] = {
    "title": set_title, "heading": set_heading, "text": replace_text, "value": set_value, "block": replace_block,
    "add": add, "remove": remove, "photo": add_photo, "swap": replace_photo, "unphoto": remove_photo,
    "alt": describe_photo, "note": _ask_for_place, "colour": set_colour,
}  # fmt: skip
