"""Add a page: in the shell of a simple page that the site has, linked where the others are."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath
from re import Match

from webordinary.site.agents.builtin.menus import link_in_menus
from webordinary.site.agents.builtin.outcomes import Desk, Done, Outcome, Unclear
from webordinary.site.agents.builtin.pages import label
from webordinary.site.agents.builtin.settings_menus import link_in_settings
from webordinary.site.agents.builtin.shells import html_shell, markdown_shell

_MARKDOWN = (".md", ".markdown", ".mdx")
_MAX_TITLE = 80
_MAX_PATTERNS = 50
_NO_PATTERN = (
    "I found no simple page on your site that a new page could be made like. Please ask your web person to add it."
)


def add_page(match: Match[str], desk: Desk) -> Outcome | None:
    """Add it with its title, its text if there is one, and a link in the menu."""
    groups = match.groupdict()
    title = desk.quotes.literal(groups["title"])
    words = desk.quotes.literal(groups.get("text") or "")
    slug = _slug(title)
    if not slug or len(title) > _MAX_TITLE:
        return Unclear(f"How should the new page be called? “{title[:_MAX_TITLE]}” cannot be its name.")
    same = [page for page in desk.draft.pages() if PurePosixPath(desk.draft.layout.slug(page)).name == slug]
    if same:
        return Unclear(f"There is {label(same[0], desk)} already. Under which other name should the new page be added?")
    for pattern in _patterns(desk)[:_MAX_PATTERNS]:
        text = _in_shell(desk, pattern, title, words)
        name = _name(pattern, slug, desk)
        if text is not None and not desk.draft.has(name):
            desk.draft.add_page(name, text, like=pattern)
            desk.page = name
            return Done(_summary(desk, name, title, label(pattern, desk)))
    return Unclear(_NO_PATTERN)


def _summary(desk: Desk, name: str, title: str, like: str) -> str:
    menu = link_in_settings(desk, name, title)
    in_front_matter = re.search(r"^menus?\b", desk.draft.text(name)[:500], re.MULTILINE)
    if not menu and (link_in_menus(desk, name, title) or in_front_matter):
        menu = " and put it into the menu"
    note = "" if menu else " I found no menu to put it into."
    return f"Added the page “{title}”, made like {like}{menu}.{note}"


def _patterns(desk: Desk) -> list[str]:
    """Pages of the top folder that may serve: those with a menu first, then the shortest, the home page last."""
    slug = desk.draft.layout.slug
    pages = [page for page in desk.draft.pages() if "/" not in slug(page) and "[" not in page and _is_page(page, desk)]
    return sorted(
        pages,
        key=lambda page: (slug(page) in ("", "404"), not desk.draft.page(page).all("nav"), len(desk.draft.text(page))),
    )


def _is_page(page: str, desk: Desk) -> bool:
    """Entries of a collection are shown by a page; they are none."""
    return PurePosixPath(page).is_relative_to(desk.draft.layout.pages[0])


def _in_shell(desk: Desk, pattern: str, title: str, words: str) -> str | None:
    page = desk.draft.page(pattern)
    if pattern.endswith(_MARKDOWN):
        return markdown_shell(page, title, words)
    home = desk.draft.page(desk.draft.pages()[0])
    others = (desk.draft.page(name) for name in desk.draft.pages()[:50] if name != pattern)
    titles = [other.words(head) for other in others if (head := other.title)]
    return html_shell(page, home, titles, title, words)


def _name(pattern: str, slug: str, desk: Desk) -> str:
    """`about.html` gives `workshops.html`, `about/index.html` gives `workshops/index.html`."""
    path = PurePosixPath(pattern)
    if path.stem in ("index", "_index") and desk.draft.layout.slug(pattern):
        return str(path.parent.with_name(slug) / path.name)
    return str(path.with_name(slug + path.suffix))


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title.replace("ß", "ss")).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:60].strip("-")
