from __future__ import annotations

import html
import re
import tomllib

import markdown
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from webordinary.adapters.agents.builtin.html import parse_astro, parse_page
from webordinary.adapters.agents.builtin.markdown import MARKDOWN, MDX, parse_markdown
from webordinary.adapters.agents.builtin.page import Page
from webordinary.adapters.agents.builtin.values import script_value, toml_value, yaml_value

WORDS = st.text(st.sampled_from("ab1 \\`*_[]{}()#+-.!|~<>&;:='\"é/$@"), min_size=1, max_size=20).filter(
    lambda words: words == " ".join(words.split())
)
PIECES = st.sampled_from(
    ["# ", "\n",  "\n\n", "- ", "1. ", "> ", "**", "_", "`", "```\n", "[", "](/a)", "![x](y)", "<b>", "</b>", "<!--",
     "-->", "{{< a >}}", "{", "}", "text ", "    ", "\t", "===\n", "---\n", "| ", "\\", "&amp;", "\r\n", "!!! note\n", 
     "<style>", "title: ", "title: '", "'", '"', "<Base title=", ">", "const title = `", "Zebra", " Zebra "]
)  # fmt: skip
SOURCES = st.lists(PIECES, max_size=25).map("".join)
READERS = st.sampled_from([parse_markdown, lambda source: parse_markdown(source, mdx=True), parse_astro, parse_page])


@given(SOURCES, READERS)
@settings(deadline=None)
def test_every_place_is_within_the_page_however_broken_it_is(source: str, read: object) -> None:
    page = read(source)  # type: ignore[operator]
    assert isinstance(page, Page)
    for element in page.elements:
        assert 0 <= element.start <= element.inner_start <= element.inner_end <= element.end <= len(source), element
    for text in page.texts:
        assert 0 <= text.start < text.end <= len(source)


@given(SOURCES, READERS, WORDS)
@settings(deadline=None)
def test_replacing_text_changes_only_those_characters(source: str, read: object, words: str) -> None:
    page = read(source)  # type: ignore[operator]
    for span in page.find("Zebra"):
        assert source[span.start : span.end] == "Zebra"
        ((start, end, new),) = page.reworded([(span, words)])
        if span.element is None or span.element.value is None:
            assert (start, end, new) == (span.start, span.end, page.writing.escape(words, span.element))
        else:
            value = span.element.value
            assert (start, end) == (value.start, value.end)
            assert value.spell(value.words) == source[start:end]


@given(WORDS)
@settings(deadline=None)
def test_new_words_are_read_as_they_were_written(words: str) -> None:
    shown = markdown.markdown(f"Before\n\n{MARKDOWN.escape(words)}\n\nAfter", extensions=["tables", "fenced_code"])
    found = re.fullmatch(r"<p>Before</p>\n<p>(.*)</p>\n<p>After</p>", shown)
    assert found, shown
    assert "<" not in found[1]
    assert html.unescape(found[1]) == words
    assert MARKDOWN.read(MARKDOWN.escape(words)) == words


@given(WORDS)
@settings(deadline=None)
def test_new_words_are_read_as_they_were_written_by_commonmark_too(words: str) -> None:
    commonmark = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
    shown = commonmark.render(f"Before\n{MARKDOWN.escape(words)}\n\n- {MARKDOWN.escape(words)}\n")
    found = re.fullmatch(r"<p>Before\n(.*)</p>\n<ul>\n<li>(.*)</li>\n</ul>\n", shown)
    assert found, shown
    assert [html.unescape(text) for text in found.groups()] == [words, words]


@given(WORDS)
def test_a_title_is_read_by_yaml_as_it_was_written(words: str) -> None:
    for raw in ("About", "'About'", '"About"'):
        value = yaml_value(raw, 0)
        assert value
        assert yaml.safe_load(f"title: {value.spell(words)}") == {"title": words}


@given(WORDS)
def test_a_title_is_read_by_toml_as_it_was_written(words: str) -> None:
    for raw in ("'About'", '"About"'):
        value = toml_value(raw, 0)
        assert value
        assert tomllib.loads(f"title = {value.spell(words)}") == {"title": words}


@given(WORDS)
def test_a_title_in_a_script_cannot_leave_its_quotes(words: str) -> None:
    for raw in ("'a'", '"a"', "`a`"):
        value = script_value(raw, 0)
        assert value
        spelled = value.spell(words)
        assert re.fullmatch(r"(['\"`])(?:(?!\1|\\|\$\{).|\\.)*\1", spelled), spelled


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("Tea *and* pots", ["Tea ", "and", " pots"]),
        ("# Pots {#pots}\n\n`code` [a link](/x) ![alt](y)", ["Pots", "a link"]),
        ("Pots\n====\n\n    code\n\n```\ncode\n```\ntext", ["Pots", "text"]),
        ("<!-- no --> yes\n\n<script>\nno\n</script>\n\n<div>yes</div>", ["yes", "yes"]),
        ("[ref]: /no\n\n- one\n  - two\n\n> three\n> four", ["one", "two", "three\n", "four"]),
        ("{{< figure src=no >}}\n\n| a | b |\n|---|---|", ["a", "b"]),
        ('Read [our story](http://x.y/a\n "T") and go.', ["Read", "our story", "and go."]),
        ("a [b](c\n\nd) e", ["a", "b", "(c", "d) e"]),
        ("---\ntitle: Pots # comment\n---\nx", ["Pots", "x"]),
        ("+++\ntitle = 'Pots'\n[params]\ntitle = 'no'\n+++\nx", ["Pots", "x"]),
    ],
)
def test_text_is_what_a_visitor_reads(source: str, found: list[str]) -> None:
    page = parse_markdown(source)
    texts = [source[text.start : text.end].strip(" ") for text in page.texts]
    assert [text for text in texts if text.strip("-\n")] == [text.strip(" ") for text in found]


def test_expressions_and_modules_of_mdx_are_no_text() -> None:
    source = 'import A from "a";\n\nText {a ? "no" : `no`} more <A b={1}>inner</A>\n'
    page = parse_markdown(source, mdx=True)
    assert [source[text.start : text.end].strip() for text in page.texts] == ["Text", "more", "inner"]


def test_words_that_begin_like_a_module_stay_words_in_mdx() -> None:
    assert MDX.escape("export quality {x}") == "&#101;xport quality \\{x\\}"
