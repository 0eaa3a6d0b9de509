"""What customers write to the built-in agent, and what it does with their pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from tests.harness.site_folder import SiteFolder
from tests.photos import picture
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.adapters.agents.builtin.edits import size_of
from webordinary.entrypoints.cli import send
from webordinary.jobs.ports import AgentResult, AgentTask, Answered, Asked, AttachedFile, Changed, NotUnderstood
from webordinary.model.mail import Attachment, AttachmentKind

HOME = """<!doctype html>
<html><head><title>Hand-made pots · Amelia</title></head>
<body>
<header><a href="/">Amelia</a></header>
<main>
  <section class="hero">
    <h1>Hand-made pots</h1>
    <p>Thrown &amp; fired in Kent.   Open on
    Mondays.</p>
  </section>
  <section><h2>Shop</h2><img src="images/kiln.svg" srcset="big.svg 2x" alt="The kiln at night"></section>
</main>
<!-- Open on Mondays -->
<footer><p>Open to all visitors</p></footer>
<script>var text = "Open on Mondays";</script></body></html>
"""
ABOUT = "<title>About us</title>\r\n<main>\r\n<h1>About us</h1>\r\n  <p>One.</p>\r\n  <p>Two. Amelia</p>\r\n</main>\r\n"


PAGES = {"index.html": HOME, "about.html": ABOUT, "images/kiln.svg": "<svg/>"}


def home(site: SiteFolder) -> str:
    return site.files()["index.html"]


def about(site: SiteFolder) -> str:
    return site.files()["about.html"]


@pytest.fixture
def site(tmp_path: Path) -> SiteFolder:
    return SiteFolder(tmp_path, PAGES)


@pytest.mark.parametrize(
    "mail",
    [
        "change the homepage title to Spring Sale",
        "Please set the title of the homepage to “Spring Sale”.",
        "Hi,\n\ncould you change the title to 'Spring Sale'?\n\nThanks,\nScott",
        "Hello there! Update the home page title to Spring Sale. Thank you!",
        "- Change the website's title to Spring Sale",
    ],
)
def test_the_title_and_the_heading_that_says_the_same_change_together(site: SiteFolder, mail: str) -> None:
    assert site.write(mail) == Changed("Changed the title of the homepage to “Spring Sale”.")
    assert home(site) == HOME.replace("Hand-made pots", "Spring Sale")


def test_a_heading_that_says_something_else_stays_and_the_customer_is_told(site: SiteFolder) -> None:
    site.write("set the heading on the about page to Who we are")
    result = site.write("set the title of the about page to “Our story”")
    assert isinstance(result, Changed)
    assert "still says “Who we are”" in result.summary
    assert "<title>Our story</title>" in about(site)


def test_text_is_changed_where_it_stands_and_nowhere_else(site: SiteFolder) -> None:
    assert isinstance(site.write("Change “open on mondays” to “open every day”"), Changed)
    expected = HOME.replace("Open on\n    Mondays.", "Open every day.", 1)
    assert home(site) == expected  # the comment and the script keep their words


def test_text_with_entities_is_found_and_new_text_is_escaped(site: SiteFolder) -> None:
    site.write('replace "Thrown & fired" with "Made <b>& loved</b>"')
    assert "Made &lt;b&gt;&amp; loved&lt;/b&gt; in Kent" in home(site)


def test_line_ends_and_untouched_bytes_survive(site: SiteFolder) -> None:
    raw = ABOUT.encode() + b"<!-- caf\xe9 -->"
    (site.folder / "about.html").write_bytes(raw)
    site.write("change “Two. Amelia” to Three on the about page")
    assert (site.folder / "about.html").read_bytes() == raw.replace(b"Two. Amelia", b"Three")


def test_quoted_words_may_have_a_to_in_them(site: SiteFolder) -> None:
    assert isinstance(site.write("change “open to all visitors” to “open to nobody”"), Changed)
    assert "<p>Open to nobody</p>" in home(site)


def test_every_agent_is_told_the_standing_wishes_and_the_built_in_one_changes_nothing_because_of_them(
    site: SiteFolder,
) -> None:
    task = AgentTask('Change "Shop" to "Store"', site.folder, wishes=("British spelling", "never touch prices"))
    assert "\n- British spelling\n- never touch prices" in task.words
    assert task.words.startswith(task.instruction)
    assert isinstance(BuiltinAgent().run(task, FakeCancelToken()), Changed)
    assert "<h2>Store</h2>" in home(site)


def test_text_in_several_places_is_asked_about(site: SiteFolder) -> None:
    result = site.write("replace “Amelia” with “Zoe”")
    assert isinstance(result, Asked)
    assert "the homepage" in result.question
    assert "the about page" in result.question
    assert site.files() == PAGES


def test_the_question_which_place_is_meant_shows_words_and_no_markup(site: SiteFolder) -> None:
    (site.folder / "index.html").write_text(
        '<main><p>Come by.</p><p class="lead" id="hours-of-the-shop">We are <b>open</b> on Mondays &amp; more</p>'
        '<ul><li><a href="/hours.html" title="All the hours">on Mondays</a>, nine</li></ul></main>'
    )
    result = site.write('change "Mondays" to "Tuesdays"')
    assert isinstance(result, Asked)
    assert "“…Come by. We are open on Mondays & more on Mondays , nine…”" in result.question
    assert not set("<>") & set(result.question)
    assert "class=" not in result.question


def test_text_in_several_places_changes_everywhere_when_told_so(site: SiteFolder) -> None:
    assert isinstance(site.write("replace “Amelia” with “Zoe” everywhere"), Changed)
    assert "Amelia" not in home(site) + about(site)


def test_naming_the_page_settles_which_place_is_meant(site: SiteFolder) -> None:
    assert isinstance(site.write("replace “Amelia” with “Zoe” on the about page"), Changed)
    assert (home(site), about(site)) == (HOME, ABOUT.replace("Amelia", "Zoe"))


def test_part_of_a_word_is_not_the_word(site: SiteFolder) -> None:
    assert isinstance(site.write("change “isit” to “x”"), Asked)
    assert site.files() == PAGES


@pytest.mark.parametrize(
    "mail",
    [
        "add this photo to the homepage",
        "Please add the attached photo to the home page.",
        "put the picture I attached on the front page",
    ],
)
def test_a_photo_is_added_after_the_first_section(site: SiteFolder, mail: str) -> None:
    assert isinstance(site.write(mail, "My Vase.JPG"), Changed)
    assert (site.folder / "images" / "my-vase.jpg").read_bytes() == site.photo.read_bytes()
    hero, _, rest = home(site).partition("</section>\n")
    assert "<img" not in hero
    assert rest.lstrip().startswith('<figure class="photo"><img src="images/my-vase.jpg" alt="My Vase"')


def test_a_photo_says_what_it_shows(site: SiteFolder) -> None:
    site.write("add this photo of “our <new> vase” to the about page", "IMG_0042.jpg")
    assert 'alt="our &lt;new&gt; vase"' in about(site)


def test_two_photos_keep_their_order_and_their_names_apart(site: SiteFolder) -> None:
    (site.folder / "images" / "a.jpg").write_bytes(b"another one")
    assert isinstance(site.write("add these photos to the about page", "a.jpg", "b.jpg"), Changed)
    assert about(site).index("images/a-2.jpg") < about(site).index("images/b.jpg")


def test_a_photo_takes_the_place_of_another(site: SiteFolder) -> None:
    assert isinstance(site.write("replace the photo of the kiln with the attached one", "new kiln.jpg"), Changed)
    assert '<img src="images/new-kiln.jpg" alt="The kiln">' in home(site)
    assert not (site.folder / "images" / "kiln.svg").exists()


def test_a_photo_that_another_page_shows_keeps_its_file(site: SiteFolder) -> None:
    about = site.folder / "about.html"
    about.write_text(about.read_text().replace("</main>", '<img src="images/kiln.svg" alt="The oven"></main>'))
    assert isinstance(site.write("replace the photo on the homepage with the attached one", "new kiln.jpg"), Changed)
    assert (site.folder / "images" / "kiln.svg").exists()
    assert 'alt="new kiln"' in home(site)


def test_a_photo_says_its_size_and_is_described_on_request(site: SiteFolder) -> None:
    site.photo.write_bytes(picture("JPEG", size=(40, 30)))
    result = site.write("add this photo to the about page", "img_4711.jpg")
    assert isinstance(result, Changed)
    assert "What does it show?" in result.summary
    assert '<img src="images/img-4711.jpg" alt="" width="40" height="30"' in about(site)
    assert isinstance(site.write("The photo on the about page shows “Amelia at the wheel”."), Changed)
    assert 'src="images/img-4711.jpg" alt="Amelia at the wheel" width="40" height="30"' in about(site)


def with_copy(site: SiteFolder, text: str, sent_as: str = "Vase.jpg") -> AgentResult:
    """A wish with a photo that has a WebP copy."""
    copy = site.photo.with_name("copy")
    copy.write_bytes(b"the same as WebP")
    photo = Attachment("vase.jpg", "image/jpeg", AttachmentKind.IMAGE, 9, "0" * 64, sent_as, "1" * 64)
    return BuiltinAgent().run(AgentTask(text, site.folder, (AttachedFile(photo, site.photo, copy),)), FakeCancelToken())


SOURCE = '<source type="image/webp" srcset="images/vase.webp">'


def test_a_webp_copy_stands_beside_an_added_photo_and_goes_with_it(site: SiteFolder) -> None:
    assert isinstance(with_copy(site, "add this photo to the about page"), Changed)
    assert f'<picture style="display:contents">{SOURCE}<img src="images/vase.jpg" alt="Vase"' in about(site)
    assert (site.folder / "images" / "vase.webp").read_bytes() == b"the same as WebP"
    assert isinstance(site.write("The photo on the about page shows “Our blue vase”."), Changed)
    assert SOURCE in about(site)
    assert isinstance(site.write("remove the photo of the vase"), Changed)
    assert "vase" not in about(site)
    assert "figure" not in about(site)
    assert not (site.folder / "images" / "vase.webp").exists()


def test_a_webp_copy_that_another_page_shows_keeps_its_file(site: SiteFolder) -> None:
    with_copy(site, "add this photo to the homepage")
    with_copy(site, "add this photo to the about page")
    assert isinstance(site.write("remove the photo of the vase on the homepage"), Changed)
    assert SOURCE not in home(site)
    assert SOURCE in about(site)
    assert (site.folder / "images" / "vase.webp").exists()


def test_no_source_of_a_picture_shows_the_photo_that_was_replaced(site: SiteFolder) -> None:
    old = '<img src="images/kiln.svg" srcset="big.svg 2x" alt="The kiln at night">'
    around = (
        f'<picture class="wide"><source type="image/webp" srcset="images/kiln.webp 1x, big.webp 2x">{old}</picture>'
    )
    (site.folder / "index.html").write_bytes(HOME.replace(old, around).encode())
    (site.folder / "images" / "kiln.webp").write_bytes(b"the kiln")
    assert isinstance(with_copy(site, "replace the photo of the kiln with the attached one"), Changed)
    assert f'<picture class="wide">{SOURCE}<img src="images/vase.jpg" alt="The kiln"></picture>' in home(site)
    assert "kiln.webp" not in home(site)
    assert not (site.folder / "images" / "kiln.webp").exists()
    assert isinstance(site.write("replace the photo of the kiln with the attached one", "b.jpg"), Changed)
    assert "webp" not in home(site)
    assert not (site.folder / "images" / "vase.webp").exists()


@pytest.mark.parametrize("style", [".card > img { width: 9em }", "p + img{}", "img:first-child {margin:0}"])
def test_a_style_that_wants_the_photo_itself_there_keeps_it_without_a_copy(site: SiteFolder, style: str) -> None:
    (site.folder / "site.css").write_text(style)
    assert isinstance(with_copy(site, "replace the photo of the kiln with the attached one"), Changed)
    assert '<img src="images/vase.jpg" alt="The kiln"></section>' in home(site)
    assert not (site.folder / "images" / "vase.webp").exists()


def test_a_page_in_markdown_gets_no_webp_copy(site: SiteFolder) -> None:
    (site.folder / "mkdocs.yml").write_text("site_name: Amelia\n")
    (site.folder / "docs").mkdir()
    (site.folder / "docs" / "index.md").write_text("# Amelia\n\nPots.\n")
    assert isinstance(with_copy(site, "add this photo to the homepage"), Changed)
    assert "![Vase](images/vase.jpg)" in (site.folder / "docs" / "index.md").read_text()
    assert [path.name for path in (site.folder / "docs" / "images").iterdir()] == ["vase.jpg"]


def test_a_photo_named_in_another_script_is_described_by_that_name(site: SiteFolder) -> None:
    assert isinstance(with_copy(site, "add this photo to the homepage", "Синяя ваза.jpg"), Changed)
    assert 'alt="Синяя ваза"' in home(site)


def test_the_name_of_a_photo_keeps_its_letters(site: SiteFolder) -> None:
    site.write("add this photo to the about page", "Größe der Schüssel.jpg")
    assert "images/groesse-der-schuessel.jpg" in about(site)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_the_size_of_a_picture_is_in_its_header(kind: str) -> None:
    assert size_of(picture(kind, size=(40, 30))) == (40, 30)
    assert size_of(picture(kind, size=(40, 30))[:9]) == (0, 0)


def test_a_photo_that_was_forgotten_is_asked_for(site: SiteFolder) -> None:
    assert isinstance(site.write("add this photo to the about page"), Asked)
    assert isinstance(site.write("replace the photo of the kiln"), Asked)
    assert site.files() == PAGES


def test_an_unknown_page_is_asked_about_with_the_pages_there_are(site: SiteFolder) -> None:
    result = site.write("add this photo to the news page", "a.jpg")
    assert isinstance(result, Asked)
    assert "the homepage, the about page" in result.question
    assert site.files() == PAGES


def test_a_paragraph_follows_the_running_text(site: SiteFolder) -> None:
    site.write("add a paragraph “Closed in May.” to the about page")
    assert "<p>Two. Amelia</p>\n  <p>Closed in May.</p>" in about(site)


def test_several_wishes_in_one_mail_are_all_done(site: SiteFolder) -> None:
    result = site.write("change the homepage title to Spring Sale, and add the attached photo", "vase.jpg")
    assert result == Changed("Changed the title of the homepage to “Spring Sale”.\nAdded the photo to the homepage.")
    assert "<h1>Spring Sale</h1>" in home(site)
    assert "images/vase.jpg" in home(site)


def test_one_part_that_is_not_understood_stops_all_of_it(site: SiteFolder) -> None:
    result = site.write("change the homepage title to Spring Sale and make it more lively")
    assert isinstance(result, NotUnderstood)
    assert "make it more lively" in result.text
    assert site.files() == PAGES


def test_one_part_that_is_unclear_stops_all_of_it(site: SiteFolder) -> None:
    assert isinstance(site.write("change the title to “Sale”. Replace “Amelia” with “Zoe”."), Asked)
    assert site.files() == PAGES


@pytest.mark.parametrize("mail", ["make it pop", "", "x" * 10_000, "change", "add add add"])
def test_what_is_not_understood_changes_nothing_and_says_what_can_be_done(site: SiteFolder, mail: str) -> None:
    result = site.write(mail)
    assert isinstance(result, NotUnderstood)
    assert "change the homepage title to Spring Sale" in result.text
    assert site.files() == PAGES


@pytest.mark.parametrize(
    ("mail", "answer"),
    [
        ("Thanks!", "You are welcome!"),
        ("Vielen Dank!", "You are welcome!"),
        ("Thanks, that's great!", "You are welcome!"),
        ("Dear all,", "Thank you for your mail. It does not ask for a change."),
    ],
)
def test_a_mail_of_small_talk_is_answered_without_a_lecture(site: SiteFolder, mail: str, answer: str) -> None:
    assert site.write(mail) == Answered(answer)
    assert isinstance(site.write(mail, "vase.jpg"), NotUnderstood), "a photo was sent for something"
    assert site.files() == PAGES


def test_a_wish_in_the_subject_above_thanks_is_done(site: SiteFolder) -> None:
    assert isinstance(site.write("Thanks!\nMarco", subject="Set the title to “Spring Sale”"), Changed)
    assert site.files() != PAGES
    assert isinstance(site.write("Thanks!", subject="Make the kiln photo brighter"), NotUnderstood)
    for subject in ("Lovely", "Our website"):
        assert site.write("Thanks!", subject=subject) == Answered("You are welcome!")


@pytest.mark.parametrize("mail", [send.TEXT, "Hello,\n\nwhat can you do?\n\nBest, Ann", "Help"])
def test_who_asks_what_it_can_do_is_answered_as_the_first_mail_of_a_customer_asks(site: SiteFolder, mail: str) -> None:
    result = site.write(mail)
    assert isinstance(result, Answered)
    assert "change the homepage title to Spring Sale" in result.text
    assert site.files() == PAGES


def test_what_is_so_already_is_answered(site: SiteFolder) -> None:
    result = site.write("set the title to “Hand-made pots”")
    assert result == Answered("That is so already: set the title to “Hand-made pots”")


def test_a_mail_cannot_reach_out_of_the_site(site: SiteFolder) -> None:
    outside = site.folder.parent / "outside.html"
    outside.write_text("<h1>Secret</h1>")
    (site.folder / "link.html").symlink_to(outside)
    site.write("change “Secret” to “Public”")
    site.write("add this photo to the about page", "../../evil.jpg")
    assert outside.read_text() == "<h1>Secret</h1>"
    assert not (site.folder.parent / "evil.jpg").exists()
