"""Photos: added to a page, or put in place of another."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath
from re import Match

from webordinary.model.mail import AttachmentKind
from webordinary.site.agents.builtin.html import Element, Page, escape
from webordinary.site.agents.builtin.outcomes import Desk, Done, Outcome, Unclear
from webordinary.site.agents.builtin.pages import label, resolve
from webordinary.site.task import AttachedFile

_FOLDERS = ("images", "img", "assets/images", "assets/img", "photos", "media")
_SUFFIXES = {
    "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "image/avif": ".avif",
}  # fmt: skip
_NONE_ATTACHED = "There was no photo attached to your mail. Please send it again with the photo."


def add_photo(match: Match[str], desk: Desk) -> Outcome | None:
    """Put the attached photos onto a page, after its first section."""
    groups = match.groupdict()
    name = resolve(groups.get("page"), desk)
    if isinstance(name, Unclear):
        return name
    photos = _photos(desk)
    if not photos:
        return Unclear(_NONE_ATTACHED)
    told = desk.quotes.literal(groups["of"]) if groups.get("of") else ""
    figures = [_figure(_store(desk, photo), name, told or _words_of(photo.attachment.name)) for photo in photos]
    _insert(desk, name, figures)
    what = "the photo" if len(photos) == 1 else f"{len(photos)} photos"
    about = f" ({told})" if told else ""
    return Done(f"Added {what}{about} to {label(name)}.")


def replace_photo(match: Match[str], desk: Desk) -> Outcome | None:
    """Show the attached photo where another one was."""
    photos = _photos(desk)
    wanted = desk.quotes.literal(match["of"])
    pages = desk.draft.pages()
    if match["page"]:
        page = resolve(match["page"], desk)
        if isinstance(page, Unclear):
            return page
        pages = [page]
    found = [(name, image) for name in pages for image in desk.draft.page(name).all("img") if _shows(image, wanted)]
    if not found:
        return Unclear(f"I did not find a photo of “{wanted}”. On which page is it, and what does it show?")
    if len(found) > 1:
        places = ", ".join(f"“{image.attributes.get('alt', '')}” on {label(name)}" for name, image in found[:6])
        return Unclear(f"More than one photo could be the one of “{wanted}”: {places}. Which one do you mean?")
    if len(photos) != 1:
        return Unclear(
            _NONE_ATTACHED if not photos else "Several photos are attached. Which one should be shown there?"
        )
    (name, image), stored = found[0], _store(desk, photos[0])
    _point(desk, name, image, stored)
    desk.page = name
    return Done(f"Replaced the photo of “{wanted}” on {label(name)}.")


def _photos(desk: Desk) -> list[AttachedFile]:
    return [file for file in desk.attachments if file.attachment.kind is AttachmentKind.IMAGE]


def _figure(stored: str, name: str, alt: str) -> str:
    return (
        f'<figure class="photo"><img src="{escape(_relative(stored, name))}" alt="{escape(alt)}" loading="lazy" '
        'style="max-width:100%;height:auto"></figure>'
    )


def _insert(desk: Desk, name: str, figures: list[str]) -> None:
    place, indent = _place(desk.draft.page(name))
    lines = (f"\n{indent}{figure}" if indent is not None else f"{figure}\n" for figure in figures)
    desk.draft.replace(name, place, place, "".join(lines))


def _place(page: Page) -> tuple[int, str | None]:
    """After the first section of the main part, or at the end of its article; else at the end of the page."""
    main = page.first("main") or page.first("article") or page.first("body")
    if main is None:
        return len(page.source), None
    sections = [e for e in page.all("section", "header", "div") if e.parent is main and e.end > 0]
    if main.name != "body" and sections:
        return sections[0].end, _indent(page, sections[0])
    articles = [e for e in page.all("article") if e.parent is main]
    if len(articles) == 1:
        return articles[0].inner_end, None
    footer = page.first("footer")
    if footer is not None and footer.parent is main:
        return footer.start, None
    return main.inner_end, None


def _indent(page: Page, element: Element) -> str:
    line = page.source.rfind("\n", 0, element.start) + 1
    lead = page.source[line : element.start]
    return lead if not lead.strip() else ""


def _store(desk: Desk, photo: AttachedFile) -> str:
    folder = next((folder for folder in _FOLDERS if desk.draft.has_folder(folder)), _FOLDERS[0])
    stem = re.sub(r"[^a-z0-9]+", "-", PurePosixPath(photo.attachment.name).stem.lower()).strip("-")[:60] or "photo"
    suffix = _SUFFIXES.get(photo.attachment.media_type) or PurePosixPath(photo.attachment.name).suffix.lower()
    return desk.draft.add_file(f"{folder}/{stem}{suffix}", photo.path)


def _relative(file: str, page: str) -> str:
    return posixpath.relpath(file, posixpath.dirname(page) or ".")


def _point(desk: Desk, name: str, image: Element, stored: str) -> None:
    """Change only the value of the tag's src; a srcset would still show the old photo, so it goes."""
    tag = desk.draft.text(name)[image.start : image.inner_start]
    tag = re.sub(r"""\s+srcset\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)""", "", tag, flags=re.IGNORECASE)
    source = escape(_relative(stored, name))
    tag = re.sub(
        r"""(\ssrc\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s>]+)""",
        lambda m: f'{m[1]}"{source}"',
        tag,
        count=1,
        flags=re.IGNORECASE,
    )
    desk.draft.replace(name, image.start, image.inner_start, tag)


def _shows(image: Element, wanted: str) -> bool:
    words = re.findall(r"[a-z0-9]+", wanted.lower())
    words = [word for word in words if word not in {"the", "a", "an", "my", "our"}] or words
    file = PurePosixPath(image.attributes.get("src", "")).stem.lower()
    told = f"{image.attributes.get('alt', '').lower()} {re.sub(r'[^a-z0-9]+', ' ', file)}"
    return bool(words) and all(re.search(rf"\b{word}(?:s|es)?\b", told) for word in words)


def _words_of(name: str) -> str:
    words = re.sub(r"[^\w]+|_+", " ", PurePosixPath(name).stem).strip()
    return "" if re.fullmatch(r"(?:img|image|dsc|photo|pxl|screenshot)?[\s\d]*", words, re.IGNORECASE) else words
