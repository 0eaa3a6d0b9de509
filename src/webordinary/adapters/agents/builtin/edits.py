"""What each kind of wish does to the draft of a site: it is done, it is so already, or something has to be asked."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

from webordinary.adapters.agents.builtin.colours import change_colour
from webordinary.adapters.agents.builtin.draft import Draft
from webordinary.adapters.agents.builtin.grammar import Wish
from webordinary.adapters.agents.builtin.html import is_title
from webordinary.adapters.agents.builtin.page import MAX_HEADER, Element, Page, Patch, Picture, Span, size_of
from webordinary.jobs.agent_task import AttachedFile
from webordinary.model.mail import AttachmentKind

LISTED = 8
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Done:
    """It is in the draft; `summary` tells the customer."""

    summary: str


@dataclass(frozen=True, slots=True)
class AlreadySo:
    """The site is as wished."""

    summary: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """It could mean several things, or something is missing; `choices` are pages, with the place on each."""

    question: str
    choices: tuple[tuple[str, int], ...] = ()


Outcome = Done | AlreadySo | Unclear


@dataclass(slots=True)
class Desk:
    """The draft and the files of the mail."""

    draft: Draft
    attachments: tuple[AttachedFile, ...] = ()

    def page_names(self) -> dict[str, str]:
        """The pages by file name, by their name in the address, by title and heading; the homepage by "" as well."""
        pages = self.draft.pages()
        names: dict[str, set[str]] = {"": {pages[0]}} if pages else {}
        for page in pages:
            names.setdefault(page.lower(), set()).add(page)
            for name in self._names(page):
                names.setdefault(" ".join(name.lower().replace("\u2019", "'").split()), set()).add(page)
        return {name: found.pop() for name, found in names.items() if len(found) == 1}

    def _names(self, page: str) -> Iterable[str]:
        slug = PurePosixPath(self.draft.layout.slug(page)).name
        parsed = self.draft.page(page)
        heads = [parsed.words(head) for head in (parsed.title, parsed.first("h1")) if head is not None]
        parts = [part.strip() for head in heads for part in re.split(r"\s[|·–—:-]\s", head)[:1]]  # noqa: RUF001
        return [name for name in (slug, re.sub(r"[-_]", " ", slug), *heads, *parts) if 0 < len(name) <= _LONGEST_NAME]

    def label(self, page: str) -> str:
        """How to call a page, or a part of pages, in a reply."""
        layout = self.draft.layout
        name = PurePosixPath(layout.slug(page)).name
        if not name:
            return "the homepage"
        part = any(PurePosixPath(page).is_relative_to(folder) for folder in layout.parts)
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name) if part else name
        return f"the {name.replace('-', ' ').replace('_', ' ')} {'part' if part else 'page'}"

    def labels(self, pages: Iterable[str]) -> str:
        """A short list of pages."""
        names = list(dict.fromkeys(map(self.label, pages)))
        return ", ".join(names[:LISTED]) + (" and more" if len(names) > LISTED else "")

    def target(self, wish: Wish) -> str | Unclear:
        """The page of a wish: the named one, or the only one; a title without a page is that of the homepage."""
        pages = self.draft.pages()
        if not pages:
            return Unclear("I found no page on your site that I could change.")
        page = wish.page or (pages[0] if len(pages) == 1 or wish.kind == "title" else "")
        if not page:
            return Unclear(f"On which page? Your site has {self.labels(pages)}.", tuple((one, 0) for one in pages))
        return page

    def sources(self, wish: Wish) -> list[str]:
        """Where a text may stand."""
        return [wish.page] if wish.page else self.draft.sources()

    def photos(self) -> list[AttachedFile]:
        """The photos of the mail."""
        return [file for file in self.attachments if file.attachment.kind is AttachmentKind.IMAGE]


def follow(wish: Wish, desk: Desk) -> Outcome:
    """Do one wish on the draft."""
    if wish.doubt:
        text = wish.get(wish.doubt)
        return Unclear(
            f"Shall the new text be exactly “{text}”? Reply “yes”, or write the new text in quotation marks: “…”."
        )
    return EDITS[wish.kind](wish, desk)


def replace_text(wish: Wish, desk: Desk) -> Outcome:
    """Replace text that stands in one place, or everywhere if the customer says so."""
    old, new = wish.get("old"), wish.get("new")
    hits = [
        (name, span) for name in desk.sources(wish) for span in desk.draft.page(name).find(old) if _is_in(span, wish)
    ]
    if near := wish.get("near"):
        hits = [(name, span) for name, span in hits if _stands_with(desk.draft.page(name), span, near)]
    hits = hits[wish.pick - 1 : wish.pick] if wish.pick else hits
    if not hits:
        where = f" on {desk.label(wish.page)}" if wish.page else " on your site"
        where += f" with “{near}”" if near else ""
        return Unclear(f"I did not find the text “{old}”{where}. Please copy it from the page exactly as it is there.")
    if len(hits) > 1 and not wish.everywhere:
        return _which_place(old, hits, desk)
    for name, on_page in groupby(hits, key=lambda hit: hit[0]):
        page = desk.draft.page(name)
        spans = [(span, _cased(page.source[span.start : span.end], old, new)) for _, span in on_page]
        desk.draft.replace(name, *page.reworded(spans), *_mail_links(page, spans, old))
        if desk.draft.page(name).shape != page.shape:
            return Unclear(f"“{new}” means something special at that place of {desk.label(name)}. Any other words?")
    times = f" in {len(hits)} places" if len(hits) > 1 else ""
    return Done(f"Changed “{old}” to “{new}” on {desk.labels(name for name, _ in hits)}{times}.")


def _mail_links(page: Page, spans: list[tuple[Span, str]], old: str) -> list[Patch]:
    """A link that writes to the address that it shows goes on doing so."""
    links = {id(span.element): (span.element, new) for span, new in spans if span.element and span.element.name == "a"}
    patches = []
    for link, new in links.values():
        at = page.source.find(f"mailto:{old}", link.start, link.inner_start) + len("mailto:")
        if link.attributes.get("href") == f"mailto:{old}" and at > link.start and re.fullmatch(r"[\w.+@-]+", new):
            patches.append(Patch(at, at + len(old), new))
    return patches


_REGIONS = {"footer": "footer", "header": "header", "menu": "nav"}
_ENTRIES = ("li", "tr", "dd", "p", "figure")


def _is_in(span: Span, wish: Wish) -> bool:
    return not wish.region or (span.element is not None and span.element.inside(_REGIONS[wish.region]))


def _stands_with(page: Page, span: Span, words: str) -> bool:
    """Whether the entry or card that a text stands in also has these words: `the price of the soup bowl`."""
    outer = [span.element, *span.element.ancestors] if span.element else []
    card = next((one for one in outer if one.name in _ENTRIES or page.within(one, *HEADINGS)), None)
    return card is not None and re.search(rf"\b{re.escape(words.lower())}\b", page.words(card).lower()) is not None


def _which_place(old: str, hits: list[tuple[str, Span]], desk: Desk) -> Unclear:
    lines = [
        f"{n}. {desk.label(name)}: {_around(desk.draft.page(name), span)}" for n, (name, span) in enumerate(hits, 1)
    ]
    more = f"\nand {len(hits) - LISTED} more" if len(hits) > LISTED else ""
    listing = "\n".join(lines[:LISTED]) + more
    counts: dict[str, int] = {}
    choices = []
    for name, _ in hits:
        counts[name] = counts.get(name, 0) + 1
        choices.append((name, counts[name]))
    return Unclear(
        f"“{old}” is in {len(hits)} places:\n{listing}\nWhich one do you mean? Reply with its number or its page, "
        "or with “everywhere”.",
        tuple(choices),
    )


_TAGS = re.compile(r"\A[^<>]*>|<[^<>]*>|<[^<>]*\Z")
"""Also those that a cut goes through."""
_SOURCE_AROUND, _SHOWN_AROUND = 200, 40


def _around(page: Page, span: Span) -> str:
    """The words as a visitor reads them, with some of those around them."""

    def words(start: int, end: int) -> str:
        return " ".join(page.writing.read(_TAGS.sub(" ", page.source[max(0, start) : end])).split())

    text = words(span.start - _SOURCE_AROUND, span.end + _SOURCE_AROUND)
    at = len(words(span.start - _SOURCE_AROUND, span.start))
    return f"“…{text[max(0, at - _SHOWN_AROUND) : at + len(words(span.start, span.end)) + _SHOWN_AROUND].strip()}…”"


def _cased(found: str, old: str, new: str) -> str:
    """`open` for `Open`, where the page begins a sentence and the customer does not."""
    if found[:1] != old[:1] and found[:1].isupper() and old[:1].islower():
        return new[:1].upper() + new[1:]
    return new


_SEPARATOR = re.compile(r"((?<!\s)\s++(?:[|\u00b7\u2013\u2014:-]|&[mn]dash;|&middot;)\s++)")
_LONGEST_TITLE = 1_000  # a longer one is not taken apart
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def set_title(wish: Wish, desk: Desk) -> Outcome:
    """Set a page's title, and its main heading where that says the same."""
    name = desk.target(wish)
    if isinstance(name, Unclear):
        return name
    new, old, page = wish.get("new"), wish.get("old"), desk.draft.page(name)
    title, heading = page.title, page.first("h1")
    says = page.words(heading) if heading and not heading.computed else ""
    if old and old not in (says, page.words(title) if title else "", *_parts(page, title)):
        return Unclear(f"The title of {desk.label(name)} is not “{old}”. What should be changed?")
    if title is None:
        return _fill(desk, name, heading, new, "heading") if heading else _no_such(desk, name, "title")
    if title.computed:
        return _filled_in(desk, name, "title")
    segment = next((i for i, part in enumerate(_parts(page, title)) if says and part == says and i % 2 == 0), None)
    patches, note = [_retitled(page, title, segment, new)], ""
    if heading is not None and says and (segment is not None or says == page.words(title)):
        patches.append(page.filled(heading, new))
    elif heading is not None and not heading.computed and says != new:
        note = f" The big heading on the page still says “{says}”."
    desk.draft.replace(name, *patches)
    if desk.draft.text(name) == page.source:
        return AlreadySo(f"The title of {desk.label(name)} is “{new}” already.")
    return Done(f"Changed the title of {desk.label(name)} to “{new}”.{note}")


def _segments(page: Page, title: Element) -> list[str]:
    """The parts of a title such as `Pots · Amelia` as they are written, and what stands between them."""
    inner = title.value.words if title.value else page.source[title.inner_start : title.inner_end]
    return _SEPARATOR.split(inner) if len(inner) <= _LONGEST_TITLE else [inner]


def _parts(page: Page, title: Element | None) -> list[str]:
    """The same as a visitor reads them."""
    if title is None:
        return []
    return [part.strip() if title.value else page.writing.read(part) for part in _segments(page, title)]


def _retitled(page: Page, title: Element, segment: int | None, new: str) -> Patch:
    """The title with new words for one part, or for all of it."""
    if segment is None:
        return page.filled(title, new)
    parts = _segments(page, title)
    parts[segment] = new if title.value else page.writing.escape(new, title)
    if title.value:
        return page.filled(title, "".join(parts))
    return Patch(title.inner_start, title.inner_end, "".join(parts))


def set_heading(wish: Wish, desk: Desk) -> Outcome:
    """Set the quoted heading, or the main heading of a page."""
    old, new = wish.get("old"), wish.get("new")
    if not old:
        name = desk.target(wish)
        if isinstance(name, Unclear):
            return name
        page = desk.draft.page(name)
        mains = page.all("h1") or page.all(*HEADINGS)
        if len(mains) != 1:
            return _no_such(desk, name, "single main heading")
        return _fill(desk, name, mains[0], new, "heading")
    found = [
        (name, heading)
        for name in desk.sources(wish)
        for heading in desk.draft.page(name).all(*HEADINGS)
        if desk.draft.page(name).words(heading).lower() == old.lower()
    ]
    if len(found) != 1:
        where = f" ({desk.labels(name for name, _ in found)})" if found else ""
        return Unclear(
            f"I found {len(found) or 'no'} headings “{old}”{where}. Which heading on which page do you mean?"
        )
    return _fill(desk, *found[0], new, f"heading “{old}”")


def _fill(desk: Desk, name: str, element: Element, new: str, what: str) -> Outcome:
    page = desk.draft.page(name)
    title = page.title
    if element.computed and title is not None and title.value is not None and is_title(page, element):
        element = title  # the heading shows the title, so the title is changed
    if element.computed:
        return _filled_in(desk, name, what)
    if page.words(element) == new:
        return AlreadySo(f"The heading of {desk.label(name)} is “{new}” already.")
    desk.draft.replace(name, page.filled(element, new))
    return Done(f"Changed the {what} of {desk.label(name)} to “{new}”.")


def _no_such(desk: Desk, name: str, what: str) -> Unclear:
    page = desk.label(name)
    return Unclear(f"{page[:1].upper()}{page[1:]} has no {what} that I could change. What should be changed instead?")


def _filled_in(desk: Desk, name: str, what: str) -> Unclear:
    return Unclear(f"The {what} of {desk.label(name)} comes from the site's program, which I do not change.")


def add_paragraph(wish: Wish, desk: Desk) -> Outcome:
    """Add a paragraph below the page's running text, below a heading, or after another paragraph."""
    name = desk.target(wish)
    if isinstance(name, Unclear):
        return name
    page, text = desk.draft.page(name), wish.get("quote")
    if wish.get("named", "spot", "nth"):
        named = wish.get("named", "spot")
        place = _counted(page, wish) if wish.get("nth") else _heading(page, named) or _block_of(page, wish)
        if place is None:
            return _no_heading(wish, desk, name)
        if place.name == "li":
            return _unclear_kind(text)
        desk.draft.replace(name, page.writing.paragraph_after(page, place, text))
    else:
        desk.draft.replace(name, page.writing.paragraph(page, text))
    return Done(f"Added the paragraph “{_short(text)}” to {desk.label(name)}.")


def add_text(wish: Wish, desk: Desk) -> Outcome:
    """Add text of which only its place or its form says whether it is a paragraph or an item of a list."""
    name, text = desk.target(wish), wish.get("quote")
    if isinstance(name, Unclear):
        return name
    page = desk.draft.page(name)
    place = _counted(page, wish) if wish.get("nth") else _block_of(page, wish)
    if place is not None and place.name == "li" and place.parent is not None:
        if page.children("li")[id(place.parent)][-1] is not place:
            return Unclear(f"I can only add to the end of a list. Shall “{_short(text)}” stand there?")
        desk.draft.replace(name, page.writing.item(page, place.parent, text))
        return Done(f"Added “{text}” to the list on {desk.label(name)}.")
    return add_paragraph(wish, desk) if text[-1:] in ".!?…" else _unclear_kind(text)


def _unclear_kind(text: str) -> Unclear:
    return Unclear(f"Shall “{_short(text)}” be a paragraph or a list item? Please write which.")


_ORDER = ("first", "second", "third", "fourth", "fifth", "sixth")


def _counted(page: Page, wish: Wish) -> Element | None:
    """The first, second or last paragraph or item; None where not all of them stand together."""
    nth = wish.get("nth").lower()
    if "paragraph" in wish.get("counted").lower():
        found = page.running_text()
        if len(found) != len([one for one in page.all("p") if not one.inside("footer", "nav", "header")]):
            return None
    else:
        lists = _lists(page)
        found = page.children("li")[id(lists[0])] if len(lists) == 1 else []
    place = len(found) - 1 if nth == "last" else _ORDER.index(nth)
    return found[place] if 0 <= place < len(found) else None


def _block_of(page: Page, wish: Wish) -> Element | None:
    """The only paragraph or item that has these words."""
    words = " ".join(wish.get("spot").split())
    blocks = [one for one in page.all("p", "li") if words and not one.computed and words in page.words(one)]
    return blocks[0] if len(blocks) == 1 else None


def replace_block(wish: Wish, desk: Desk) -> Outcome:
    """Give a paragraph, item or heading other words: it is named by its beginning or its number."""
    name = desk.target(wish) if wish.get("nth") else ""
    if isinstance(name, Unclear):
        return name
    found = [(name, _counted(desk.draft.page(name), wish))] if name else _beginning(wish, desk)
    return _refill(found, wish, desk)


def _beginning(wish: Wish, desk: Desk) -> list[tuple[str, Element | None]]:
    kind = wish.get("kind").lower().split()[-1]
    return [
        (name, one)
        for name in desk.sources(wish)
        for one in _places(desk.draft.page(name), wish.get("begins"), _KINDS.get(kind, ()), begins=True)
        if isinstance(one, Element)
    ]


def _refill(found: list[tuple[str, Element | None]], wish: Wish, desk: Desk) -> Outcome:
    if len(found) != 1 or found[0][1] is None or found[0][1].computed:
        return Unclear("I am not sure which text you mean. Please copy it from the page exactly as it is there.")
    (name, block), page, new = found[0], desk.draft.page(found[0][0]), wish.get("new")
    assert block is not None
    if page.within(block, "p", "ul", "ol", "img") or page.words(block) == new:
        return Unclear(f"There is more than text in that place of {desk.label(name)}. Which words should be changed?")
    before = _short(page.words(block))
    desk.draft.replace(name, page.filled(block, new))
    return Done(f"Changed “{before}” to “{new}” on {desk.label(name)}.")


def _heading(page: Page, words: str) -> Element | None:
    found = [heading for heading in page.all(*HEADINGS) if page.words(heading).lower() == words.lower()]
    return found[0] if len(found) == 1 else None


def _no_heading(wish: Wish, desk: Desk, name: str) -> Unclear:
    known = [f"“{desk.draft.page(name).words(heading)}”" for heading in desk.draft.page(name).all(*HEADINGS)]
    label = desk.label(name)
    if wish.get("nth"):
        return Unclear(f"I am not sure which place on {label} you mean. Please copy the words that stand there.")
    return Unclear(
        f"I found no single heading “{wish.get('under', 'named', 'spot')}” on {label}. "
        f"It has: {', '.join(known[:LISTED])}. Which one?"
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def add_item(wish: Wish, desk: Desk) -> Outcome:
    """Add an item at the end of the page's list, or of the named one."""
    text, named = wish.get("quote"), wish.get("name", "name2", "first")
    pages = [wish.page] if wish.page else desk.draft.pages()
    lists = [(name, one) for name in pages for one in _lists(desk.draft.page(name))]
    found = [(name, one) for name, one in lists if _is_called(desk.draft.page(name), one, named)] if named else lists
    found = found[wish.pick - 1 : wish.pick] if wish.pick else found
    if len(found) != 1:
        return _which_list(named, found or lists, desk)
    (name, one), page = found[0], desk.draft.page(found[0][0])
    if text in (page.words(item) for item in page.children("li")[id(one)]):
        return AlreadySo(f"“{text}” is in the list on {desk.label(name)} already.")
    desk.draft.replace(name, page.writing.item(page, one, text))
    return Done(f"Added “{text}” to the list on {desk.label(name)}.")


def _lists(page: Page) -> list[Element]:
    """The lists of the text; not menus, and not lists within lists."""
    items = page.children("li")
    return [
        one
        for one in page.all("ul", "ol")
        if not one.inside("nav", "header", "footer") and not (one.parent and one.parent.inside("li"))
        and id(one) in items
    ]  # fmt: skip


def _is_called(page: Page, one: Element, words: str) -> bool:
    """Whether the heading above a list has these words, or its first item begins with them."""
    wanted = re.compile(rf"\b{re.escape(words.lower())}")
    headings = page.all(*HEADINGS)
    above = bisect_left(headings, one.start, key=lambda heading: heading.start) - 1
    first = page.words(page.children("li")[id(one)][0]).lower()
    return bool((above >= 0 and wanted.search(page.words(headings[above]).lower())) or wanted.match(first))


def _which_list(named: str, lists: list[tuple[str, Element]], desk: Desk) -> Unclear:
    if not lists:
        return Unclear("I found no list there. To which list on which page should it go?")
    firsts = [
        f"{n}. the list on {desk.label(name)} that begins with “{_first(desk.draft.page(name), one)}”"
        for n, (name, one) in enumerate(lists[:LISTED], 1)
    ]
    known = f"I found no single list “{named}”" if named else "There is more than one list"
    listing = "\n".join(firsts)
    return Unclear(
        f"{known}:\n{listing}\nWhich one do you mean? Reply with its number.", tuple((name, 0) for name, _ in lists)
    )


def _first(page: Page, one: Element) -> str:
    return _short(page.words(page.children("li")[id(one)][0]))


_BLOCKS = ("p", "li", "h2", "h3", "h4", "h5", "h6")
_KINDS = {
    "paragraph": ("p",),
    "item": ("li",),
    "bullet": ("li",),
    "entry": ("li",),
    "point": ("li",),
    "heading": HEADINGS[1:],
}


def remove_text(wish: Wish, desk: Desk) -> Outcome:
    """Remove a whole paragraph, item or heading where the words are all of it; else just the words."""
    old, begins = wish.get("quote"), wish.get("begins")
    kind = wish.get("kind").lower().split()[-1:]
    names = _KINDS.get(kind[0] if kind else "", ())
    found = [
        (name, place)
        for name in desk.sources(wish)
        for place in _places(desk.draft.page(name), old or begins, names, begins=bool(begins))
    ]
    if wish.region:
        found = [(name, place) for name, place in found if _within(place, _REGIONS[wish.region])]
    if wish.get("nth"):
        name = desk.target(wish)
        counted = None if isinstance(name, Unclear) else _counted(desk.draft.page(name), wish)
        if isinstance(name, Unclear) or counted is None:
            return name if isinstance(name, Unclear) else _no_heading(wish, desk, name)
        found = [(name, counted)]
    found = found[wish.pick - 1 : wish.pick] if wish.pick else found
    if not found:
        return Unclear(f"I did not find “{old or begins}”. Please copy it from the page exactly as it is there.")
    if len(found) > 1:
        choices = (
            tuple((name, n) for n, (name, _) in enumerate(found, 1)) if wish.page else tuple((n, 0) for n, _ in found)
        )
        where = desk.labels(name for name, _ in found)
        return Unclear(f"“{old or begins}” is in {len(found)} places ({where}). Which one do you mean?", choices)
    (name, place), page = found[0], desk.draft.page(found[0][0])
    desk.draft.replace(name, _without(page, place) if isinstance(place, Element) else _cut(page, place))
    return Done(
        f"Removed “{_short(page.words(place) if isinstance(place, Element) else old)}” from {desk.label(name)}."
    )


def _within(place: Element | Span, region: str) -> bool:
    element = place if isinstance(place, Element) else place.element
    return element is not None and element.inside(region)


def _places(page: Page, words: str, names: tuple[str, ...], *, begins: bool) -> list[Element | Span]:
    """The blocks that say this and nothing else; if there are none, where the words stand."""
    wanted = " ".join(words.split())
    blocks: list[Element | Span] = [
        one
        for one in page.all(*(names or _BLOCKS))
        if not one.computed and (page.words(one).startswith(wanted) if begins else page.words(one) == wanted)
    ]
    if blocks or begins or names:
        return blocks
    return [span for span in page.find(words) if not (span.element and span.element.inside("title", "h1"))]


def _without(page: Page, block: Element) -> Patch:
    """The block and its lines, with one of the empty lines around it."""
    source = page.source
    start = source.rfind("\n", 0, block.start) + 1
    line_end = source.find("\n", block.end)
    end = len(source) if line_end < 0 else line_end + 1
    if source[start : block.start].strip() or source[block.end : end].strip():
        return Patch(block.start, block.end, "")
    empty = re.compile(r"[ \t]*\r?\n").match(source, end)
    before = re.search(r"\n[ \t]*\r?\n\Z", source[max(0, start - 200) : start])
    return Patch(start, empty.end() if empty and (before or start == 0) else end, "")


def _cut(page: Page, span: Span) -> Patch:
    """The words, and the space that would be one too many."""
    source, start, end = page.source, span.start, span.end
    if source[end : end + 1] in (".", "!", "?") and source[:start].rstrip()[-1:] in (".", "!", "?", ">", ""):
        end += 1  # a whole sentence goes with its end
    after_end = source[end : end + 1] in (".", ",", "!", "?", "<", "\n", "\r", "")
    if source[start - 1 : start] == " " and (source[end : end + 1] == " " or after_end):
        start -= 1
    elif source[end : end + 1] == " " and source[start - 1 : start] in (">", "\n", ""):
        end += 1
    return Patch(start, end, "")


_SUFFIXES = {
    "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "image/avif": ".avif",
}  # fmt: skip
_NONE_ATTACHED = "There was no photo attached to your mail. Please send your wish again with the photo."


def add_photo(wish: Wish, desk: Desk) -> Outcome:
    """Put the attached photos onto a page: below a heading, or after its first section."""
    photos = desk.photos()
    if not photos:
        return Unclear(_NONE_ATTACHED)
    many = re.search(r"\b(?:photo|picture|image|pic|photograph)s\b|\bthem\b|\bthese\b", wish.said, re.I)
    counted = re.search(r"\b(?:two|three|four|five|both)\b", wish.said, re.I)
    if (len(photos) > 1) != bool(many) or counted:
        return Unclear(
            f"Your mail has {len(photos)} photos attached. Which of them should be added, and to which page?"
        )
    name = desk.target(wish)
    if isinstance(name, Unclear):
        return Unclear(f"{name.question} Please attach the photo once more to your reply.", name.choices)
    page, told = desk.draft.page(name), wish.get("alt")
    heading = _heading(page, wish.get("under")) if wish.get("under") else None
    if wish.get("under") and heading is None:
        return _no_heading(wish, desk, name)
    if wish.get("end"):
        heading = next(iter(page.running_text()[-1:]), None)
    pictures = [_picture(desk, photo, name, told) for photo in photos]
    desk.draft.replace(name, page.writing.pictures(page, pictures, heading))
    what = "the photo" if len(photos) == 1 else f"{len(photos)} photos"
    about = f" ({told})" if told else ""
    return Done(f"Added {what}{about} to {desk.label(name)}.{_wordless(pictures)}")


def _picture(desk: Desk, photo: AttachedFile, page: str, told: str) -> Picture:
    """The photo in the site's folder, as this page names it, with words for people who cannot see it."""
    with photo.path.open("rb") as file:
        width, height = size_of(file.read(MAX_HEADER))
    address = desk.draft.layout.address(_store(desk, photo), page)
    return Picture(address, told or _words_of(photo.attachment.name), width, height)


def _wordless(pictures: list[Picture]) -> str:
    if len(pictures) != 1 or pictures[0].shows:
        return ""
    return " What does it show? Reply “the photo shows …”, for people who cannot see it."


def describe_photo(wish: Wish, desk: Desk) -> Outcome:
    """Give a picture words for people who cannot see it."""
    words, old = wish.get("new"), wish.get("old")
    found = [
        (name, one)
        for name in desk.sources(wish)
        for one in desk.draft.page(name).all("img")
        if not one.inside("header", "nav", "footer")
        and (one.attributes.get("alt", "") == old if old or not wish.page else True)
    ]
    if len(found) != 1:
        return Unclear("Which photo do you mean? Please name its page, if there is only one photo on it.")
    (name, image), page = found[0], desk.draft.page(found[0][0])
    width, height = (image.attributes.get(side, "") for side in ("width", "height"))
    size = (int(width), int(height)) if width.isdigit() and height.isdigit() else (0, 0)
    picture = Picture(image.attributes.get("src", ""), words, *size)
    desk.draft.replace(name, page.writing.other_picture(page, image, picture))
    return Done(f"The photo on {desk.label(name)} is described as “{words}” now.")


def _ask_for_place(wish: Wish, desk: Desk) -> Outcome:
    del wish
    pages = desk.labels(desk.draft.pages())
    return Unclear(f"What shall I do with which photo? Your site has {pages}. Please attach it to your reply again.")


def replace_photo(wish: Wish, desk: Desk) -> Outcome:
    """Show the attached photo where another one was."""
    photos, wanted = desk.photos(), wish.get("subject")
    if not wanted and not wish.page:
        return Unclear("Which photo should be replaced, and on which page?")
    found = _the_picture(wish, desk)
    if isinstance(found, Unclear):
        return found
    of = f" of “{wanted}”" if wanted else ""
    if len(photos) != 1:
        return Unclear(
            _NONE_ATTACHED if not photos else "Several photos are attached. Which one should be shown there?"
        )
    (name, image), page = found, desk.draft.page(found[0])
    picture = _picture(desk, photos[0], name, re.sub(r"\Athe (?=\w)", "The ", wanted))
    desk.draft.replace(name, page.writing.other_picture(page, image, picture))
    _drop_unused(desk, name, image)
    return Done(f"Replaced the photo{of} on {desk.label(name)}.{_wordless([picture])}")


def _drop_unused(desk: Desk, page: str, image: Element) -> None:
    """Remove the file of a picture that no page and no style of a plain site names any more."""
    source = image.attributes.get("src", "")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(page), source))
    draft, name = desk.draft, posixpath.basename(file)
    if draft.layout.kind != "plain" or ":" in source or source.startswith("/") or not name or file.startswith(".."):
        return
    if not any(name in draft.text(one) for one in (*draft.sources(), *draft.styles())):
        draft.remove_file(file)


def _the_picture(wish: Wish, desk: Desk) -> tuple[str, Element] | Unclear:
    """The only picture of the text that shows this, or that is on the page."""
    wanted = wish.get("subject")
    found = [
        (name, one)
        for name in desk.sources(wish)
        for one in desk.draft.page(name).all("img")
        if _shows(one, wanted) and not one.inside("header", "nav", "footer")
    ]
    found = found[wish.pick - 1 : wish.pick] if wish.pick else found
    if not found:
        of = f" of “{wanted}”" if wanted else ""
        return Unclear(f"I did not find a photo{of}. On which page is it, and what does it show?")
    if len(found) > 1:
        places = ", ".join(
            f"“{image.attributes.get('alt', '')}” on {desk.label(name)}" for name, image in found[:LISTED]
        )
        return Unclear(f"More than one photo could be meant: {places}. Which one do you mean?")
    return found[0]


def remove_photo(wish: Wish, desk: Desk) -> Outcome:
    """Take a picture off a page, with the figure around it."""
    if not wish.get("subject") and not wish.page:
        return Unclear("Which photo should be removed, and from which page?")
    found = _the_picture(wish, desk)
    if isinstance(found, Unclear):
        return found
    (name, image), page = found, desk.draft.page(found[0])
    figure = image.parent if image.parent is not None and image.parent.name in ("figure", "picture") else image
    shows = image.attributes.get("alt", "")
    desk.draft.replace(name, _without(page, figure))
    return Done(f"Removed the photo{f' “{shows}”' if shows else ''} from {desk.label(name)}.")


_AS_ASCII = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe", "å": "aa", "œ": "oe"})


def _store(desk: Desk, photo: AttachedFile) -> str:
    plain = unicodedata.normalize("NFC", PurePosixPath(photo.attachment.name).stem.lower()).translate(_AS_ASCII)
    plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60] or "photo"
    suffix = _SUFFIXES.get(photo.attachment.media_type) or PurePosixPath(photo.attachment.name).suffix.lower()
    return desk.draft.add_file(f"{desk.draft.layout.pictures}/{stem}{suffix}", photo.path)


def _shows(image: Element, wanted: str) -> bool:
    words = re.findall(r"[a-z0-9]+", wanted.lower())
    words = [word for word in words if word not in {"the", "a", "an", "my", "our"}]
    file = PurePosixPath(image.attributes.get("src", "")).stem.lower()
    told = f"{image.attributes.get('alt', '').lower()} {re.sub(r'[^a-z0-9]+', ' ', file)}"
    seen = set(re.findall(r"\w+", told))
    return all(seen & {word, f"{word}s", f"{word}es"} for word in words)


def _words_of(name: str) -> str:
    words = re.sub(r"[^\w]+|_+", " ", PurePosixPath(name).stem).strip()
    return "" if re.fullmatch(r"(?:img|image|dsc|photo|pxl|screenshot)?[\s\d]*", words, re.IGNORECASE) else words


def set_colour(wish: Wish, desk: Desk) -> Outcome:
    """Change a colour where the styles declare it."""
    done, words = change_colour(wish.get("part", "plainpart"), wish.get("tint"), desk.draft)
    if done is None:
        return Unclear(words)
    return Done(words) if done else AlreadySo(words)


EDITS: dict[str, Callable[[Wish, Desk], Outcome]] = {
    "title": set_title, "heading": set_heading, "text": replace_text, "block": replace_block, "add": add_text,
    "unphoto": remove_photo, "alt": describe_photo, "photo": add_photo,
    "attached": _ask_for_place, "it": _ask_for_place,
    "swap": replace_photo, "paragraph": add_paragraph, "item": add_item, "remove": remove_text, "colour": set_colour,
}  # fmt: skip
