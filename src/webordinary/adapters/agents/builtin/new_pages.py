"""Add a page: in the shell of a simple page that the site has, linked where the others are."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath
from re import Match

from webordinary.adapters.agents.builtin.draft import Done, EditContext, Outcome, Unclear
from webordinary.adapters.agents.builtin.edits import retitled, segments
from webordinary.adapters.agents.builtin.html import ASTRO, indent, is_simple_script, is_title
from webordinary.adapters.agents.builtin.page import Element, Overlap, Page, Patch, patched
from webordinary.adapters.agents.builtin.pages import label
from webordinary.adapters.agents.builtin.values import read_front_matter, yaml_text

_NAV = re.compile(r"^nav:[ \t]*\r?\n(?P<body>(?:[ \t#-][^\r\n]*(?:\r?\n|\Z)|\r?\n)+)", re.M)
_MENU = re.compile(
    r"^(?P<indent>[ \t]*)\[\[(?P<name>menus?\.main)\]\][ \t]*\r?\n"
    r"(?P<body>(?:(?P<inner>[ \t]*)\w+[ \t]*=[^\r\n]*(?:\r?\n|\Z))+)",
    re.M,
)
_WEIGHT = re.compile(r"^[ \t]*weight[ \t]*=[ \t]*(\d{1,9})", re.M)


def link_in_settings(desk: EditContext, new_page: str, title: str) -> str:
    """What was done about the menu, as the end of a sentence; empty if there is none in the settings."""
    layout = desk.draft.layout
    if layout.kind == "mkdocs":
        return _in_nav(desk, new_page, title)
    if layout.kind == "hugo" and layout.config.endswith(".toml"):
        return _in_menu(desk, layout.config, f"/{layout.slug(new_page)}", title)
    return ""


def _in_nav(desk: EditContext, new_page: str, title: str) -> str:
    """MkDocs lists all pages by itself unless its settings have a `nav`."""
    config, folder = desk.draft.layout.config, desk.draft.layout.pages[0]
    text = desk.draft.text(config)
    nav = _NAV.search(text)
    if nav is None:
        return "" if re.search(r"^nav:", text, re.M) else ", and its menu has it by itself"
    items = list(re.finditer(r"^(?P<indent>[ \t]*)-[ \t]", nav["body"], re.M))
    if not items:
        return ""
    place = nav.start("body") + len(nav["body"].rstrip())
    file = str(PurePosixPath(new_page).relative_to(folder))
    line = "\r\n" if "\r\n" in text else "\n"
    entry = f"{line}{items[0]['indent']}- {yaml_text(title)}: {file}"
    desk.draft.replace(config, Patch(place, place, entry))
    return " and put it into the menu"


def _in_menu(desk: EditContext, config: str, address: str, title: str) -> str:
    text = desk.draft.text(config)
    entries = list(_MENU.finditer(text))
    if not entries:
        return ""
    last = entries[-1]
    line = "\r\n" if "\r\n" in text else "\n"
    key = "pageRef" if re.search(r"^[ \t]*pageRef\b", last["body"], re.M) else "url"
    address = address if key == "pageRef" else f"{address}/"
    lines = [f"[[{last['name']}]]", f"name = {json.dumps(title, ensure_ascii=False)}", f'{key} = "{address}"']
    weights = [int(number) for entry in entries for number in _WEIGHT.findall(entry["body"])]
    lines += [f"weight = {max(weights) + 1}"] if weights else []
    block = last["indent"] + f"{line}{last['inner']}".join(lines)
    place = last.start() + len(last[0].rstrip())
    desk.draft.replace(config, Patch(place, place, line * 2 + block))
    return " and put it into the menu"


_CURRENT = re.compile(r"""(?<!\s)\s++aria-current\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]++)""", re.IGNORECASE)
_CURRENT_CLASS = re.compile(r"""(\sclass\s*=\s*["'][^"']*?)\s?\b(?:is-)?(?:active|current|selected)\b""", re.IGNORECASE)


def link_in_menus(desk: EditContext, new_page: str, title: str) -> int:
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


_MARKDOWN = (".md", ".markdown", ".mdx")
_MAX_TITLE = 80
_MAX_PATTERNS = 50
_NO_PATTERN = (
    "I found no simple page on your site that a new page could be made like. Please ask your web person to add it."
)


def add_page(match: Match[str], desk: EditContext) -> Outcome | None:
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


def _summary(desk: EditContext, name: str, title: str, like: str) -> str:
    menu = link_in_settings(desk, name, title)
    in_front_matter = re.search(r"^menus?\b", desk.draft.text(name)[:500], re.MULTILINE)
    if not menu and (link_in_menus(desk, name, title) or in_front_matter):
        menu = " and put it into the menu"
    note = "" if menu else " I found no menu to put it into."
    return f"Added the page “{title}”, made like {like}{menu}.{note}"


def _patterns(desk: EditContext) -> list[str]:
    """Pages of the top folder that may serve: those with a menu first, then the shortest, the home page last."""
    slug = desk.draft.layout.slug
    pages = [page for page in desk.draft.pages() if "/" not in slug(page) and "[" not in page and _is_page(page, desk)]
    return sorted(
        pages,
        key=lambda page: (slug(page) in ("", "404"), not desk.draft.page(page).all("nav"), len(desk.draft.text(page))),
    )


def _is_page(page: str, desk: EditContext) -> bool:
    """Entries of a collection are shown by a page; they are none."""
    return PurePosixPath(page).is_relative_to(desk.draft.layout.pages[0])


def _in_shell(desk: EditContext, pattern: str, title: str, words: str) -> str | None:
    page = desk.draft.page(pattern)
    if pattern.endswith(_MARKDOWN):
        return markdown_shell(page, title, words)
    home = desk.draft.page(desk.draft.pages()[0])
    others = (desk.draft.page(name) for name in desk.draft.pages()[:50] if name != pattern)
    titles = [other.words(head) for other in others if (head := other.title)]
    return html_shell(page, home, titles, title, words)


def _name(pattern: str, slug: str, desk: EditContext) -> str:
    """`about.html` gives `workshops.html`, `about/index.html` gives `workshops/index.html`."""
    path = PurePosixPath(pattern)
    if path.stem in ("index", "_index") and desk.draft.layout.slug(pattern):
        return str(path.parent.with_name(slug) / path.name)
    return str(path.with_name(slug + path.suffix))


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title.replace("ß", "ss")).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:60].strip("-")
