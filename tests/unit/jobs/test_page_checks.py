"""The checks of a change before visitors see it, on two folders with manifests."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from webordinary.jobs import page_checks
from webordinary.jobs.page_checks import SiteComparison, compare_releases
from webordinary.jobs.site_files import Mark, keep_manifest
from webordinary.mail.replies.answers import _not_touched
from webordinary.model.jobs import JobResult

HOME = '<title>Home</title><a href="about.html">About</a><img src="mug.png" alt="A mug"><script>old()</script>'
ABOUT = '<title>About us</title><a href="gone.html">dead before</a><a href="https://other.example/x">elsewhere</a>'
SITE = {"index.html": HOME, "about.html": ABOUT, "mug.png": "png", "style.css": "body{}"}


def compared(folder: Path, changes: dict[str, str | None]) -> SiteComparison:
    """The sample site beside the same site with these files; None removes one."""
    after = {name: text for name, text in {**SITE, **changes}.items() if text is not None}
    return compare_releases(release(folder / "before", SITE), release(folder / "after", after))


def release(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    marks = {name: Mark(hashlib.sha256(text.encode()).hexdigest(), len(text)) for name, text in files.items()}
    keep_manifest(folder, marks)
    return folder


def test_the_report_counts_pages_and_names_those_that_changed(tmp_path: Path) -> None:
    found = compared(tmp_path, {"about.html": ABOUT.replace("About us", "Who we are")})
    assert (found.pages_total, found.pages_changed) == (2, 1)
    assert found.changed_pages == (("about.html", "Who we are"),)
    assert (found.findings, found.outside) == ((), ())  # gone.html was dead before


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"index.html": HOME + '<a href="shop.html">Shop</a>'}, ("link", "Home", "shop.html")),
        ({"index.html": HOME + '<img src="/x.png" alt="">'}, ("picture", "Home", "/x.png")),
        ({"index.html": HOME + '<img src="mug.png">'}, ("alt", "Home", "mug.png")),
        ({"index.html": HOME.replace("<title>Home</title>", "")}, ("title", "index.html", "Home")),
        ({"index.html": HOME + "x" * 600_000}, ("size", "Home", "0.6 MB")),
        ({"about.html": None}, ("link", "Home", "about.html")),
        ({"mug.png": None}, ("picture", "Home", "mug.png")),
    ],
)
def test_what_a_change_breaks_is_found(
    tmp_path: Path, changes: dict[str, str | None], finding: tuple[str, str, str]
) -> None:
    assert compared(tmp_path, changes).findings == (finding,)


@pytest.mark.parametrize(
    "target", ["about", "about.html?x=1#top", "./", "/", "#here", "mailto:a@b.example", "tel:123", "http://[", ""]
)
def test_addresses_that_lead_somewhere_are_no_finding(tmp_path: Path, target: str) -> None:
    assert compared(tmp_path, {"index.html": f'{HOME}<a href="{target}">x</a>'}).findings == ()


@pytest.mark.parametrize(
    ("addition", "outside"),
    [
        ('<script src="https://cdn.example/x.js"></script>', ("cdn.example",)),
        ("<script>evil()</script>", ("script",)),
        ('<p onclick="evil()">x</p>', ("script",)),
        ('<a href="javascript:evil()">x</a>', ("script",)),
        ('<iframe src="//video.example/1"></iframe>', ("video.example",)),
        ('<form action="https://phish.example/"></form>', ("phish.example",)),
        ('<a href="https://friends.example/">a link is no foreign content</a>', ()),
        ('<script type="application/ld+json">{"a": 1}</script>', ()),
        ("<script>old()</script>", ()),
    ],
)
def test_new_scripts_and_foreign_hosts_are_found(tmp_path: Path, addition: str, outside: tuple[str, ...]) -> None:
    assert compared(tmp_path, {"index.html": HOME + addition}).outside == outside


def test_a_new_page_may_use_the_scripts_of_other_pages(tmp_path: Path) -> None:
    assert compared(tmp_path, {"new.html": "<title>New</title><script>old()</script>"}).outside == ()


def test_a_style_sheet_that_loads_from_a_new_host_is_found(tmp_path: Path) -> None:
    assert compared(tmp_path, {"style.css": "@import url('https://fonts.example/a.css');"}).outside == (
        "fonts.example",
    )


EVIL = '<script src="//evil.example/x.js"></script>'


@pytest.mark.parametrize(
    "changes",
    [
        {"index.html": HOME + "x" * page_checks.PAGE_BYTES + EVIL},
        {"style.css": "/*" + "x" * page_checks.PAGE_BYTES + "*/ @import url('//evil.example/a.css');"},
    ],
)
def test_a_file_padded_beyond_what_is_read_is_not_taken_for_harmless(
    tmp_path: Path, changes: dict[str, str | None]
) -> None:
    found = compared(tmp_path, changes)
    assert found.refused(("evil.example", page_checks.TOO_LARGE)) == (page_checks.TOO_LARGE,)
    assert found.refused(("*",)) == ()
    assert not (found.is_checked and "index.html" in changes)


@pytest.mark.parametrize(
    "changes",
    [
        {**{f"a{number}.html": HOME for number in range(10)}, "z.html": HOME + EVIL},
        {**{f"a{number}.css": "b{}" * 60 for number in range(10)}, "z.css": "@import url('//evil.example/a.css');"},
    ],
)
def test_files_beyond_the_budget_are_not_taken_for_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str | None]
) -> None:
    monkeypatch.setattr(page_checks, "MOST_BYTES", len(HOME) * 5)
    found = compared(tmp_path, changes)
    assert page_checks.TOO_LARGE in found.refused(())
    assert found.refused(("*",)) == ()


def test_the_operator_allows_hosts_one_by_one_or_all() -> None:
    found = SiteComparison(outside=("cdn.example", "script"))
    assert found.refused(()) == ("cdn.example", "script")
    assert found.refused(("cdn.example",)) == ("script",)
    assert found.refused(("*",)) == ()


def test_a_release_that_cannot_be_read_is_not_compared(tmp_path: Path) -> None:
    only = release(tmp_path / "after", SITE)
    assert compare_releases(None, only).pages_total == 0
    assert compare_releases(tmp_path / "elsewhere", only).pages_total == 0
    assert compare_releases(only, only).pages_total == 0


def test_what_one_comparison_reads_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_checks, "MOST_BYTES", len(HOME) * 5)
    many: dict[str, str | None] = {f"{number}.html": HOME.replace("Home", f"New {number}") for number in range(10)}
    found = compared(tmp_path, many)
    assert (found.pages_changed, found.is_checked) == (10, False)
    assert 0 < len(found.changed_pages) < 10


@pytest.mark.parametrize("shared", ["style.css", "nav.js"])
def test_a_changed_style_sheet_or_script_counts_as_a_change_of_how_other_pages_look(
    tmp_path: Path, shared: str
) -> None:
    found = compared(tmp_path, {shared: "h1 { color: red }"})
    assert (found.pages_changed, found.is_restyled) == (0, True)
    result = JobResult("Changed the colour.", "c0ffee", pages_total=2, is_checked=True, is_restyled=True)
    said = repr(_not_touched(result))
    assert "other pages may look different" in said
    assert "Nothing else was touched" not in said
