from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webordinary.adapters.agents.builtin.html import parse_page

PIECES = st.sampled_from(
    ["<p>", "</p>", "<h1>", "</h1>", "<br/>", "<img src=a>", "<!-- c -->", "<!doctype html>", "<svg/>", "<li>", "<ul>",
     "</ul>", "&amp;", "&nope", "text", " ", "\n", "<script>", "</script>", "<", ">", "<?pi>", "</", "<a href='", "ü"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_every_offset_is_within_the_page_however_broken_it_is(source: str) -> None:
    page = parse_page(source)
    for element in page.elements:
        assert 0 <= element.start <= element.inner_start <= element.inner_end <= element.end <= len(source)
    for text in page.texts:
        assert 0 <= text.start < text.end <= len(source)


def test_an_element_is_found_with_its_exact_source() -> None:
    source = "<body>\n<h1 class='a'>Tea &amp; <em>pots</em></h1><p>One<p>Two</body>"
    page = parse_page(source)
    (heading,) = page.all("h1")
    assert source[heading.start : heading.end] == "<h1 class='a'>Tea &amp; <em>pots</em></h1>"
    assert page.words(heading) == "Tea & pots"
    assert [page.words(p) for p in page.all("p")] == ["One", "Two"]


def test_text_is_found_by_what_a_visitor_reads() -> None:
    source = "<p title='Tea'>Tea &amp;\n  pots, don\u2019t &mdash; drop</p>"
    page = parse_page(source)
    (span,) = page.find("tea & pots, don't - drop")
    assert source[span.start : span.end] == "Tea &amp;\n  pots, don\u2019t &mdash; drop"
