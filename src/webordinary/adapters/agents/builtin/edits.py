"""Change this text to that."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import PurePosixPath
from re import Match

from webordinary.adapters.agents.builtin.draft import AlreadySo, Done, EditContext, Outcome, Unclear
from webordinary.adapters.agents.builtin.html import is_title
from webordinary.adapters.agents.builtin.page import Element, Page, Patch, Span
from webordinary.adapters.agents.builtin.pages import label, resolve
from webordinary.jobs.agent_task import AttachedFile
from webordinary.model.mail import AttachmentKind

_EVERYWHERE = re.compile(
    r"\s+(?:everywhere|on\s+(?:all|every)\s+pages?|(?:on|across)\s+the\s+whole\s+site)\Z", re.IGNORECASE
)
_ON_PAGE = re.compile(r"\s+(?:on|in|at)\s+((?:the\s+|my\s+|our\s+)?[\w\s.-]{1,40}?(?:page|\.html?))\Z", re.IGNORECASE)
_TO = re.compile(r"\s+(?:to|with|by|into)\s+", re.IGNORECASE)
_NOUN = re.compile(
    r"\A(?:the|our|my)\s+(?:(?:text|words?|phrase|sentence|line|name|price|address|number|phone\s+number|e-?mail(?:\s+address)?)\s+)?",
    re.IGNORECASE,
)
_CONTEXT = 40
_LISTED = 6
_MAX_READINGS = 12


def replace_text(match: Match[str], desk: EditContext) -> Outcome | None:
    """Replace text that stands in one place, or everywhere when the customer says so."""
    wish, everywhere = _cut(match["wish"], _EVERYWHERE)
    splits = list(islice(_splits(wish, desk), _MAX_READINGS + 1))
    if not splits:
        return None
    if len(splits) > _MAX_READINGS:
        return Unclear("I cannot tell which text is the old one. Please quote both: change “old text” to “new text”.")
    readings = [_reading(old, new, page, desk) for old, new, page in splits]
    clear = [reading for reading in readings if reading.hits and (len(reading.hits) == 1 or everywhere)]
    if clear:
        return _apply(max(clear, key=lambda reading: len(reading.old)), desk)
    several = [reading for reading in readings if reading.hits]
    if several:
        return Unclear(_places(max(several, key=lambda reading: len(reading.old)), desk))
    first = readings[0]
    where = f" on {label(first.pages[0], desk)}" if len(first.pages) == 1 else " on your site"
    return first.question or Unclear(
        f"I did not find the text “{first.old}”{where}. Please copy it from the page exactly as it is there."
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to read a wish, and where the site holds its old text."""

    old: str
    new: str
    pages: list[str]
    hits: list[tuple[str, Span]]
    question: Unclear | None = None


def _reading(old: str, new: str, page_words: str, desk: EditContext) -> _Reading:
    pages = desk.draft.sources()
    if page_words:
        page = resolve(page_words, desk)
        if isinstance(page, Unclear):
            return _Reading(old, new, pages, [], page)
        pages = [page]
    return _Reading(old, new, pages, [(name, span) for name in pages for span in desk.draft.page(name).find(old)])


def _splits(wish: str, desk: EditContext) -> Iterator[tuple[str, str, str]]:
    """Every way to read `old to new`, the most literal first; the site decides which one is meant."""
    for to in _TO.finditer(wish):
        left, right = wish[: to.start()], wish[to.end() :]
        if not left.strip() or not right.strip():
            continue
        right, page = _cut(right, _ON_PAGE)
        left, page_before = _cut(left, _ON_PAGE)
        new = re.sub(r"\A(?:say|read)\s+", "", right, flags=re.IGNORECASE)
        bare = _NOUN.sub("", left)
        for old in dict.fromkeys((left, bare)):
            if old.strip():
                yield desk.quotes.literal(old), desk.quotes.literal(new), page or page_before


def _apply(reading: _Reading, desk: EditContext) -> Outcome:
    hits, old, new = reading.hits, reading.old, reading.new
    names = list(dict.fromkeys(name for name, _ in hits))
    for name, on_page in groupby(hits, key=lambda hit: hit[0]):
        page = desk.draft.page(name)
        spans = [(span, _cased(page.source[span.start : span.end], old, new)) for _, span in on_page]
        desk.draft.replace(name, *page.reworded(spans))
        if desk.draft.page(name).shape != page.shape:
            return Unclear(f"“{new}” means something special at that place of {label(name, desk)}. Any other words?")
    desk.page = names[0]
    where = label(names[0], desk) if len(names) == 1 else f"{len(names)} pages"
    times = f" in {len(hits)} places" if len(hits) > 1 else ""
    return Done(f"Changed “{old}” to “{new}” on {where}{times}.")


def _cased(found: str, old: str, new: str) -> str:
    """A sentence that began with a capital letter still does, unless the customer wrote it otherwise."""
    return new[:1].upper() + new[1:] if found[:1].isupper() and old[:1].islower() else new


def _places(reading: _Reading, desk: EditContext) -> str:
    old, hits = reading.old, reading.hits
    lines = [f"- on {label(name, desk)}: “{_around(desk.draft.page(name), span)}”" for name, span in hits[:_LISTED]]
    if len(hits) > _LISTED:
        lines.append(f"- and {len(hits) - _LISTED} more")
    listing = "\n".join(lines)
    return (
        f"“{old}” stands in {len(hits)} places, so I have changed nothing yet:\n{listing}\n"
        "Please quote a longer piece of the text, name the page (“… on the about page”), or say “everywhere”."
    )


def _around(page: Page, span: Span) -> str:
    text = next(text for text in page.texts if text.start <= span.start < text.end)
    start, end = max(text.start, span.start - _CONTEXT), min(text.end, span.end + _CONTEXT)
    words = " ".join(page.source[start:end].split())
    return f"{'…' if start > text.start else ''}{words}{'…' if end < text.end else ''}"


def _cut(text: str, pattern: re.Pattern[str]) -> tuple[str, str]:
    found = pattern.search(text)
    if found is None:
        return text, ""
    return text[: found.start()], found[1] if pattern.groups else found[0]


_SEPARATOR = re.compile(r"((?<!\s)\s++(?:[|·•\u2013\u2014:-]|&[mn]dash;|&middot;)\s++)")
_LONGEST_TITLE = 1_000  # a longer one is not taken apart
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def set_title(match: Match[str], desk: EditContext) -> Outcome | None:
    """Set a page's title, and its main heading where that said the same."""
    name = resolve(match["page"] or match["of"], desk)
    if isinstance(name, Unclear):
        return name
    new = desk.quotes.literal(match["new"])
    page = desk.draft.page(name)
    title, heading = page.title, page.first("h1")
    if title is None:
        return _set(desk, name, heading, new, "heading") if heading else _no_such(desk, name, "title")
    if title.computed:
        return _filled_in(desk, name, "title")
    says = page.words(heading) if heading and not heading.computed else ""
    segment = _segment(page, title, says)
    patches, note = [retitled(page, title, segment, new)], ""
    if heading is not None and says and (segment is not None or says == page.words(title)):
        patches.append(page.filled(heading, new))
    else:
        note = _left_alone(page, heading, new)
    desk.draft.replace(name, *patches)
    if desk.draft.text(name) == page.source:
        return AlreadySo(f"The title of {label(name, desk)} is “{new}” already.")
    return Done(f"Changed the title of {label(name, desk)} to “{new}”.{note}")


def set_heading(match: Match[str], desk: EditContext) -> Outcome | None:
    """Set a page's main heading, or the one that is quoted."""
    name = resolve(match["page"] or match["of"], desk)
    if isinstance(name, Unclear):
        return name
    page, new = desk.draft.page(name), desk.quotes.literal(match["new"])
    if match["old"] is None:
        heading = page.first("h1") or next(iter(page.all(*HEADINGS)), None)
        return _set(desk, name, heading, new, "heading") if heading else _no_such(desk, name, "heading")
    old = desk.quotes.literal(match["old"])
    found = [heading for heading in page.all(*HEADINGS) if page.words(heading).lower() == old.lower()]
    if len(found) == 1:
        return _set(desk, name, found[0], new, f"heading “{old}”")
    return None  # a plain change of text may still find it


def _set(desk: EditContext, name: str, element: Element, new: str, what: str) -> Outcome:
    page = desk.draft.page(name)
    title = page.title
    if element.computed and title is not None and title.value is not None and is_title(page, element):
        element = title  # the heading shows the title, so that is the one to change
    if element.computed:
        return _filled_in(desk, name, what)
    if page.words(element) == new:
        return AlreadySo(f"The heading of {label(name, desk)} is “{new}” already.")
    desk.draft.replace(name, page.filled(element, new))
    return Done(f"Changed the {what} of {label(name, desk)} to “{new}”.")


def segments(page: Page, title: Element) -> list[str]:
    """The parts of a title such as `Pots · Amelia` as they are written, and what stands between them."""
    inner = title.value.words if title.value else page.source[title.inner_start : title.inner_end]
    return _SEPARATOR.split(inner) if len(inner) <= _LONGEST_TITLE else [inner]


def retitled(page: Page, title: Element, segment: int | None, new: str) -> Patch:
    """The title with new words for one part, or for all of it."""
    if segment is None:
        return page.filled(title, new)
    parts = segments(page, title)
    old = parts[segment]
    lead, trail = old[: len(old) - len(old.lstrip())], old[len(old.rstrip()) :]
    parts[segment] = lead + (new if title.value else page.writing.escape(new, title)) + trail
    if title.value:
        return page.filled(title, "".join(parts))
    return Patch(title.inner_start, title.inner_end, "".join(parts))


def _segment(page: Page, title: Element, heading: str) -> int | None:
    """Which part of `Pots · Amelia` the page's heading repeats."""
    parts = [part.strip() if title.value else page.writing.read(part) for part in segments(page, title)]
    return next((i for i in range(0, len(parts), 2) if heading and parts[i] == heading), None)


def _left_alone(page: Page, heading: Element | None, new: str) -> str:
    if heading is None or heading.computed or page.words(heading) == new:
        return ""
    return (
        f" The big heading on the page still says “{page.words(heading)}”; "
        "write “set the heading to …” if that should change as well."
    )


def _no_such(desk: EditContext, name: str, what: str) -> Unclear:
    page = label(name, desk)
    return Unclear(f"{page[:1].upper()}{page[1:]} has no {what} that I could change. What should be changed instead?")


def _filled_in(desk: EditContext, name: str, what: str) -> Unclear:
    return Unclear(f"The {what} of {label(name, desk)} comes from the site's program. Please ask your web person.")


_SHOWN = 60


def add_paragraph(match: Match[str], desk: EditContext) -> Outcome | None:
    """Add it below the page's running text."""
    groups = match.groupdict()
    name = resolve(groups["page"] or groups["page2"], desk)
    if isinstance(name, Unclear):
        return name
    text = desk.quotes.literal(groups["new"] or groups["new2"] or groups["new3"])
    page = desk.draft.page(name)
    desk.draft.replace(name, page.writing.paragraph(page, text))
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return Done(f"Added the paragraph “{shown}” to {label(name, desk)}.")


_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def add_item(match: Match[str], desk: EditContext) -> Outcome | None:
    """Add it at the end of the page's list, or of the one that is named."""
    groups = match.groupdict()
    name = resolve(groups.get("page"), desk)
    if isinstance(name, Unclear):
        return name
    page, text = desk.draft.page(name), desk.quotes.literal(groups["new"])
    named = desk.quotes.literal(groups.get("called") or groups.get("about") or "")
    lists = _lists(page)
    found = _called(page, lists, named) if named else lists
    if len(found) != 1:
        return Unclear(_which(page, found or lists, label(name, desk), named))
    if text in (page.words(item) for item in page.children("li")[id(found[0])]):
        return AlreadySo(f"“{text}” is in the list on {label(name, desk)} already.")
    desk.draft.replace(name, page.writing.item(page, found[0], text))
    return Done(f"Added “{text}” to the list on {label(name, desk)}.")


def _lists(page: Page) -> list[Element]:
    """The lists of the text; not menus, and not lists within lists."""
    items = page.children("li")
    return [
        one
        for one in page.all("ul", "ol")
        if not one.inside("nav", "header", "footer") and not (one.parent and one.parent.inside("li"))
        and id(one) in items
    ]  # fmt: skip


def _called(page: Page, lists: list[Element], words: str) -> list[Element]:
    """Those with these words in the heading above, or with an item that begins with them."""
    wanted = re.compile(rf"\b{re.escape(words.lower())}")
    headings, items = page.all(*_HEADINGS), page.children("li")
    headed = [bool(wanted.search(page.words(heading).lower())) for heading in headings]
    above = (bisect_left(headings, one.start, key=lambda heading: heading.start) - 1 for one in lists)
    return [
        one
        for one, heading in zip(lists, above, strict=True)
        if (heading >= 0 and headed[heading]) or any(wanted.match(page.words(item).lower()) for item in items[id(one)])
    ]


def _which(page: Page, lists: list[Element], where: str, named: str) -> str:
    if not lists:
        return f"I found no list on {where}. To which page should it go?"
    firsts = "\n".join(f"- the list that begins with “{_first(page, one)}”" for one in lists[:_LISTED])
    known = f"no list “{named}”; it" if named else "more than one list; it"
    return (
        f"{where[:1].upper()}{where[1:]} has {known} has\n{firsts}\n"
        "Please say which one, for example: add “…” to the list that begins with "
        f"“{_first(page, lists[0])}”."
    )


def _first(page: Page, one: Element) -> str:
    words = page.words(page.children("li")[id(one)][0])
    return words if len(words) <= 60 else words[:59] + "…"


_BLOCKS = ("p", "li", "h2", "h3", "h4", "h5", "h6")
_NAMES = {"paragraph": ("p",), "item": ("li",), "heading": ("h2", "h3", "h4", "h5", "h6"), "": _BLOCKS}


def remove_text(match: Match[str], desk: EditContext) -> Outcome | None:
    """Remove a whole paragraph, item or heading where the words are all of it; else just the words."""
    old, what = desk.quotes.literal(match["old"]), (match["what"] or "").split()[-1:]
    pages = desk.draft.sources()
    if match["page"]:
        named = resolve(match["page"], desk)
        if isinstance(named, Unclear):
            return named
        pages = [named]
    kind = what[0].lower() if what and what[0].lower() in _NAMES else ""
    found = [(name, place) for name in pages for place in _removals_places(desk.draft.page(name), old, kind)]
    if not found:
        return Unclear(f"I did not find “{old}” on your site. Please copy it from the page exactly as it is there.")
    if len(found) > 1:
        places = ", ".join(dict.fromkeys(label(name, desk) for name, _ in found[:6]))
        return Unclear(f"“{old}” stands in {len(found)} places ({places}). Please quote more, or name the page.")
    (name, place), page = found[0], desk.draft.page(found[0][0])
    desk.draft.replace(name, _without(page, place) if isinstance(place, Element) else _removals_cut(page, place))
    desk.page = name
    return Done(f"Removed “{old}” from {label(name, desk)}.")


def _removals_places(page: Page, old: str, kind: str) -> Sequence[Element | Span]:
    """The blocks that say this and nothing else; if there are none, where the words stand."""
    wanted = " ".join(old.split())
    blocks = [e for e in page.all(*_NAMES[kind]) if not e.computed and page.words(e) == wanted]
    if blocks or kind:
        return blocks
    return [span for span in page.find(old) if not (span.element and span.element.inside("title", "h1"))]


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


def _removals_cut(page: Page, span: Span) -> Patch:
    """The words, and the space that would be one too many."""
    source, start, end = page.source, span.start, span.end
    after_end = source[end : end + 1] in (".", ",", "!", "?", "<", "\n", "\r", "")
    if source[start - 1 : start] == " " and (source[end : end + 1] == " " or after_end):
        start -= 1
    elif source[end : end + 1] == " " and source[start - 1 : start] in (">", "\n", ""):
        end += 1
    return Patch(start, end, "")


_SUFFIXES = {
    "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "image/avif": ".avif",
}  # fmt: skip
_NONE_ATTACHED = "There was no photo attached to your mail. Please send it again with the photo."


def add_photo(match: Match[str], desk: EditContext) -> Outcome | None:
    """Put the attached photos onto a page, after its first section."""
    groups = match.groupdict()
    name = resolve(groups.get("page"), desk)
    if isinstance(name, Unclear):
        return name
    photos = _photos(desk)
    if not photos:
        return Unclear(_NONE_ATTACHED)
    told = desk.quotes.literal(groups["of"]) if groups.get("of") else ""
    pictures = [
        (desk.draft.layout.address(_store(desk, photo), name), told or _words_of(photo.attachment.name))
        for photo in photos
    ]
    page = desk.draft.page(name)
    desk.draft.replace(name, page.writing.pictures(page, pictures))
    what = "the photo" if len(photos) == 1 else f"{len(photos)} photos"
    about = f" ({told})" if told else ""
    return Done(f"Added {what}{about} to {label(name, desk)}.")


def replace_photo(match: Match[str], desk: EditContext) -> Outcome | None:
    """Show the attached photo where another one was."""
    photos = _photos(desk)
    wanted = desk.quotes.literal(match["of"])
    pages = desk.draft.sources()
    if match["page"]:
        named = resolve(match["page"], desk)
        if isinstance(named, Unclear):
            return named
        pages = [named]
    found = [(name, image) for name in pages for image in desk.draft.page(name).all("img") if _shows(image, wanted)]
    if not found:
        return Unclear(f"I did not find a photo of “{wanted}”. On which page is it, and what does it show?")
    if len(found) > 1:
        places = ", ".join(f"“{image.attributes.get('alt', '')}” on {label(name, desk)}" for name, image in found[:6])
        return Unclear(f"More than one photo could be the one of “{wanted}”: {places}. Which one do you mean?")
    if len(photos) != 1:
        return Unclear(
            _NONE_ATTACHED if not photos else "Several photos are attached. Which one should be shown there?"
        )
    (name, image), stored = found[0], _store(desk, photos[0])
    page, address = desk.draft.page(name), desk.draft.layout.address(stored, name)
    desk.draft.replace(name, page.writing.picture_address(page, image, address))
    desk.page = name
    return Done(f"Replaced the photo of “{wanted}” on {label(name, desk)}.")


def _photos(desk: EditContext) -> list[AttachedFile]:
    return [file for file in desk.attachments if file.attachment.kind is AttachmentKind.IMAGE]


def _store(desk: EditContext, photo: AttachedFile) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", PurePosixPath(photo.attachment.name).stem.lower()).strip("-")[:60] or "photo"
    suffix = _SUFFIXES.get(photo.attachment.media_type) or PurePosixPath(photo.attachment.name).suffix.lower()
    return desk.draft.add_file(f"{desk.draft.layout.pictures}/{stem}{suffix}", photo.path)


def _shows(image: Element, wanted: str) -> bool:
    words = re.findall(r"[a-z0-9]+", wanted.lower())
    words = [word for word in words if word not in {"the", "a", "an", "my", "our"}] or words
    file = PurePosixPath(image.attributes.get("src", "")).stem.lower()
    told = f"{image.attributes.get('alt', '').lower()} {re.sub(r'[^a-z0-9]+', ' ', file)}"
    seen = set(re.findall(r"\w+", told))
    return bool(words) and all(seen & {word, f"{word}s", f"{word}es"} for word in words)


def _words_of(name: str) -> str:
    words = re.sub(r"[^\w]+|_+", " ", PurePosixPath(name).stem).strip()
    return "" if re.fullmatch(r"(?:img|image|dsc|photo|pxl|screenshot)?[\s\d]*", words, re.IGNORECASE) else words
