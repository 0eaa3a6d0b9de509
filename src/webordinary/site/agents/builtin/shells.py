"""A new page in the shell of another one: its head, header, menu and footer around a new heading and text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from webordinary.site.agents.builtin.astro import is_simple_script, is_title
from webordinary.site.agents.builtin.front_matter import read_front_matter
from webordinary.site.agents.builtin.html_writing import ASTRO, indent
from webordinary.site.agents.builtin.page import Element, Overlap, Page, Patch, patched
from webordinary.site.agents.builtin.titles import retitled, segments

_KEPT_SETTINGS = re.compile(r"^(?:layout|type|menus?|draft)[ \t]*[:=][ \t]*[^\s\[{][^\r\n]*\r?\n", re.MULTILINE)
_OF_ONE_PAGE = frozenset(
    ("description", "og:title", "og:description", "og:url", "og:image", "twitter:title", "twitter:description")
)


def markdown_shell(page: Page, title: str, words: str) -> str:
    """Front matter as the other page has it, but nothing in it that is that page's own."""
    front, line = read_front_matter(page.source), "\r\n" if "\r\n" in page.source else "\n"
    blocks = []
    if page.first("h1") or front.title is None:
        blocks.append(f"# {page.writing.escape(title)}")
    blocks += [page.writing.escape(words)] if words else []
    settings = ""
    if front.title is not None:
        fence, settings = page.source[:3], page.source[: front.end]
        sign = ": " if fence == "---" else " = "
        kept = "".join(_KEPT_SETTINGS.findall(settings))
        settings = f"{fence}{line}title{sign}{front.title.spell(title)}{line}{kept}{fence}{line}{line}"
    return settings + (line * 2).join(blocks) + line


def html_shell(page: Page, home: Page, titles: Iterable[str], title: str, words: str) -> str | None:
    """The page with another title and main part; None if it is not simple enough to serve as a pattern."""
    heading = page.first("h1")
    container = heading and _container(page, heading)
    if heading is None or container is None or not is_simple_script(page.source):
        return None
    patches = [_main_part(page, container, heading, title, words), *_own_settings(page, home)]
    head = page.title
    if head is not None and not head.computed:
        patches.append(retitled(page, head, _own_segment(page, head, heading, titles), title))
    try:
        return patched(page.source, patches)
    except Overlap:
        return None


def _container(page: Page, heading: Element) -> Element | None:
    """What holds the page's own part: `<main>`, else the layout that it is handed to, else an article."""
    above = list(heading.ancestors)
    layouts = [element for element in above if page.writing is ASTRO and _tag(page, element)[0].isupper()]
    named = [element for name in ("main", "article") for element in above if element.name == name]
    return next(iter([*named[:1], *layouts[-1:]]), None)


def _main_part(page: Page, container: Element, heading: Element, title: str, words: str) -> Patch:
    """Only the heading and the new text, in the elements that the heading stands in."""
    above = list(heading.ancestors)
    wrappers = above[: above.index(container)][::-1]
    says = "{title}" if is_title(page, heading) else page.writing.escape(title)
    lead = f"\n{indent(page, heading)}"
    lines = [f"\n{indent(page, one)}{page.source[one.start : one.inner_start]}" for one in wrappers]
    lines.append(f"{lead}{page.source[heading.start : heading.inner_start]}{says}</{_tag(page, heading)}>")
    lines += [f"{lead}<p>{page.writing.escape(words)}</p>"] if words else []
    lines += [f"\n{indent(page, one)}</{_tag(page, one)}>" for one in reversed(wrappers)]
    return Patch(container.inner_start, container.inner_end, "".join(lines) + f"\n{indent(page, container)}")


def _tag(page: Page, element: Element) -> str:
    found = re.match(r"<([\w.:-]+)", page.source[element.start : element.inner_start])
    return found[1] if found else element.name


def _own_segment(page: Page, title: Element, heading: Element, titles: Iterable[str]) -> int | None:
    """Which part of `Pots · Amelia` is this page's own: what its heading says, else what no other title has."""
    parts = segments(page, title)
    if len(parts) == 1:
        return None
    others = list(titles)
    read = [page.writing.read(part) for part in parts]
    says = [i for i in range(0, len(parts), 2) if read[i] == page.words(heading)]
    own = [i for i in range(0, len(parts), 2) if not any(read[i] in other for other in others)]
    return next(iter([*says, *own]), 0)


def _own_settings(page: Page, home: Page) -> list[Patch]:
    """Descriptions and addresses of the other page do not fit the new one."""
    of_home = {home.source[element.start : element.end] for element in home.all("meta")}
    gone = []
    for element in page.all("meta", "link"):
        name = element.attributes.get("name") or element.attributes.get("property") or ""
        shared = element.name == "meta" and page.source[element.start : element.end] in of_home and name != "og:url"
        if element.attributes.get("rel") == "canonical" or (name.lower() in _OF_ONE_PAGE and not shared):
            line = re.compile(r"[ \t]*\r?\n").match(page.source, element.end)
            lead = indent(page, element)
            gone.append(Patch(element.start - len(lead), line.end() if line else element.end, ""))
    return gone
