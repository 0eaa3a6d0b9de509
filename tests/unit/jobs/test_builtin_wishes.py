"""Lists, new pages, colours and removals on plain HTML pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.jobs.builtin_world import Site
from webordinary.adapters.agents.builtin.colours import colour_of, read_rules
from webordinary.adapters.agents.builtin.sentences import wishes_of
from webordinary.jobs.agent_task import Answered, Asked, Changed, NotUnderstood

HOME = """<!doctype html>
<html><head><title>Welcome | Amelia</title><meta name="description" content="Pots"></head>
<body>
<header><nav><a href="./">Home</a> | <a href="pots.html">Pots</a> | <a href="about.html">About</a></nav></header>
<main><h1>Welcome</h1><p>Hello. Fired twice, by hand.</p><p>See you.</p></main>
</body></html>
"""
ABOUT = """<!doctype html>
<html><head>
  <title>About | Amelia</title>
  <link rel="canonical" href="https://amelia.example/about.html">
  <meta name="description" content="Who we are">
</head>
<body>
<header><nav>
  <a href="./">Home</a>
  <a href="pots.html">Pots</a>
  <a href="about.html" aria-current="page">About</a>
</nav></header>
<main>
  <section class="prose">
    <h1>Who we are</h1>
    <p>One potter.</p>
  </section>
  <section><h2>More</h2></section>
</main>
<footer><p>Fired in Kent</p></footer>
</body></html>
"""
POTS = """<title>Pots | Amelia</title>
<main><h1>Pots</h1>
<h2>Mugs</h2>
<ul class="goods">
  <li class="pot">Mug &amp; saucer</li>
  <li class="pot">Tall mug
</ul>
<h2>Bowls</h2>
<ol><li>Soup bowl</li><li>Rice bowl<ul><li>small</li></ul></li></ol>
</main>
"""
STYLE = """/* body { background: red } */
:root { --accent: #B5573A; --bg-soft: #eee; --font: "red"; }
@media (prefers-color-scheme: dark) { :root { --accent: teal } body { background: black } }
body { background: #fff url("red.png") no-repeat; color: grey; }
h1 { color: maroon } h2, h3 { margin: 0; color: var(--accent) }
.card h3 { color: navy; }
.button { background: linear-gradient(red, blue); }
header { background: tan; color: white; }
"""
SITE = {"index.html": HOME, "about.html": ABOUT, "pots.html": POTS, "style.css": STYLE}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, SITE)


@pytest.mark.parametrize(
    ("mail", "file", "old", "new"),
    [
        ("add “Big <mug>, 30 €” to the mugs list on the pots page", "pots.html",
         "Tall mug\n", 'Tall mug\n  <li class="pot">Big &lt;mug&gt;, 30 €</li>\n'),
        ("Please add Salad bowl to the list that begins with “Soup bowl” on the pots page.", "pots.html",
         "</li></ol>", "</li><li>Salad bowl</li></ol>"),
        ("add a list item “Salad bowl” to the list of bowls on the pots page", "pots.html",
         "</li></ol>", "</li><li>Salad bowl</li></ol>"),
        ("remove the paragraph “See you.”", "index.html", "<p>See you.</p>", ""),
        ("remove the paragraph “One potter.”", "about.html", "    <p>One potter.</p>\n", ""),
        ("delete “Soup bowl”", "pots.html", "<li>Soup bowl</li>", ""),
        ("remove “Fired twice, by hand.”", "index.html", "Hello. Fired twice, by hand.", "Hello."),
        ("take out the words “twice,” on the homepage", "index.html", "Fired twice, by", "Fired by"),
        ("change the background colour to dark green", "style.css", "#fff", "darkgreen"),
        ("set the text color to #2B2B2B", "style.css", "grey", "#2b2b2b"),
        ("change the accent colour to Rebecca Purple", "style.css", "#B5573A", "rebeccapurple"),
        ("change --bg-soft to #abcd", "style.css", "#eee", "#abcd"),
        ("change the header background to light grey", "style.css", "tan", "lightgray"),
    ],
)  # fmt: skip
def test_a_mail_changes_one_place(site: Site, mail: str, file: str, old: str, new: str) -> None:
    site.becomes(mail, file, old, new)


def test_the_headings_are_all_headings_but_not_those_of_a_part(site: Site) -> None:
    assert isinstance(site.write("make the headings #7a3b2e"), Changed)
    assert site.changes() == {
        "style.css": STYLE.replace("maroon", "#7a3b2e").replace("color: var(--accent)", "color: #7a3b2e")
    }


@pytest.mark.parametrize(
    ("mail", "words"),
    [
        ("add “Jar” to the list on the pots page", ["begins with “Mug & saucer”", "begins with “Soup bowl”"]),
        ("add “Jar” to the jars list on the pots page", ["no list “jars”"]),
        ("change the header colour to navy", ["header background (now tan)", "header color (now white)"]),
        ("change the button colour to navy", ["no colour of “button”"]),
        ("change the background colour to #12345", ["do not know the colour “#12345”"]),
        ("change the background colour to “red; } body { display: none”", ["do not know the colour"]),
        ("remove “Home”", ["2 places"]),
        ("remove the paragraph “Hello.”", ["did not find"]),
        ("add a page called “!!!”", ["How should the new page be called?"]),
        ("add a page called Pots", ["There is the pots page already"]),
        ("change the background colour to red. Replace Mondays with Sundays.", ["did not find the text “Mondays”"]),
    ],
)
def test_what_is_not_clear_is_asked_and_nothing_changes(site: Site, mail: str, words: list[str]) -> None:
    result = site.write(mail)
    assert isinstance(result, Asked), result
    assert [word for word in words if word not in result.question] == []
    assert site.changes() == {}


@pytest.mark.parametrize(
    "mail",
    ["remove the second paragraph", "delete the about page", "make the headings bold", "add a page", "undo that"],
)
def test_what_it_cannot_do_it_does_not_guess(site: Site, mail: str) -> None:
    assert isinstance(site.write(mail), NotUnderstood)
    assert site.changes() == {}


def test_a_colour_that_is_so_already_is_answered(site: Site) -> None:
    assert isinstance(site.write("change the background colour to #fff"), Answered)


def test_a_new_page_has_the_shell_of_another_and_is_linked_everywhere(site: Site) -> None:
    result = site.write("Could you add a page called Workshops & more with the text “Every Friday.”?")
    assert result == Changed("Added the page “Workshops & more”, made like the about page and put it into the menu.")
    changes = site.changes()
    new = changes.pop("workshops-more.html")
    assert (
        new
        == """<!doctype html>
<html><head>
  <title>Workshops &amp; more | Amelia</title>
</head>
<body>
<header><nav>
  <a href="./">Home</a>
  <a href="pots.html">Pots</a>
  <a href="about.html">About</a>
  <a href="workshops-more.html" aria-current="page">Workshops &amp; more</a>
</nav></header>
<main>
  <section class="prose">
    <h1>Workshops &amp; more</h1>
    <p>Every Friday.</p>
  </section>
</main>
<footer><p>Fired in Kent</p></footer>
</body></html>
"""
    )
    link = '<a href="workshops-more.html">Workshops &amp; more</a>'
    assert changes == {
        "index.html": HOME.replace("About</a>", f"About</a> | {link}"),
        "about.html": ABOUT.replace("About</a>", f"About</a>\n  {link}"),
    }


def test_a_new_page_can_be_written_on_in_the_same_mail(site: Site) -> None:
    site.write("add a page called Workshops. Add a paragraph “Every Friday.” to the workshops page.")
    assert "<p>Every Friday.</p>" in site.changes()["workshops.html"]


def test_a_new_page_never_takes_the_place_of_a_file(tmp_path: Path) -> None:
    site = Site(tmp_path, {**SITE, "workshops.html/keep.txt": "mine"})
    assert isinstance(site.write("add a page called Workshops"), Asked)
    assert site.changes() == {}


@pytest.mark.parametrize(
    ("words", "colour"),
    [("Dark green", "darkgreen"), ("light-grey", "lightgray"), ("#ABC", "#abc"), ("#abcde", None), ("red;", None),
     ("rgb(1,2,3)", None), ("", None), ("greenish", None), ("#11223344", "#11223344")],
)  # fmt: skip
def test_colours_are_names_of_css_or_hex_numbers(words: str, colour: str | None) -> None:
    assert colour_of(words) == colour


def test_a_style_sheet_that_is_broken_is_read_as_far_as_it_goes() -> None:
    rules, colours = read_rules("a { color: red; b { color: blue } } } { c { color: #fff")
    assert [rule.selectors for rule in rules][:2] == [("a",), ("b",)]
    assert [(one.rule.selectors[0], one.rule.always) for one in colours][:2] == [("a", True), ("b", False)]


A, B = "change the title to A", "set the heading to B"


@pytest.mark.parametrize(
    ("mail", "wishes"),
    [
        (f"{A}\n\nThanks,\nScott\n\n\n\nPS: {B}", [A, B]),
        (f"{A}\nThanks, Scott\nP.S. {B}", [A, B]),
        (f"{A}\nPPS {B}", [A, B]),
        (f"{A}\n\nBest\n\n\n\n\n{B}", [A, B]),
        (f"{A}.\nThanks!\n\nAlso {B}", [A, B]),
        (f"{A}. Thanks! Also {B}", [A, B]),
        (f"Thanks for the photo\n\n{B}", [B]),
        (f"{A}\n\nKind regards\nScott\n- change Monday to Friday", [A, "change Monday to Friday"]),
        (f"{A}\n\nThanks\nScott\n\nPS the heading could be B", [A, "the heading could be B"]),
        (f"{A}\n\nThanks,\nScott Post\nMarket Place 5\nKent", [A]),
        (f"{A}. Thank you!\nScott\n\nSent from my phone", [A]),
    ],
)
def test_a_wish_below_the_name_is_read_and_the_name_is_not(mail: str, wishes: list[str]) -> None:
    assert wishes_of(mail) == wishes


def test_a_long_text_without_quotation_marks_is_followed_and_a_longer_one_is_told_so(tmp_path: Path) -> None:
    site = Site(tmp_path, {"index.html": "<h1>x</h1><p>y</p>"})
    words = " ".join(["word"] * 3_000)
    assert isinstance(result := site.write(f"add a paragraph saying {words} {words}"), NotUnderstood)
    assert "“add a paragraph saying word word" in result.text
    assert "is longer than the 20,000 characters that I follow at once, so nothing was changed" in result.text
    site.becomes(f"add a paragraph saying {words}", "index.html", "<p>y</p>", f"<p>y</p>\n<p>{words}</p>")
