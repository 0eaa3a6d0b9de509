"""How paragraphs, list items and pictures are written in HTML."""

from __future__ import annotations

import html
import re

from webordinary.site.agents.builtin.charsets import as_references
from webordinary.site.agents.builtin.page import Element, Page, Patch
from webordinary.site.agents.builtin.tags import unescaped

_WIDEST_INDENT = 200


class HtmlWriting:
    """The language of HTML pages, and of the template part of Astro's, where braces have a meaning too."""

    backslashes = False

    def __init__(self, braces: bool = False, ascii_only: bool = False) -> None:
        self._braces = braces
        self._ascii_only = ascii_only

    def escape(self, words: str, element: Element | None = None) -> str:
        """Words made safe to stand in a page."""
        del element  # all elements that may be filled follow the same rules
        safe = html.escape(words, quote=True).replace("&#x27;", "'")
        safe = as_references(safe) if self._ascii_only else safe
        return safe.replace("{", "&#123;").replace("}", "&#125;") if self._braces else safe

    def read(self, fragment: str) -> str:
        """A fragment without its tags, entities read and white space squeezed."""
        return visible_text(fragment)

    def paragraph(self, page: Page, words: str) -> Patch:
        """Below the last paragraph of the running text, else at the end of the main part."""
        last, new = _last_of_running_text(page), f"<p>{self.escape(words)}</p>"
        if last is not None:
            return Patch(last.end, last.end, f"\n{indent(page, last)}{new}")
        end = page.first("main") or page.first("body")
        place = end.inner_end if end else len(page.source)
        return Patch(place, place, f"{new}\n")

    def item(self, page: Page, within: Element, words: str) -> Patch:
        """After the last item, with its class if it has one."""
        items = [item for item in page.all("li") if item.parent is within]
        if not items:
            return Patch(within.inner_end, within.inner_end, f"<li>{self.escape(words)}</li>")
        last = items[-1]
        tag = page.source[last.start : last.inner_start] if last.attributes.keys() <= {"class"} else "<li>"
        place = last.start + len(page.source[last.start : last.end].rstrip())
        own_line = page.source[page.source.rfind("\n", 0, last.start) + 1 : last.start].strip() == ""
        lead = f"\n{indent(page, last)}" if own_line else ""
        return Patch(place, place, f"{lead}{tag}{self.escape(words)}</li>")

    def pictures(self, page: Page, pictures: list[tuple[str, str]]) -> Patch:
        """After the first section of the main part."""
        place, lead = _picture_place(page)
        figures = (self._figure(address, shows) for address, shows in pictures)
        lines = (f"\n{lead}{figure}" if lead is not None else f"{figure}\n" for figure in figures)
        return Patch(place, place, "".join(lines))

    def picture_address(self, page: Page, picture: Element, address: str) -> Patch:
        """Change only the value of the tag's src; a srcset would still show the old photo, so it goes."""
        tag = page.source[picture.start : picture.inner_start]
        tag = re.sub(r"""(?<!\s)\s++srcset\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]++)""", "", tag, flags=re.IGNORECASE)
        tag = re.sub(
            r"""(\ssrc\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s>]+)""",
            lambda m: f'{m[1]}"{html.escape(address)}"',
            tag,
            count=1,
            flags=re.IGNORECASE,
        )
        return Patch(picture.start, picture.inner_start, tag)

    def _figure(self, address: str, shows: str) -> str:
        return (
            f'<figure class="photo"><img src="{self.escape(address)}" alt="{self.escape(shows)}" loading="lazy" '
            'style="max-width:100%;height:auto"></figure>'
        )


def visible_text(fragment: str) -> str:
    """A fragment without its tags, entities read and white space squeezed."""
    tagged = fragment.rfind(">") + 1  # no tag ends after this, so none is looked for
    return " ".join(unescaped(re.sub(r"<[^>]*+>", " ", fragment[:tagged]) + fragment[tagged:]).split())


def indent(page: Page, element: Element) -> str:
    """The white space before an element that begins its line."""
    near = page.source[max(0, element.start - _WIDEST_INDENT) : element.start]
    lead = near[len(near.rstrip(" \t")) :]
    return lead if len(lead) == element.start or near[: -len(lead) or None].endswith("\n") else ""


def _last_of_running_text(page: Page) -> Element | None:
    """The last paragraph of the element that holds most of them: the text, not a card or the footer."""
    groups: dict[int, list[Element]] = {}
    for paragraph in page.all("p"):
        if not paragraph.inside("footer", "nav", "header"):
            groups.setdefault(id(paragraph.parent), []).append(paragraph)
    return max(groups.values(), key=len)[-1] if groups else None


def _picture_place(page: Page) -> tuple[int, str | None]:
    """After the first section of the main part, or at the end of its article; else at the end of the page."""
    main = page.first("main") or page.first("article") or page.first("body")
    if main is None:
        return len(page.source), None
    sections = [e for e in page.all("section", "header", "div") if e.parent is main and e.end > 0]
    if main.name != "body" and sections:
        return sections[0].end, indent(page, sections[0])
    articles = [e for e in page.all("article") if e.parent is main]
    if len(articles) == 1:
        return articles[0].inner_end, None
    footer = page.first("footer")
    if footer is not None and footer.parent is main:
        return footer.start, None
    return main.inner_end, None


HTML = HtmlWriting()
HTML_IN_ASCII = HtmlWriting(ascii_only=True)
ASTRO = HtmlWriting(braces=True)
