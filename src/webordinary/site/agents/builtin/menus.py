"""A link to a new page, in the menus where the other pages are linked."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from webordinary.site.agents.builtin.outcomes import Desk
from webordinary.site.agents.builtin.page import Element, Page, Patch

_CURRENT = re.compile(r"""(?<!\s)\s++aria-current\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]++)""", re.IGNORECASE)
_CURRENT_CLASS = re.compile(r"""(\sclass\s*=\s*["'][^"']*?)\s?\b(?:is-)?(?:active|current|selected)\b""", re.IGNORECASE)


def link_in_menus(desk: Desk, new_page: str, title: str) -> int:
    """Add it to every menu in the pages and parts of the site; returns how many have it now."""
    linked = 0
    slugs = {PurePosixPath(slug).name for page in desk.draft.pages() if (slug := desk.draft.layout.slug(page))}
    slug = PurePosixPath(desk.draft.layout.slug(new_page)).name
    for name in desk.draft.sources():
        page = desk.draft.page(name)
        stale = _no_longer_current(page) if name == new_page else []
        mark = (
            ' aria-current="page"' if any("aria-current" in page.source[old.start : old.end] for old in stale) else ""
        )
        links = [_linked(page, menu, slugs - {slug}, slug, title, mark) for menu in _menus(page)]
        patches = [patch for patch in links if patch] + stale
        desk.draft.replace(name, *patches)
        linked += any(patch.start == patch.end for patch in patches)
    return linked


def _menus(page: Page) -> list[Element]:
    return [menu for menu in page.all("nav") if not (menu.parent and menu.parent.inside("nav", "main", "article"))]


def _linked(page: Page, menu: Element, slugs: set[str], slug: str, title: str, mark: str) -> Patch | None:
    """After the last entry, written as the entries are."""
    links = page.within(menu, "a")
    models = [link for link in links if _target(link) in slugs]
    if not models:
        return None
    model = next((link for link in models if "aria-current" not in link.attributes), models[0])
    entry = _entry(model)
    entries = [one for link in links if (one := _entry(link)).parent is entry.parent]
    last = entries[-1]
    between = page.source[entries[-2].end : last.start] if len(entries) > 1 else ""
    if not between or "<" in between or "{" in between:
        between = "\n"
    return Patch(last.end, last.end, between + _written(page, model, entry, slug, title, mark))


def _written(page: Page, model: Element, entry: Element, slug: str, title: str, mark: str) -> str:
    address = model.attributes["href"]
    place = address.rfind(_target(model))
    new = address[:place] + slug + address[place + len(_target(model)) :]
    tag = _bare(page.source[model.start : model.inner_start]).replace(address, new, 1)
    link = f"{tag[:-1]}{mark}>{page.writing.escape(title)}</a>"
    return link if entry is model else f"{_bare(page.source[entry.start : entry.inner_start])}{link}</li>"


def _bare(tag: str) -> str:
    return _CURRENT_CLASS.sub(r"\1", _CURRENT.sub("", tag))


def _no_longer_current(page: Page) -> list[Patch]:
    """In the new page, the page that served as its pattern is not the one being read."""
    tags = [element for menu in _menus(page) for element in page.within(menu, "a", "li")]
    sources = [(tag, page.source[tag.start : tag.inner_start]) for tag in tags]
    return [Patch(tag.start, tag.inner_start, _bare(text)) for tag, text in sources if _bare(text) != text]


def _entry(link: Element) -> Element:
    return link.parent if link.parent is not None and link.parent.name == "li" else link


def _target(link: Element) -> str:
    """The name of the page that a link of this site leads to: `about` for `/about/`, `about.html`, `../about`."""
    address = re.split(r"[?#]", link.attributes.get("href", ""), maxsplit=1)[0]
    if re.match(r"[a-z][a-z0-9+.-]*:|//", address, re.IGNORECASE):
        return ""
    return re.sub(r"(?:/index)?\.html?\Z|/\Z", "", address).rpartition("/")[2]
