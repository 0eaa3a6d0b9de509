"""Lists, new pages, colours and removals on plain HTML pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.site_folder import SiteFolder
from webordinary.adapters.agents.builtin.colours import colour_of, read_rules
from webordinary.jobs.ports import Answered, Asked, Changed, NotUnderstood

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
def site(tmp_path: Path) -> SiteFolder:
    return SiteFolder(tmp_path, SITE)


@pytest.mark.parametrize(
    ("mail", "file", "old", "new"),
    [
        ("add “Big <mug>, 30 €” to the mugs list on the pots page", "pots.html",
         "Tall mug\n", 'Tall mug\n  <li class="pot">Big &lt;mug&gt;, 30 €</li>\n'),
        ("Please add “Salad bowl” to the list that begins with “Soup bowl” on the pots page.", "pots.html",
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
    ],
)  # fmt: skip
def test_a_mail_changes_one_place(site: SiteFolder, mail: str, file: str, old: str, new: str) -> None:
    site.becomes(mail, file, old, new)


@pytest.mark.parametrize(
    ("style", "mail", "told"),
    [
        (":root { --ink: #38291f } body { background: #fff; color: var(--ink) }", "make the background dark green",
         "the contrast of text and background is 1.9 to 1 now, and should be 4.5 to 1"),
        ("body { background: #fff; color: #222 }", "make the background ivory", ""),
        ("body { background: #fff; color: #222 } h1 { color: #222 } h2 { color: #ddd }", "make the background ivory",
         "hard to read"),
        ("body { background: ivory } h1 { color: maroon }", "make the big heading yellow", "1.1 to 1"),
        (".button { background: black; color: white }", "make the buttons yellow", "hard to read"),
        ("body { background: #fff; color: oklch(0.3 0.1 20) }", "make the background navy", "Please look whether"),
    ],
)  # fmt: skip
def test_who_changes_a_colour_is_told_when_text_gets_hard_to_read(
    site: SiteFolder, style: str, mail: str, told: str
) -> None:
    (site.folder / "style.css").write_text(style)
    result = site.write(mail)
    assert isinstance(result, Changed), result
    assert told in result.summary
    assert ("read" in result.summary) is bool(told)


def test_the_headings_are_all_headings_but_not_those_of_a_part(site: SiteFolder) -> None:
    assert isinstance(site.write("make the headings #7a3b2e"), Changed)
    assert site.changes() == {
        "style.css": STYLE.replace("maroon", "#7a3b2e").replace("color: var(--accent)", "color: #7a3b2e")
    }


@pytest.mark.parametrize(
    ("mail", "words"),
    [
        ("add “Jar” to the list on the pots page", ["Mug & saucer", "Soup bowl"]),
        ("add “Jar” to the jars list on the pots page", ["no list “jars”"]),
        ("change the button colour to navy", ["1 places that colour the button"]),
        ("change the background colour to #12345", []),
        ("change the background colour to “red; } body { display: none”", []),
        ("remove “Home”", ["2 places"]),
        ("remove the paragraph “Hello.”", ["did not find"]),
        ("change the background colour to red. Replace “Mondays” with “Sundays”.", ["did not find “Mondays”"]),
    ],
)
def test_what_is_not_clear_is_asked_and_nothing_changes(site: SiteFolder, mail: str, words: list[str]) -> None:
    result = site.write(mail)
    assert isinstance(result, Asked | NotUnderstood), result
    said = result.question if isinstance(result, Asked) else result.text
    assert [word for word in words if word not in said] == []
    assert site.changes() == {}


@pytest.mark.parametrize(
    "mail",
    [
        "remove the second table",
        "delete the about page",
        "make the headings bold",
        "add a page",
        "add a page called “Workshops”",
    ],
)
def test_what_it_cannot_do_it_does_not_guess(site: SiteFolder, mail: str) -> None:
    assert isinstance(site.write(mail), NotUnderstood)
    assert site.changes() == {}


def test_a_colour_that_is_so_already_is_answered(site: SiteFolder) -> None:
    assert isinstance(site.write("change the background colour to #fff"), Answered)


@pytest.mark.parametrize(
    ("words", "colour"),
    [("Dark green", "darkgreen"), ("light-grey", "lightgray"), ("#ABC", "#abc"), ("#abcde", None), ("red;", None),
     ("rgb(1,2,3)", None), ("", None), ("greenish", None), ("#11223344", "#11223344")],
)  # fmt: skip
def test_colours_are_names_of_css_or_hex_numbers(words: str, colour: str | None) -> None:
    assert colour_of(words) == colour


def test_a_style_sheet_that_is_broken_is_read_as_far_as_it_goes() -> None:
    rules = read_rules("a { color: red; b { color: blue } } } { c { color: #fff")
    assert rules[0].selectors == ("a",)
    assert list(rules[0].colours) == ["color"]
