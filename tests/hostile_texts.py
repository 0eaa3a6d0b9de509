"""Texts that make a careless pattern look at the same characters again and again: mails and pages, of any length."""

from __future__ import annotations

from pathlib import Path

UNITS = (
    " ", "\t", "\n", " \n", "\r\n", "\n\n ", "a", "a ", "A. ", "é", "\u3000", "\ue000", "\udce4", "0", "-", "--",
    "---\n", "- ", "* ", "_", "a_", "=", "~", "|", " | ", "#", " #", "# ", "# a #", ".", "!", "! ", ",", ";", ":",
    ": ", "/", "//", "'", '"', "`", "` ", "``a`", "“", "”", "\u2018", "«", "„", " \u2018a", "'a ", '"\\', "'\\",
    '\\', '\\"', "\\`", "\\_", "$", "${", "<", ">", "<>", "< ", "<a", "<a ", "<a b", "<a b=", "<a b='", '<a b="',
    "<a/", "<a b=c/>", "</", "</a", "</a>", "</p ", "<p>", "<p>a", "<b>", "<b><p>", "<b></i>", "<ul>", "<li>",
    "<ul><li>a", "<ul><li>a</ul>", "<h1>a", "<h2>a</h2>", "<nav>", "<nav><a href=a>", "<a href=about.html>",
    "<title>", "<title>a", "<img ", "<img src=a alt='the kiln'>", "<meta name=description>", "<style>", "<style>a{}",
    "<style ", "</style ", "<script", "<script>", "<script ", "</script ", "<!", "<!-", "<!--", "-->", "<!-->", "<?",
    "<![", "<![CDATA[", "]]>", "<svg>", "<main>", "<Base ", ' title="', " title='a", "&", "&#", "&#1", "&#x", "&a",
    "&amp;", "&amp; ", "[", "]", "(", ")", "![", "](", "[a](", "![a](", "![a](b ", "[[", "[a]", "{", "}", "{{",
    "{{<", "{{% ", "{'", '{"', "{`", "{/*", "{//", "{a}", "/*", "*/", "/* ", "//a\n", "```\n", "~~~\n", "> ", "1. ",
    "a:", "a: ", "a{", "a{}", "a{color:red;", "h1{color:red}", "@media a{", "@layer a{", "url(", "rgb(", "var(",
    "a,", "--a:red;", "color: red ", "import ", "import a\n", "export const title = '", "const title ", "title: ",
    "title: a\n ", "title = 'a", "nav:\n", "base: ", "+++\n", "[[menu.main]]\n", "weight\n", "please", "please ",
    "thanks ", "and ", " and add", "to ", " to", " to a to ", "on the ", " page", "the list ", "change a to b; ",
    "add ", "the title ", "colour ", "photo of ", "paragraph:", "paragraph: a\n", "page called ", "Monday ",
    "Open on Mondays. ",
)  # fmt: skip
"""What is repeated."""

OPENINGS = (
    "",
    "<p>",
    "<title>a",
    "<h1>a",
    "# a",
    "---\ntitle: a",
    "---\n",
    "{\n",
    "+++\ntitle = 'a",
    "<style>a{color:a",
)
"""What stands before it, so that it is read as this and not as that."""

MAILS = ("", "change the title", "change “a” to ", "please add ", "add a paragraph: ", "set the heading to “", "Hi ")

EVERYTHING = """change the title to Pots

set the heading on the homepage to Bowls

add “Blue bowl” to the list

add a paragraph “We are closed in May.” to the homepage

remove “Monday”

remove the paragraph “a”

change “Monday” to “Friday” everywhere

change the background colour to green

make the headings red

replace the photo of the kiln

add this photo to the homepage
"""
"""One of each kind of wish."""


def repeated(opening: str, unit: str, size: int) -> str:
    """So long, and with an end that is like nothing before it."""
    return opening + unit * (size // len(unit)) + "x"


def put_into_site(folder: Path, kind: str, text: str) -> None:
    """A small site that has this text as a page, or as its style sheet or settings."""
    page, files = KINDS[kind]
    for name, other in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(other)
    (folder / page).parent.mkdir(parents=True, exist_ok=True)
    (folder / page).write_bytes(text.encode("utf-8", "surrogateescape"))


_ABOUT = "<title>About</title><nav><a href=about.html>About</a></nav><main><h1>About</h1><p>a</p></main>"
KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "html": ("index.html", {"about.html": _ABOUT}),
    "css": ("style.css", {"index.html": _ABOUT}),
    "markdown": ("content/_index.md", {"hugo.toml": "", "content/about.md": "---\ntitle: About\n---\n# About\n"}),
    "toml": ("hugo.toml", {"content/about.md": "---\ntitle: About\n---\n# About\n"}),
    "yaml": ("mkdocs.yml", {"docs/index.md": "# About\n"}),
    "astro settings": ("astro.config.mjs", {"src/pages/about.html": _ABOUT}),
}
"""Each kind of file: what it is called, and what else there must be."""
