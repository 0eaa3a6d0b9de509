"""What customers write about sites made by Hugo and MkDocs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.harness.site_folder import SiteFolder
from tests.unit.jobs.generator_sites import HUGO, MKDOCS
from webordinary.jobs.ports import Answered, Asked, Changed, NotUnderstood

ONE_EDIT = [
    ("Hugo: a title in TOML", HUGO, "change the title to “Pots 'now' & then”", "content/_index.md",
     "\"Amelia's pots\"", '"Pots \'now\' & then"'),
    ("Hugo: a title in plain YAML", HUGO, "set the title of the about page to Who we are", "content/about.md",
     "title: About us", 'title: "Who we are"'),
    ("Hugo: a title that YAML would misread is quoted", HUGO, "set the title of the about page to “Pots: all # of 'em”",
     "content/about.md", "title: About us", "title: \"Pots: all # of 'em\""),
    ("Hugo: a quoted title", HUGO, "set the title of the pots page to “Zoe's pots”",
     "content/pots/index.md", "'Amelia''s pots'", '"Zoe\'s pots"'),
    ("Hugo: a heading", HUGO, "set the heading on the pots page to “*New* pots”", "content/pots/index.md",
     "# Pots", "# \\*New\\* pots"),
    ("Hugo: text over two lines, not in code", HUGO, "change “Open on Mondays” to “Open daily”", "content/about.md",
     "Open on\nMondays", "Open daily"),
    ("Hugo: text in emphasis", HUGO, "change “Kent” to “Wales_UK”", "content/_index.md", "*Kent*", "*Wales\\_UK*"),
    ("Hugo: a paragraph comes last", HUGO, "add a paragraph “# 1 <b>” to the homepage", "content/_index.md",
     "*Kent*.\n", "*Kent*.\n\n&#35; 1 &lt;b&gt;\n"),
    ("Hugo: a list item", HUGO, "add “- Vases” to the list on the about page", "content/about.md",
     "- Bowls\n", "- Bowls\n- &#45; Vases\n"),
    ("Hugo: a removed item", HUGO, "remove the list item “Mugs”", "content/about.md", "- Mugs\n", ""),
    ("Hugo: a colour of the page", HUGO, "change the background colour to dark green", "static/style.css",
     "white", "darkgreen"),
    ("MkDocs: the heading is the title", MKDOCS, "change the title of the about page to Who", "docs/about.md",
     "# About\n", "# Who\n"),
    ("MkDocs: a numbered item, with the file's line ends", MKDOCS, "add “Vases” to the list on the homepage",
     "docs/index.md", "2. Bowls\r\n", "2. Bowls\r\n3. Vases\r\n"),
    ("MkDocs: a named list, spaced as it is", MKDOCS, "add “Sunday” to the hours list on the about page",
     "docs/about.md", "* Friday\n", "* Friday\n\n* Sunday\n"),
    ("MkDocs: a removed paragraph", MKDOCS, "delete the paragraph “Pots & more.”", "docs/index.md",
     "Pots & more.\r\n\r\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "mail", "file", "old", "new"), [row[1:] for row in ONE_EDIT], ids=[row[0] for row in ONE_EDIT]
)
def test_a_mail_changes_one_place(
    tmp_path: Path, files: Mapping[str, str], mail: str, file: str, old: str, new: str
) -> None:
    SiteFolder(tmp_path, files).becomes(mail, file, old, new)


@pytest.mark.parametrize(
    ("files", "page", "stored", "written"),
    [
        (HUGO, "about", "static/images/my-vase.jpg", "Mondays.\n\n![My Vase](/images/my-vase.jpg)\n\n- Mugs"),
        (MKDOCS, "about", "docs/images/my-vase.jpg", "![My Vase](images/my-vase.jpg)"),
    ],
    ids=["Hugo", "MkDocs"],
)
def test_a_photo_goes_where_the_generator_wants_it(
    tmp_path: Path, files: Mapping[str, str], page: str, stored: str, written: str
) -> None:
    site = SiteFolder(tmp_path, files)
    assert isinstance(site.write(f"add this photo to the {page} page", "My Vase.JPG"), Changed)
    changes = site.changes()
    assert changes.pop(stored)
    (text,) = changes.values()
    assert written in text


def test_a_photo_in_markdown_takes_the_place_of_another(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path, HUGO)
    assert isinstance(site.write("replace the photo of the kiln with the attached one", "new kiln.jpg"), Changed)
    assert '![The kiln](/images/new-kiln.jpg "Hot")' in site.changes()["content/pots/index.md"]


@pytest.mark.parametrize(
    ("files", "mail", "words"),
    [
        (MKDOCS, "add “Sunday” to the list on the about page", ["Monday", "Mug, 24 €"]),
        (HUGO, "change the colour of the sky to blue", []),
        (HUGO, "change the background colour to greenish", []),
        (HUGO, "change “Mondays” to “1” on the pots page", ["did not find “Mondays”"]),
    ],
)
def test_what_is_not_clear_is_asked_and_nothing_changes(
    tmp_path: Path, files: Mapping[str, str], mail: str, words: list[str]
) -> None:
    site = SiteFolder(tmp_path, files)
    result = site.write(mail)
    assert isinstance(result, Asked | NotUnderstood), result
    said = result.question if isinstance(result, Asked) else result.text
    assert [word for word in words if word not in said] == []
    assert site.changes() == {}


def test_new_words_that_would_turn_into_a_list_are_asked_about(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path, {**MKDOCS, "docs/index.md": "# A\n\nRoom. Nice.\n"})
    assert isinstance(site.write("change “Room” to “1”"), Asked)
    assert site.changes() == {}


def test_an_item_that_is_there_is_not_added_again(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path, HUGO)
    assert isinstance(site.write("add “Mugs” to the list on the about page"), Answered)
    assert site.changes() == {}


def test_a_docs_folder_outside_of_the_site_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n")
    site = SiteFolder(tmp_path, {**MKDOCS, "mkdocs.yml": "docs_dir: ../\n"})
    site.write("change “Secret” to “Public”")
    assert (tmp_path / "secret.md").read_text() == "# Secret\n"


def test_a_picture_folder_that_leads_out_of_the_site_is_left_alone(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path, HUGO)
    (tmp_path / "outside").mkdir()
    (site.folder / "static" / "images").symlink_to(tmp_path / "outside")
    with pytest.raises(Exception, match="leads out of the site"):
        site.write("add this photo to the about page", "a.jpg")
    assert [*(tmp_path / "outside").iterdir()] == []
