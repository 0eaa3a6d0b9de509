from __future__ import annotations

import html
import re
import tomllib

import markdown
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from webordinary.adapters.agents.builtin.html import parse_page
from webordinary.adapters.agents.builtin.markdown import Markdown, parse_markdown
from webordinary.adapters.agents.builtin.page import Page

MARKDOWN = Markdown()

WORDS = st.text(st.sampled_from("ab1 \\`*_[]{}()#+-.!|~<>&;:='\"é/$@"), min_size=1, max_size=20).filter(
    lambda words: words == " ".join(words.split())
)
PIECES = st.sampled_from(
    ["# ", "\n",  "\n\n", "- ", "1. ", "> ", "**", "_", "`", "```\n", "[", "](/a)", "![x](y)", "<b>", "</b>", "<!--",
     "-->", "{{< a >}}", "{", "}", "text ", "    ", "\t", "===\n", "---\n", "| ", "\\", "&amp;", "\r\n", "!!! note\n", 
     "<style>", "title: ", "title: '", "'", '"', "<Base title=", ">", "const title = `", "Zebra", " Zebra "]
)  # fmt: skip
SOURCES = st.lists(PIECES, max_size=25).map("".join)
READERS = st.sampled_from([parse_markdown, parse_page])


@given(SOURCES, READERS)
@example("# # ", parse_markdown)
@settings(deadline=None)
def test_every_place_is_within_the_page_however_broken_it_is(source: str, read: object) -> None:
    page = read(source)  # type: ignore[operator]
    assert isinstance(page, Page)
    for element in page.elements:
        assert 0 <= element.start <= element.inner_start <= element.inner_end <= element.end <= len(source), element
    for text in page.texts:
        assert 0 <= text.start < text.end <= len(source)


@given(WORDS)
@example("''")
@settings(deadline=None)
def test_new_words_are_read_as_they_were_written(words: str) -> None:
    shown = markdown.markdown(f"Before\n\n{MARKDOWN.escape(words)}\n\nAfter", extensions=["tables", "fenced_code"])
    found = re.fullmatch(r"<p>Before</p>\n<p>(.*)</p>\n<p>After</p>", shown)
    assert found, shown
    assert "<" not in found[1]
    assert html.unescape(found[1]) == words
    assert MARKDOWN.read(MARKDOWN.escape(words)) == words


@given(WORDS)
@example("''")
@settings(deadline=None)
def test_new_words_are_read_as_they_were_written_by_commonmark_too(words: str) -> None:
    commonmark = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
    shown = commonmark.render(f"Before\n{MARKDOWN.escape(words)}\n\n- {MARKDOWN.escape(words)}\n")
    found = re.fullmatch(r"<p>Before\n(.*)</p>\n<ul>\n<li>(.*)</li>\n</ul>\n", shown)
    assert found, shown
    assert [html.unescape(text) for text in found.groups()] == [words, words]


@given(WORDS)
@pytest.mark.parametrize("written", ["About", "'About'", '"About"', "'It''s'", "Who's who"])
def test_a_title_is_read_by_yaml_and_toml_as_it_was_written(written: str, words: str) -> None:
    page = parse_markdown(f"---\ntitle: {written}\n---\n")
    title = page.title
    assert title
    assert page.words(title) == yaml.safe_load(f"title: {written}")["title"]
    start, end, new = page.filled(title, words)
    assert yaml.safe_load(page.source[4:start] + new + page.source[end:-4]) == {"title": words}
    assert tomllib.loads(f"title = {new}") == {"title": words}


@pytest.mark.parametrize("written", ["|\n  About", "About\n  us", '"a \\" b"', "About: us", "*about", "[a]"])
def test_a_title_that_is_no_simple_text_is_left_alone(written: str) -> None:
    title = parse_markdown(f"---\ntitle: {written}\n---\n").title
    assert title
    assert title.fixed


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("Tea *and* pots", ["Tea ", "and", " pots"]),
        ("# Pots {#pots}\n\n`code` [a link](/x) ![alt](y)", ["Pots", "a link"]),
        ("Pots\n====\n\n    code\n\n```\ncode\n```\ntext", ["Pots", "text"]),
        ("<!-- no --> yes\n\n<script>\nno\n</script>\n\n<div>no</div>", ["yes"]),
        ("[ref]: /no\n\n- one\n  - two\n\n> three\n> four", ["one", "two", "three\n", "four"]),
        ("{{< figure src=no >}}\n\n| a | b |\n|---|---|", ["a", "b"]),
        ('Read [our story](http://x.y/a\n "T") and go.', ["Read", "our story", "and go."]),
        ("a [b](c\n\nd) e", ["a", "b", "(c", "d) e"]),
        ("---\ntitle: no # comment\n---\nx", ["x"]),
    ],
)
def test_text_is_what_a_visitor_reads(source: str, found: list[str]) -> None:
    page = parse_markdown(source)
    texts = [source[text.start : text.end].strip(" ") for text in page.texts]
    assert [text for text in texts if text.strip("-\n")] == [text.strip(" ") for text in found]
