"""Which change an `undo` means by the page or file that it names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from webordinary.jobs.live import AmbiguousChange, choose
from webordinary.jobs.report import of_ambiguous_undo
from webordinary.jobs.source import Change, PastChange
from webordinary.mail.parsing.commands import ALL
from webordinary.mail.replies.languages import own_catalogues


def changed(*files: str, commit: str = "a") -> PastChange:
    return PastChange(Change(commit * 40, "Done.", files), f"job-{commit}", "a wish", stands=True)


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("index.html", "http://edit.amelia.localhost:8000/"),
        ("src/pages/index.astro", "/"),
        ("docs/index.md", "/"),
        ("content/_index.md", "/"),
        ("public/index.html", "/"),
        ("public/index.html", "index.html"),
        ("docs/index.md", "docs/index.md"),
        ("docs/about.md", "about.html"),
        ("src/pages/blog/index.astro", "/blog/"),
        ("content/blog/café.md", "https://amelia.example/blog/caf%C3%A9/?from=mail#top"),
        ("about me.html", "/about%20me.html"),
        ("About.html", "/about.html"),
        ("a.b.html", "/a.b/"),
        ("v1.2/index.html", "/v1.2/"),
        ("docs/kiln.html", "/docs/kiln.html"),
        ("docs.md", "/docs/"),
        ("public/images/kiln.jpg", "/images/kiln.jpg"),
        ("images/kiln.jpg", "kiln.jpg"),
        ("blog/about.md", "about.html"),
    ],
)
def test_a_page_is_known_by_its_address_and_by_its_file(file: str, named: str) -> None:
    one = changed(file)
    assert choose((one, changed("else.css", commit="b")), named, "") == one


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("blog/index.html", "index.html"),
        ("blog/index.html", "/index.html"),
        ("docs/index.md", "/docs/"),
        ("images/about.jpg", "/about/"),
        ("images/about.jpg", "about.html"),
        ("blog/about.html", "/about.html"),
        ("v1.html", "/v1.2/"),
    ],
)
def test_another_page_is_not_taken_for_it(file: str, named: str) -> None:
    past = (changed(file),)
    assert choose(past, named, "") == AmbiguousChange(past)


def test_a_name_that_fits_wholly_goes_before_one_that_fits_at_its_end() -> None:
    whole, end = changed("about.html"), changed("blog/about.html", commit="b")
    assert choose((end, whole), "about.html", "") == whole


def test_a_name_that_several_files_end_in_is_asked_back() -> None:
    past = changed("blog/about.html"), changed("shop/about.html", commit="b")
    assert choose(past, "about.html", "") == AmbiguousChange(past)


def test_two_changes_of_the_named_page_are_asked_back_alone() -> None:
    one, two = changed("about.html"), changed("about.html", commit="b")
    assert choose((changed("index.html", commit="c"), two, one), "/about.html", "") == AmbiguousChange((two, one))


def test_an_undo_of_everything_means_the_only_change_and_of_several_it_is_asked_which() -> None:
    one, gone = changed("about.html"), replace(changed("pots.html", commit="b"), stands=False)
    assert choose((gone, one), ALL, "") == one
    assert choose((gone,), ALL, "") == AmbiguousChange(())
    two = changed("index.html", commit="c")
    assert choose((two, gone, one), ALL, "job-a") == AmbiguousChange((two, one))
    asked = of_ambiguous_undo(ALL, (two, one)).result.question or ""
    assert "one change at a time" in asked
    assert [one.language for one in own_catalogues() if "one change" in one.say(asked)] == []
