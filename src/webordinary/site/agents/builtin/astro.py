"""Astro pages and components: a script between fences, which is left alone, and a template, which is HTML."""

from __future__ import annotations

import re
from bisect import bisect_right

from webordinary.site.agents.builtin.braces import without_expressions
from webordinary.site.agents.builtin.html import parse_page
from webordinary.site.agents.builtin.html_writing import ASTRO
from webordinary.site.agents.builtin.page import HIDDEN, Element, Page, Span, hidden
from webordinary.site.agents.builtin.values import Value, attribute_value, script_value

_SCRIPT = re.compile(r"\A\s*---[ \t]*\r?\n(?P<body>.*?)^---[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_TITLE = re.compile(
    r"^(?:export\s+)?(?:const|let)\s+(?:title|pageTitle)(?:\s*:\s*string)?\s*=\s*(?P<value>[\"'`].*)", re.M
)
_ATTRIBUTE = re.compile(r"""\stitle\s*=\s*(?P<value>"[^"]*"|'[^']*')""")


def parse_astro(source: str) -> Page:
    """Read a page; expressions in braces are no text of it."""
    script = _SCRIPT.match(source)
    begin = script.end() if script else 0
    readable = hidden(source[:begin]) + without_expressions(source[begin:])
    page = parse_page(source, readable, ASTRO)
    page.texts = [part for text in page.texts for part in _readable_parts(text, readable)]
    _mark_computed(page, readable)
    title = _title_of_layout(page, source) or (script and _title_of_script(script))
    if title and page.title is None:
        page.add_value(title)
        page.elements.sort(key=lambda element: element.start)
    return page


def is_title(page: Page, element: Element) -> bool:
    """Whether an element shows the title of the script, and nothing else."""
    inner = page.source[element.inner_start : element.inner_end]
    return re.fullmatch(r"\s*\{\s*(?:title|pageTitle)\s*\}\s*", inner) is not None


def _title_of_layout(page: Page, source: str) -> Value | None:
    for element in page.elements:
        tag = source[element.start : element.inner_start]
        found = _ATTRIBUTE.search(tag) if tag[1:2].isupper() else None
        if found is not None:
            return attribute_value(found["value"], element.start + found.start("value"))
    return None


def _title_of_script(script: re.Match[str]) -> Value | None:
    found = _TITLE.search(script.string, script.start("body"), script.end("body"))
    return script_value(found["value"], found.start("value")) if found else None


def _mark_computed(page: Page, readable: str) -> None:
    """Elements that hold an expression; each is looked up, not read, because they stand in one another."""
    expressions = [found.span() for found in re.finditer(f"{HIDDEN}+", readable)]
    for element in page.elements:
        following = bisect_right(expressions, element.inner_start, key=lambda span: span[1])
        element.computed = following < len(expressions) and expressions[following][0] < element.inner_end


def _readable_parts(text: Span, readable: str) -> list[Span]:
    parts = re.compile(f"[^{HIDDEN}]+").finditer(readable, text.start, text.end)
    return [Span(part.start(), part.end(), text.element) for part in parts if part[0].strip()]


def is_simple_script(source: str) -> bool:
    """Whether a page has no script, or one that only imports things and names the title."""
    script = _SCRIPT.match(source)
    if script is None:
        return True
    rest = re.sub(r"^import\b[^;\n]*(?:;|$)|//[^\n]*|/\*.*?(?:\*/|\Z)", "", script["body"], flags=re.S | re.M)
    return re.sub(r";", "", _TITLE.sub(_rest_of_line, rest)).strip() == ""


def _rest_of_line(found: re.Match[str]) -> str:
    value = script_value(found["value"], 0)
    return found["value"][value.end :] if value else found[0]
