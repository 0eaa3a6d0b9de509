"""Pages as they were written long ago: no end tags, capital letters, elements in elements without end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.site_folder import SiteFolder
from webordinary.adapters.agents.builtin.html import parse_page
from webordinary.adapters.agents.builtin.page import Overlap, Patch, patched
from webordinary.jobs.ports import Asked, Changed

ROWS = "<table>\n" + "".join(f"<tr><td>Row {i}<td>Price {i}\n" for i in range(120)) + "<tr><td>"
TERMS = "<dl>\n" + "".join(f"<dt>Term {i}\n<dd><p>Meaning {i}\n" for i in range(120)) + "<dd>"
LINES = "".join(f"<p><font size=2>Line {i}\n" for i in range(210))
BOXES = "<main>" + "<div>" * 205
HIDDEN = "<script>say('Hello')</script><style>.a:after{content:'Hello'}</style>"


@pytest.mark.parametrize("begin", [ROWS, TERMS, LINES])
@pytest.mark.parametrize(
    ("mail", "old", "new"),
    [
        ("set the heading to Foo", "<h1>Shop</h1>", "<h1>Foo</h1>"),
        ("set the heading “More” to Foo", "<h2>More</h2>", "<h2>Foo</h2>"),
        ("change “Hello” to “Bye” everywhere", "<i>Hello</i>", "<i>Bye</i>"),
        ("remove the paragraph “Gone soon”", "<p>Gone soon</p>", ""),
        ("remove “Gone soon”", "<p>Gone soon</p>", ""),
        ("remove the item “b”", "<li>b</li>", ""),
    ],
)
def test_an_edit_touches_only_its_own_characters_however_deep(
    tmp_path: Path, begin: str, mail: str, old: str, new: str
) -> None:
    inner = "<h1>Shop</h1><i>Hello</i><h2>More</h2><p>Gone soon</p><p>Stay</p><ul><li>a</li><li>b</li></ul>"
    site = SiteFolder(tmp_path, {"index.html": f"<html><body>{begin}{inner}{HIDDEN}</table></body></html>"})
    site.becomes(mail, "index.html", old, new)


@pytest.mark.parametrize(
    ("mail", "old", "new"),
    [
        ("add “c” to the list", "<li>b</li>", "<li>b</li><li>c</li>"),
        ("add a paragraph “Foo”", "<p>Two</p>", "<p>Two</p>\n<p>Foo</p>"),
    ],
)
def test_rows_and_terms_without_end_tags_end_with_the_next_one(tmp_path: Path, mail: str, old: str, new: str) -> None:
    page = f"<body>{ROWS}<ul><li>a</li><li>b</li></ul></table>{TERMS}</dl><main><p>One</p><p>Two</p><b>x</b></main>"
    SiteFolder(tmp_path, {"index.html": page}).becomes(mail, "index.html", old, new)


def test_cells_and_terms_end_where_a_browser_ends_them() -> None:
    source = (
        "<table><thead><tr><th>a<th>b<tbody><tr><td>c<table><tr><td>d</table>e<td><b>f<tr><td>g</table>"
        "<dl><dt>h<dd><p>i<dt>j<dd><dl><dt>k</dl>l</dl>"
    )
    page = parse_page(source)
    cells = [(one.name, page.words(one)) for one in page.all("th", "td", "dt", "dd")]
    assert cells == [
        ("th", "a"), ("th", "b"), ("td", "c d e"), ("td", "d"), ("td", "f"), ("td", "g"),
        ("dt", "h"), ("dd", "i"), ("dt", "j"), ("dd", "k l"), ("dt", "k"),
    ]  # fmt: skip
    assert [page.words(one) for one in page.all("tbody")] == ["c d e f g"]


def test_a_deep_element_with_others_in_it_is_no_place_but_its_text_is_found(tmp_path: Path) -> None:
    page = f"{BOXES}<h1>Big <b>Shop</b></h1><p>Big <b>text</b></p>{'</div>' * 205}<p>End</p></main>"
    site = SiteFolder(tmp_path, {"index.html": page})
    result = site.write("set the heading to Foo")
    assert isinstance(result, Asked)
    assert "I found no main headings" in result.question
    assert not site.changes()
    site.becomes("change “Shop” to “Kiln”", "index.html", "<b>Shop</b>", "<b>Kiln</b>")


def test_the_title_of_a_drawing_is_not_that_of_the_page(tmp_path: Path) -> None:
    page = "<body><svg><title>Home</title></svg>{}<h1>Home</h1></body>"
    with_title = page.format("<title>Home | Amelia</title>")
    site = SiteFolder(tmp_path, {"index.html": with_title})
    assert isinstance(site.write("change the title to Foo"), Changed)
    assert site.changes() == {
        "index.html": "<body><svg><title>Home</title></svg><title>Foo | Amelia</title><h1>Foo</h1></body>"
    }
    without = SiteFolder(tmp_path, {"index.html": page.format("")})
    without.becomes("change the title to Foo", "index.html", "<h1>Home</h1>", "<h1>Foo</h1>")


@pytest.mark.parametrize(
    "patches", [[Patch(0, 3, "a"), Patch(2, 4, "b")], [Patch(0, 4, "a"), Patch(1, 2, "b")], [Patch(3, 9, "a")]]
)
def test_patches_that_meet_are_refused(patches: list[Patch]) -> None:
    with pytest.raises(Overlap):
        patched("abcdef", patches)
    assert patched("abcdef", [Patch(2, 4, "X"), Patch(4, 4, "Y"), Patch(2, 2, "Z")]) == "abZXYef"


def test_a_wish_that_would_change_a_place_twice_is_asked_about(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path, {"index.html": "<h1><title>Pots</title></h1><p>Hi"})
    result = site.write("change the title to “Foo”; change “Hi” to “Bye”")
    assert isinstance(result, Asked)
    assert "I could not do “change the title to “Foo””" in result.question
    assert not site.changes()
