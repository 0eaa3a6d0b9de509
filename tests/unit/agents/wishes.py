"""The site that the sentences of tests/data/wishes are about, and the reader of those files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "wishes"
_PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><title>{title} · Amelia</title><link rel="stylesheet" href="style.css"></head>
<body>
<nav><a href="index.html">Home</a> <a href="about.html">About</a></nav>
<main>
  <section>
    <h1>{title}</h1>
{text}
  </section>
</main>
<footer><p>Fired in Kent</p></footer>
</body></html>
"""
SITE = {
    "index.html": _PAGE.format(
        title="Hand-made pots",
        text="""    <p>Thrown &amp; fired with care. Open on Mondays.</p>
    <h2>Shop</h2>
    <img src="images/kiln.svg" alt="The kiln at night">
    <h2>Workshops</h2>
    <p>Every Friday at 7 pm, 45 euros.</p>
    <p>We are closed in May.</p>""",
    ),
    "about.html": _PAGE.format(
        title="About us",
        text="""    <p>One potter, two cats.</p>
    <p>Amelia learned to throw in a barn.</p>
    <img src="images/wheel.svg" alt="A bowl on the wheel">
    <h2>Our story</h2>
    <p>It began in 1998.</p>""",
    ),
    "pots.html": _PAGE.format(
        title="Pots",
        text="""    <h2>Mugs</h2>
    <ul>
      <li>Tall mug, 24 euros</li>
      <li>Small mug, 18 euros</li>
    </ul>
    <h2>Bowls</h2>
    <ul>
      <li>Soup bowl, 28 euros</li>
      <li>Rice bowl, 22 euros</li>
    </ul>""",
    ),
    "contact.html": _PAGE.format(
        title="Contact",
        text="""    <p>Call 01234 567890 or write to hello@amelia.example.</p>
    <p>The Old Barn, 7 River Lane</p>
    <ul>
      <li>Wednesday to Saturday</li>
      <li>10 to 5</li>
    </ul>""",
    ),
    "style.css": ":root { --accent: #b5573a; }\nbody { background: #fff; color: #333; }\nh1 { color: maroon; }\n"
    "h2, h3 { color: navy; }\na { color: teal; }\n.button { background: tan; }\n",
    "images/kiln.svg": "<svg/>",
    "images/wheel.svg": "<svg/>",
}


def _sample() -> dict[str, str]:
    """The sample site, with a page more that has a list."""
    folder = files("webordinary.operations.sample") / "amelia"
    site = {
        **{f"images/{file.name}": file.read_text() for file in (folder / "images").iterdir() if ".svg" in file.name},
        **{file.name: file.read_text() for file in folder.iterdir() if file.name.endswith((".html", ".css"))},
    }
    about = site["about.html"].replace("About the workshop", "News")
    text = """<h1>News</h1>
      <ul>
        <li>New kiln, 1 March</li>
        <li>Glaze course, 3 May</li>
      </ul>
      <h2>Follow us</h2>
      <p>Letters go out twice a year.</p>
"""
    return {**site, "news.html": re.sub(r"(?s)<h1>.*(?=    </article>)", text, about)}


SAMPLE = _sample()


def sentences(name: str) -> Iterator[tuple[str, str]]:
    """The mails of a file, each with the change that it asks for."""
    expected = ""
    for line in (DATA / name).read_text().splitlines():
        if line.startswith("= "):
            expected = line[2:]
        elif line and not line.startswith("#"):
            yield line.replace("\\n", "\n"), expected.replace("\\n", "\n")


def is_as_expected(files: dict[str, str], expected: str, site: Mapping[str, str] = SITE) -> bool:
    """Whether the site differs from SITE by these changes and nothing else."""
    files, wanted = dict(files), dict(site)
    for change in expected.split(" ;; "):
        if change.startswith("photo "):
            name, _, place = change.removeprefix("photo ").partition(" after ")
            figure = re.search(r"\s*<figure[^\n]*images/photo\.jpg[^\n]*</figure>\n?", files[name])
            if figure is None or (place and not files[name][: figure.start()].endswith(place)):
                return False
            files[name] = files[name].replace(figure[0], "\n", 1)
            wanted[name] = _apply(wanted[name], "", "", every=False)
            wanted["images/photo.jpg"] = files.get("images/photo.jpg", "")
            continue
        if change.startswith("swap "):
            wanted["images/photo.jpg"] = files.get("images/photo.jpg", "")
            file, old = change.removeprefix("swap ").partition(" => ")[0].split(": ")
            files[file] = re.sub(r'(<img src="images/photo.jpg")[^>]*>', r"\1>", files[file])
            wanted[file] = re.sub(rf'(<img src="{old}")[^>]*>', r"\1>", wanted[file])
            if not any(old in text for name, text in files.items() if name != old):
                wanted.pop(old)
        file, _, rest = change.removeprefix("swap ").partition(": ")
        old, arrow, new = re.split(r"( =>>? ?)", rest, maxsplit=1)
        wanted[file] = _apply(wanted[file], old, new, every=">>" in arrow)
    return {n: "".join(t.split()) for n, t in files.items()} == {n: "".join(t.split()) for n, t in wanted.items()}


def _apply(text: str, old: str, new: str, *, every: bool) -> str:
    assert not old or every or text.count(old) == 1, old
    return text.replace(old, new) if old else text
