"""Photos: added to a page, or put in place of another."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from re import Match

from webordinary.model.mail import AttachmentKind
from webordinary.site.agents.builtin.outcomes import Desk, Done, Outcome, Unclear
from webordinary.site.agents.builtin.page import Element
from webordinary.site.agents.builtin.pages import label, resolve
from webordinary.site.task import AttachedFile

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
    pictures = [
        (desk.draft.layout.address(_store(desk, photo), name), told or _words_of(photo.attachment.name))
        for photo in photos
    ]
    page = desk.draft.page(name)
    desk.draft.replace(name, page.writing.pictures(page, pictures))
    what = "the photo" if len(photos) == 1 else f"{len(photos)} photos"
    about = f" ({told})" if told else ""
    return Done(f"Added {what}{about} to {label(name, desk)}.")


def replace_photo(match: Match[str], desk: Desk) -> Outcome | None:
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


def _photos(desk: Desk) -> list[AttachedFile]:
    return [file for file in desk.attachments if file.attachment.kind is AttachmentKind.IMAGE]


def _store(desk: Desk, photo: AttachedFile) -> str:
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
