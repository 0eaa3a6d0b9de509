"""Mails and pages that are made to keep a reader busy: the built-in agent reads each character a few times, and ends.

No clock is asked: with a pattern that goes back over the same characters, a case here takes minutes or more.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.cancel_token import FakeCancelToken
from tests.hostile_texts import EVERYTHING, UNITS, put_into_site, repeated
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.adapters.agents.builtin.draft import read_page
from webordinary.jobs.ports import AgentResult, AgentTask, NotUnderstood
from webordinary.mail.parsing.small_talk import MARK, Quotations, clauses_of
from webordinary.model.errors import Interrupted, WebOrdinaryError

pytestmark = pytest.mark.slow

WISH, MAIL, PAGE = 5_000, 49_000, 150_000


def follow(folder: Path, mail: str, kind: str = "html", page: str = "<title>Pots</title><p>Monday") -> AgentResult:
    put_into_site(folder, kind, page)
    return BuiltinAgent().run(AgentTask(mail, folder, ()), FakeCancelToken())


@pytest.mark.parametrize(
    ("begin", "unit"),
    [
        ("change the title", " "), ("change the title", "\n"), ("change the title", " \n"), ("", "“"), ("", '"\\'),
        ("", " \u2018a"), ("", "«"), ("change a", " to "), ("change ", "a to b "), ("", "please "), ("", "and "),
        ("please", "!"), ("a", " please"), ("paragraph", ":"), ("", "paragraph: "), ("", "page called "),
        ("", "thanks\n"), ("Hi", ","), ("- ", "- "), ("", "1. "), ("replace the photo of a", " on a with the"),
        ("add a", " to the list of a"), ("make the a", " red"), ("", "add,"), ("", "old\n"),
    ],
)  # fmt: skip
def test_a_mail_is_read_in_passing_whatever_it_repeats(tmp_path: Path, begin: str, unit: str) -> None:
    for size in (WISH, MAIL):
        assert follow(tmp_path, repeated(begin, unit, size))


@pytest.mark.parametrize(
    ("kind", "begin", "unit"),
    [
        ("html", "", "<"), ("html", "", "<a "), ("html", "", "<a b"), ("html", "", "<a b='"), ("html", "", '<a b="'),
        ("html", "", "<!--"), ("html", "", "</"), ("html", "", "</a "), ("html", "", "<?"), ("html", "", "<!["),
        ("html", "", "<b><p>a"), ("html", "<b>" * 300, "<nav><i>"), ("html", "<p>" * 300, "<b><h2>a"),
        ("html", "", "<b><tr><td>"), ("html", "<table><tr>" + "<b>" * 20_000, "<td></td>"),
        ("html", "", "<b>"), ("html", "<b>" * 9_000, "</i>"), ("html", "", "<ul><li>a</ul>"),
        ("html", "", "<p>Monday</p>"), ("html", "", "Monday "), ("html", "", "<nav><a href=about.html>a</a></nav>"),
        ("html", "", "<meta name=description>"), ("html", "<h1>", "&#1"), ("html", "<title>a", " "),
        ("html", "<title>a", " | b"), ("html", "<h1>", "<"), ("html", "---\ntitle: a", " "),
        ("html", "<style>a{color: b", " "), ("css", "a{color: b", " "), ("css", "", "url("), ("css", "", '"\\'),
        ("css", "", "/*"), ("css", "", "h1{color:red}"), ("css", "@media " + "a" * 90_000 + "{", "a{}"),
        ("css", "a," * 90_000 + "b{", "color:red;"), ("css", "a{", "{"), ("markdown", "# a", " "),
        ("markdown", "# a", "\ue000"), ("markdown", "a", " "), ("markdown", "a", "_"), ("markdown", "", "["),
        ("markdown", "", "]("), ("markdown", "", "](\n"), ("markdown", "", "{{<"), ("markdown", "", "`a``"),
        ("markdown", "", "![a]("),
        ("markdown", "", "- a\n"), ("markdown", "---\ntitle: a", " "), ("markdown", "---\ntitle: a", "\n "),
        ("markdown", "+++\ntitle = 'a'", " "), ("astro settings", "", "\n"),
        ("toml", "", "[[menu.main]]\n"), ("toml", "[[menu.main]]\na = 1\n", "\n"), ("yaml", "nav:\n", "- \n"),
    ],
)  # fmt: skip
def test_a_file_is_read_in_passing_whatever_it_repeats(tmp_path: Path, kind: str, begin: str, unit: str) -> None:
    page = repeated(begin, unit, PAGE)
    for wish in EVERYTHING.strip().split("\n\n"):
        assert not isinstance(follow(tmp_path, wish, kind, page), NotUnderstood), wish


PIECES = st.tuples(st.sampled_from(UNITS), st.integers(1, 300)).map(lambda piece: piece[0] * piece[1])
TEXTS = st.lists(PIECES, max_size=6).map("".join)


@settings(deadline=None, max_examples=150)
@given(TEXTS, st.sampled_from(["a.html", "a.md"]))
def test_a_page_of_any_pieces_has_places_within_it(source: str, name: str) -> None:
    page = read_page(name, source)
    for element in page.elements:
        assert 0 <= element.start <= element.inner_start <= element.inner_end <= element.end <= len(source)
        page.words(element)
    for span in [*page.texts, *page.find("a"), *page.find("Monday"), *page.find("&")]:
        assert 0 <= span.start < span.end <= len(source)


@settings(deadline=None, max_examples=150)
@given(TEXTS)
def test_a_mail_of_any_pieces_has_clauses_that_are_parts_of_it(text: str) -> None:
    quotes = Quotations()
    letters = {letter for letter in text if letter.isalnum()}
    for clause in clauses_of(quotes.set_aside(text)):
        assert {letter for letter in quotes.shown(clause.text) if letter.isalnum()} <= letters


@pytest.mark.parametrize(
    ("mail", "quoted"),
    [
        ("add “Blue \u2018bowl\u2019” to", ["Blue \u2018bowl\u2019"]),
        ('change "a" to "b"', ["a", "b"]),
        ("« Bonjour » and „Tag“ and „Tag”", ["Bonjour", "Tag", "Tag"]),
        ('"\u2018a\u2019"', ["\u2018a\u2019"]),
        ("change 'open' to 'it\u2019s shut'", ["open", "it\u2019s shut"]),
        ("Amelia's pots and Scott's", []),
        ("\u2018\u2019tis\u2019 here", ["\u2019tis"]),
        ("“two\nlines”", ["two lines"]),
        ("“not closed\n\n”", []),
        ("““twice”", ["“twice"]),
        ('a "" b "c"', ["b"]),
        ("“" + "a" * 2_001 + "”", []),
    ],
)
def test_what_stands_between_quotation_marks_is_set_aside(mail: str, quoted: list[str]) -> None:
    quotes = Quotations()
    marks = re.findall(MARK, quotes.set_aside(mail))
    assert [quotes.text(mark) for mark in marks] == quoted


def test_a_mail_that_is_too_long_is_told_so(tmp_path: Path) -> None:
    result = follow(tmp_path, "change the title to Bowls\n\n" + "and so on " * 5_000)
    assert isinstance(result, NotUnderstood)
    assert "longer than the 50,000 characters that I read, so nothing was changed" in result.text


def test_deep_nesting_and_numbers_without_end_are_no_errors() -> None:
    page = read_page(
        "a.html", "<div>" * 5_000 + "<p>Monday</p>" + "</div>" * 5_000 + f"<h1 id='&#{'1' * 9_000};'>a</h1>"
    )
    (span,) = page.find("Monday")
    assert page.source[span.start : span.end] == "Monday"
    (heading,) = page.all("h1")
    assert heading.parent is None


class EndsAfter(FakeCancelToken):
    """A job that must end after so many looks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def check(self) -> None:
        self.looks -= 1
        if not self.looks:
            self.ended = Interrupted("a newer mail came")
        super().check()


@pytest.mark.parametrize("looks", [1, 2, 3, 20])
def test_a_job_that_must_end_does_so_between_wishes_and_between_pages(tmp_path: Path, looks: int) -> None:
    put_into_site(tmp_path, "html", "<title>Pots</title><p>Monday")
    for number in range(200):
        (tmp_path / f"page{number}.html").write_text("<p>Tuesday")
    mail = "change the title to Bowls; change “Monday” to “Friday” everywhere"
    with pytest.raises(WebOrdinaryError, match="a newer mail came"):
        BuiltinAgent().run(AgentTask(mail, tmp_path, ()), EndsAfter(looks))
    assert (tmp_path / "index.html").read_text() == "<title>Pots</title><p>Monday"
