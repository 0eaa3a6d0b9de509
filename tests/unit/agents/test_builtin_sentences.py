"""What site owners write, and what the built-in agent makes of it: done exactly, or asked; never done wrongly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

import pytest

from tests.harness.site_folder import SiteFolder
from tests.unit.agents.wishes import SAMPLE, SITE, is_as_expected, sentences
from webordinary.adapters.agents.builtin.grammar import EXAMPLES, Grammar, Misunderstood
from webordinary.adapters.agents.builtin.words import LANGUAGES
from webordinary.jobs.ports import Answered, Asked, Changed, NotUnderstood
from webordinary.mail.parsing.message import parse
from webordinary.mail.parsing.small_talk import Quotations, is_small_talk
from webordinary.mail.replies.languages import own_catalogues

LEAST_DONE = 0.9


def as_read(text: str) -> str:
    """The text as the agent gets it: a mail that was sent and parsed."""
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["Subject"], mail["Message-ID"] = "Scott Miller <scott@example.com>", "Website", "<1@example.com>"
    mail.set_content(text)
    return parse(mail.as_bytes()).text


def outcome(site: SiteFolder, mail: str, expected: str) -> str:
    """`done`, `asked`, or `wrong` for every other change of the site, which is then as it was."""
    photos = ["photo.jpg"] if "photo" in expected or "[photo.jpg]" in mail else []
    result = site.write(as_read(mail.replace(" [photo.jpg]", "")), *photos)
    files = site.files()
    site.restore(files)
    if files == site.before:
        return "wrong" if isinstance(result, Changed) else "asked"
    return "done" if expected and is_as_expected(files, expected, site.before) else "wrong"


@pytest.mark.parametrize(
    ("name", "pages", "least"),
    [
        ("development.txt", SITE, LEAST_DONE),
        ("held_out.txt", SITE, LEAST_DONE),
        ("sample.txt", SAMPLE, LEAST_DONE),
        ("blind.txt", SAMPLE, LEAST_DONE),
        ("languages.txt", SAMPLE, 1),
    ],
)
def test_of_exact_wishes_most_are_done_and_none_is_done_wrongly(
    tmp_path: Path, name: str, pages: Mapping[str, str], least: float
) -> None:
    mails, site = list(sentences(name)), SiteFolder(tmp_path, pages)
    got = {mail: outcome(site, mail, expected) for mail, expected in mails}
    assert [mail for mail, what in got.items() if what == "wrong"] == []
    not_done = [mail for mail, what in got.items() if what != "done"]
    assert len(not_done) <= (1 - least) * len(mails), not_done


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("traps.txt", SITE),
        ("sample_traps.txt", SAMPLE),
    ],
)
def test_a_mail_that_is_not_understood_to_the_last_word_changes_nothing(
    tmp_path: Path, name: str, pages: Mapping[str, str]
) -> None:
    site = SiteFolder(tmp_path, pages)
    assert [mail for mail, _ in sentences(name) if outcome(site, mail, "") != "asked"] == []


def test_what_was_not_understood_is_left_aside_after_a_yes(site: SiteFolder) -> None:
    asked = site.write("Change “two cats” to “three cats”. The kettle broke.")
    assert isinstance(asked, Asked)
    assert "The kettle broke" in asked.question
    assert site.files() == SITE
    assert isinstance(site.write("Yes, please!"), Changed)
    assert "three cats" in site.files()["about.html"]


def test_thanks_for_a_question_about_a_photo_do_not_ask_for_a_wish_and_a_yes_adds_the_photo(site: SiteFolder) -> None:
    asked = site.write("Add this photo to the about page. The kettle broke.", "shop.jpg")
    assert isinstance(asked, Asked)
    assert isinstance(site.write("Thanks!", "shop.jpg"), Answered), "the photo is that of the mail asked about"
    assert isinstance(site.write("Yes, please!", "shop.jpg"), Changed)
    assert "shop.jpg" in site.files()["about.html"]


@pytest.mark.parametrize(
    ("mail", "answer"),
    [
        ("Please add this photo to the kitchen page. Thanks", "the about page"),
        ("Please add this photo to the kitchen page. Thanks", "I mean the about page, please. Thanks!"),
        ("Bitte fügen Sie das Foto auf der Küchenseite ein", "auf der Seite about"),
    ],
)
def test_the_question_which_page_is_meant_takes_the_name_of_a_page(site: SiteFolder, mail: str, answer: str) -> None:
    asked = site.write(mail, "shop.jpg")
    assert isinstance(asked, Asked)
    assert "did not find a page" in asked.question
    assert isinstance(site.write("the garden", "shop.jpg"), Asked | NotUnderstood)
    assert site.files() == SITE
    assert isinstance(site.write(answer, "shop.jpg"), Changed)
    assert "shop.jpg" in site.files()["about.html"]


def test_a_full_name_and_a_role_below_a_closing_sign_a_mail(site: SiteFolder) -> None:
    mail = "Hello, please change “two cats” to “three cats”. Kind regards, Marco Bellini, Owner"
    assert isinstance(site.write(mail), Changed)
    assert "three cats" in site.files()["about.html"]


@pytest.mark.parametrize(
    "mail",
    [
        "We are talking about the flyer. Change “two cats” to “three cats”.",
        "I am training a new colleague with this. Change “two cats” to “three cats”.",
        "Our prices went up in the shop. Change “two cats” to “three cats”.",
        "Our prices have not changed. Change “two cats” to “three cats”.",
        "Der Flyer ist gemeint: bitte „two cats“ durch „three cats“ ersetzen.",
        "Change “two cats” to “three cats”. The motion was defeated.",
        "Change “two cats” to “three cats”. We were outvoted.",
        "The three kittens are sold. Change “two cats” to “three cats”.",
        "Our house is cold. Change the heading to Three Cats.",
        "Our prices went up a little.",
    ],
)
def test_what_is_told_beside_a_wish_may_bind_it_and_is_asked_about(site: SiteFolder, mail: str) -> None:
    assert isinstance(site.write(mail), Asked | NotUnderstood)
    assert site.files() == SITE


@pytest.mark.parametrize(
    ("mail", "made"),
    [
        ("We would like the title “Our story” for the about page.", "<title>Our story"),
        ("Could the heading of the about page become “Our story”?", "<h1>Our story</h1>"),
        ("Please rename the heading About us to “Our story” on the about page.", "<h1>Our story</h1>"),
        ("Change the text “two cats” in the paragraph to “three cats”.", "three cats"),
    ],
)
def test_more_ways_to_name_a_title_a_heading_and_a_text(site: SiteFolder, mail: str, made: str) -> None:
    assert isinstance(site.write(mail), Changed)
    assert made in site.files()["about.html"]


def test_a_command_beside_what_was_not_understood_is_asked_for_and_done_after_a_yes(site: SiteFolder) -> None:
    asked = site.write("Oh no, that looks like a horror film. Please undo!")
    assert isinstance(asked, Asked)
    assert "If you mean “undo”, reply “yes”" in asked.question
    done = site.write("Yes")
    assert isinstance(done, Answered)
    assert done.then == "undo"


@pytest.mark.parametrize(
    "unread",
    [
        "Until Sunday " + "and every day after it " * 30,
        "For today: change “Hand-made” to “Old”.",
        "Make the about page more simple.",
        "Change the prices.",
        "Also the about page.",
    ],
)
def test_no_sentence_is_read_past(site: SiteFolder, unread: str) -> None:
    for mail in (f"{unread} Change “two cats” to “three cats”.", f"Change “two cats” to “three cats”. {unread}"):
        assert isinstance(site.write(mail), Asked | NotUnderstood)
    assert site.files() == SITE


def test_the_name_of_the_site_stays_in_a_title_that_says_something_else_than_the_heading(site: SiteFolder) -> None:
    site.write("Set the heading on the about page to “Who we are”")
    assert isinstance(site.write("Set the title of the about page to “Our story”"), Changed)
    assert "<title>Our story · Amelia</title>" in site.files()["about.html"]


def test_two_wishes_that_contradict_each_other_are_asked_about(site: SiteFolder) -> None:
    asked = site.write("Change the homepage title to “Spring Sale”. Change the homepage title to “Summer Sale”.")
    assert isinstance(asked, Asked)
    assert "Which of them" in asked.question
    assert site.files() == SITE


def test_a_sentence_about_an_attached_photo_is_its_description(site: SiteFolder) -> None:
    assert isinstance(
        site.write("Please add this photo to the about page. It shows the new kiln.", "photo.jpg"), Changed
    )
    assert 'alt="the new kiln"' in site.files()["about.html"]


@pytest.mark.parametrize("answer", ["The photo shows our new kiln.", "Das Foto zeigt „our new kiln“. Danke!"])
def test_the_question_what_a_photo_shows_can_be_answered(site: SiteFolder, answer: str) -> None:
    added = site.write("Please add this photo to the about page.", "img_1.jpg")
    assert isinstance(added, Changed)
    assert "What does it show?" in added.summary
    assert isinstance(site.write(answer), Changed)
    assert 'alt="our new kiln"' in site.files()["about.html"]


_TOLD = """
Also make it great for Christmas. | Also make it nicer. | Also make it look good. | Also make it perfect.
Make it beautiful please. | Thank you, and make it pretty. | Make everything lovely. | Make the site look amazing.
Make the website fantastic for Easter. | And make it warm. | Keep it simple. | Keep the site busy. | Keep it fast.
Help the site look great. | Get it looking good. | Have it look nice. | Have the site look great by Friday.
Give it a new look. | Also turn it super cool. | Work on the look again, thanks. | I would love it warm.
Also made it great. | Mke it great. | Also kep it good. | Treat the site to a new look. | Now make it sound happy.
Make it work on iPhone. | Make us proud. | Let it look good. | See that it looks good. | Call it great.
Welcome our new customers. | Welcome everyone to the site. | Also thank our customers for the support.
Also wish everyone a happy Easter. | Happy Christmas to all our customers. | Also say hello to everyone.
Mach es schön. | Mach es perfekt. | Mach die Seite schön. | Mach alles toll. | Bitte mach es auch gut.
Machen Sie es schöner. | Machen Sie die Website wirklich schön. | Gestalte es schön. | Es soll schön aussehen.
Rends-le beau. | Rendez le site joli. | Rends la page magnifique. | Fais une belle page. | Faites un beau site.
Hazlo bonito. | Haz la página bonita. | Hágalo perfecto. | Ponlo bonito. | Deja todo muy bonito.
Fallo bello. | Rendilo bello. | Fai il sito bellissimo. | Rendi tutto perfetto.
Maak het mooi. | Maak de site mooier. | Maak het goed. | Maak alles leuk. | Laat het er goed uit zien.
"""


@pytest.mark.parametrize("told", [one.strip() for line in _TOLD.strip().splitlines() for one in line.split("|")])
def test_a_sentence_that_tells_what_to_do_is_no_small_talk(site: SiteFolder, told: str) -> None:
    result = site.write(f"Change “two cats” to “three cats”. {told}")
    assert isinstance(result, Asked | NotUnderstood)
    assert site.files() == SITE


def test_words_that_lead_to_no_wish_are_read_once() -> None:
    """In a time that grows with the square of their number, these would take a quarter of an hour."""
    assert not is_small_talk("and " * 100_000)
    assert is_small_talk("'" * 200_000)


def test_no_verb_of_the_grammar_is_a_misspelled_word_of_small_talk() -> None:
    does = ("CHANGE", "RAISE", "ADD", "REMOVE", "INSTEAD")
    patterns = [words.pattern for one in LANGUAGES for role, words in one.roles if role in does]
    verbs = {word for pattern in patterns for word in re.findall(r"[a-zäöüß]{4,}", pattern)}
    assert [verb for verb in sorted(verbs) if is_small_talk(f"also nice {verb}")] == []


@pytest.mark.parametrize("name", ["Scott", "Scott Miller", "Best, Scott"])
@pytest.mark.parametrize("answer", ["Everywhere, please.", "Everywhere", "2", "1 and 2", "All four."])
def test_an_answer_may_be_signed(site: SiteFolder, answer: str, name: str) -> None:
    site.write("Change “Fired in Kent” to “Fired in Wales”.")
    assert isinstance(site.write(f"{answer}\n\n{name}"), Changed)
    assert "Fired in Wales" in site.files()["about.html"]


@pytest.mark.parametrize(
    "answer",
    [
        "Ja bitte", "Ja, bitte!", "Ja, gerne!", "Ja, machen Sie das bitte.", "Gerne, danke!\n\nAnna", "Yes please do",
        "Yes, please do.", "ok, go ahead", "Sure, thanks!", "Yes, do the rest.", "Oui, s'il vous plaît.",
        "Oui, volontiers",
        "Sí, por favor.", "Claro que sí, gracias", "Sì, grazie", "Sì, per favore!", "Ja graag", "Ja, doe maar.",
    ],
)  # fmt: skip
def test_a_yes_may_be_polite(site: SiteFolder, answer: str) -> None:
    site.write("Change “two cats” to “three cats”. The kettle broke.")
    assert isinstance(site.write(answer), Changed)


@pytest.mark.parametrize(
    "answer",
    [
        "No, leave it.", "No thanks", "No, thank you!\n\nScott", "Never mind.", "Nein, danke.",
        "Nein, lassen Sie es so.",
        "Lieber nicht", "Non merci", "Non, laissez comme c'est.", "No, gracias", "No, déjalo así.", "No, grazie",
        "No, lascia stare.", "Nee, bedankt", "Nee, laat maar.",
    ],
)  # fmt: skip
def test_a_no_ends_the_question(site: SiteFolder, answer: str) -> None:
    site.write("Change “two cats” to “three cats”. The kettle broke.")
    assert site.write(answer) == Answered("All right.", session="{}")
    assert not isinstance(site.write("yes"), Changed)
    assert site.files() == SITE


def test_a_question_stays_open_after_an_answer_that_was_not_understood(site: SiteFolder) -> None:
    asked = site.write("Change “two cats” to “three cats”. The kettle broke.")
    again = site.write("Perhaps a blue one")
    assert isinstance(asked, Asked)
    assert isinstance(again, Asked)
    assert again.question.endswith(asked.question)
    assert isinstance(site.write("Danke!"), Answered)
    assert isinstance(site.write("Ja"), Changed)


def test_a_question_is_not_repeated_for_ever(site: SiteFolder) -> None:
    site.write("Change “two cats” to “three cats”. The kettle broke.")
    results = [site.write("Perhaps a blue one") for _ in range(3)]
    assert [type(one) for one in results] == [Asked, Asked, NotUnderstood]


@pytest.mark.parametrize(
    ("answer", "pages"),
    [
        ("The one on the home page.", ["index.html"]),
        ("The one on the pots page, please.\n\nScott", ["pots.html"]),
        ("Das auf der Startseite.", ["index.html"]),
        ("Number two please.", ["about.html"]),
        ("Nummer zwei bitte", ["about.html"]),
        ("the last one", ["pots.html"]),
        ("The first and the second.", ["about.html", "index.html"]),
        ("die erste und die dritte", ["contact.html", "index.html"]),
        ("2, 3 and 4", ["about.html", "contact.html", "pots.html"]),
        ("All four.", ["about.html", "contact.html", "index.html", "pots.html"]),
        ("In all places, please.", ["about.html", "contact.html", "index.html", "pots.html"]),
        ("an allen Stellen", ["about.html", "contact.html", "index.html", "pots.html"]),
        ("All six.", []),
        ("9", []),
    ],
)
def test_places_may_be_chosen_in_other_words(site: SiteFolder, answer: str, pages: list[str]) -> None:
    site.write("Change “Fired in Kent” to “Fired in Wales”.")
    assert isinstance(site.write(answer), Changed) == bool(pages)
    assert sorted(name for name, text in site.files().items() if "Fired in Wales" in text) == pages


def test_two_places_of_one_page_are_both_changed(site: SiteFolder) -> None:
    site.write("Change “mug” to “cup”.")
    assert isinstance(site.write("the first and the second"), Changed)
    assert "Tall cup, 24" in site.files()["pots.html"]
    assert "Small cup, 18" in site.files()["pots.html"]


def test_a_photo_whose_place_was_not_found_goes_to_the_end_that_the_answer_names(site: SiteFolder) -> None:
    assert isinstance(site.write("Add this photo to the about page, below the heading “Nowhere”.", "photo.jpg"), Asked)
    assert isinstance(site.write("At the end of the page.", "photo.jpg"), Changed)
    text = site.files()["about.html"]
    assert text.index("It began in 1998") < text.index("photo.jpg")


def test_a_condition_is_not_left_aside_without_a_yes(site: SiteFolder) -> None:
    site.write("Change “two cats” to “three cats”. The kettle broke.")
    assert not isinstance(site.write("Yes, but only on Monday"), Changed)
    assert site.files() == SITE


@pytest.fixture
def site(tmp_path: Path) -> SiteFolder:
    return SiteFolder(tmp_path, SITE)


@pytest.mark.parametrize(
    ("answer", "pages"),
    [
        ("everywhere please", ["index.html", "about.html", "pots.html", "contact.html"]),
        ("on the pots page", ["pots.html"]),
        ("The homepage, please. Thanks!", ["index.html"]),
        ("the second one", ["about.html"]),
        ("2", ["about.html"]),
    ],
)
def test_an_answer_is_joined_with_what_was_asked(site: SiteFolder, answer: str, pages: list[str]) -> None:
    assert isinstance(site.write("Change “Fired in Kent” to “Fired in Wales”."), Asked)
    assert isinstance(site.write(answer), Changed)
    assert sorted(name for name, text in site.files().items() if "Fired in Wales" in text) == sorted(pages)


def test_text_without_quotation_marks_that_may_be_prose_is_written_after_a_yes(site: SiteFolder) -> None:
    assert isinstance(site.write("change the homepage title to our spring sale"), Asked)
    assert site.files() == SITE
    assert isinstance(site.write("Yes please"), Changed)
    assert "<h1>our spring sale</h1>" in site.files()["index.html"]


def test_an_answered_question_is_not_answered_again(site: SiteFolder) -> None:
    site.write("Change “Fired in Kent” to “Fired in Wales”.")
    site.write("on the pots page")
    assert isinstance(site.write("on the about page"), NotUnderstood | Asked)
    assert "Fired in Kent" in site.files()["about.html"]


def test_a_new_wish_in_place_of_an_answer_is_followed(site: SiteFolder) -> None:
    site.write("Change “Fired in Kent” to “Fired in Wales”.")
    assert isinstance(site.write("Change “two cats” to “three cats”."), Changed)
    assert "three cats" in site.files()["about.html"]


def test_the_wish_that_stopped_the_others_is_named(site: SiteFolder) -> None:
    result = site.write("Change “two cats” to “three cats”. Change “Open on Fridays” to “Closed”.")
    assert isinstance(result, Asked)
    assert "Open on Fridays" in result.question
    assert "Nothing was changed yet" in result.question


@pytest.mark.parametrize(
    ("mail", "kind", "then"),
    [
        ("Change the homepage title to “Spring Sale” and publish it.", Changed, "publish"),
        ("Please change “two cats” to “three cats”. Then publish. Thanks!", Changed, "publish"),
        ("Change “two cats” to “two cats” and publish", Answered, "publish"),
    ],
)
def test_a_wish_and_a_publish_in_one_mail_are_both_understood(
    site: SiteFolder, mail: str, kind: type[Changed] | type[Answered], then: str
) -> None:
    result = site.write(mail)
    assert isinstance(result, Changed | Answered)
    assert (type(result), result.then) == (kind, then)


PAGES = {name: f"{name or 'index'}.html" for name in ("", "index", "about", "contact", "pots")}


@pytest.mark.parametrize(
    ("mail", "photos"),
    [
        ("Please replace the photo.", 1),
        ("Here is a photo.", 1),
        ("Add “Salad bowl” to the about page", 0),
        ("Add this photo to the about page, below the heading “Nowhere”", 1),
        ("Please add this photo to the about page.", 2),
        ("add “Jar” to the list on the about page", 0),
        ("replace the photo of the kiln", 2),
    ],
)
def test_a_question_of_the_agent_is_asked_in_each_language(site: SiteFolder, mail: str, photos: int) -> None:
    asked = site.write(mail, *["photo.jpg"] * photos)
    assert isinstance(asked, Asked)
    told = {one.language: one.say(asked.question) for one in own_catalogues()}
    assert [language for language, question in told.items() if question == asked.question] == []


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "it", "nl"])
def test_each_example_of_a_reply_is_understood_as_it_stands_there(language: str, example: str) -> None:
    told = next((one.say(example) for one in own_catalogues() if one.language == language), example)
    assert (told == example) == (language == "en")
    wish = told.rpartition(" (")[0] if told.endswith(")") else told
    assert not isinstance(Grammar(PAGES).read(wish, Quotations()), Misunderstood), wish


@pytest.mark.parametrize(
    ("mail", "answer"),
    [
        ("Bitte ändern Sie „Fired in Kent“ in „Fired in Wales“.", "überall bitte"),
        ("Remplacez « Fired in Kent » par « Fired in Wales ».", "partout, merci"),
        ("Bitte ändern Sie „Fired in Kent“ in „Fired in Wales“.", "die zweite"),
        ("Cambia «Fired in Kent» por «Fired in Wales».", "en la página about"),
    ],
)
def test_an_answer_in_another_language_is_joined_too(site: SiteFolder, mail: str, answer: str) -> None:
    assert isinstance(site.write(mail), Asked)
    assert isinstance(site.write(answer), Changed)
    assert "Fired in Wales" in site.files()["about.html"]


@pytest.mark.parametrize(
    "mail",
    [
        "Bitte ändere „two cats“ in „three cats“ und veröffentliche es. LG Scott",
        "Remplacez « two cats » par « three cats » et publiez, s'il vous plaît.",
    ],
)
def test_a_wish_and_a_publish_are_understood_in_other_languages(site: SiteFolder, mail: str) -> None:
    result = site.write(mail)
    assert isinstance(result, Changed)
    assert result.then == "publish"


@pytest.mark.parametrize(
    "mail",
    [
        "“two cats” → “three cats”",
        "On the about page it says “two cats”, but it should now say “three cats”.",
        "“two cats” is wrong, it's “three cats”.",
        "Instead of “two cats” please write “three cats”.",
        "Could “two cats” please become “three cats”?",
        "Please correct the following: “two cats” becomes “three cats”.",
        "Our numbers have changed: please change “two cats” to “three cats”. Could you fix it please?",
        "Make “two cats” say “three cats”.",
        "Auf der about-Seite muss es statt „two cats“ jetzt „three cats“ heißen.",
        "« two cats » devient « three cats ».",
        "Nos horaires changent : remplacez « two cats » par « three cats ».",
        "Please change “two cats” to “three cats”. Thank you for fixing it.",
        "Change “two cats” to “three cats”.\n\nKind regards\nScott\n\nThis e-mail and its files are confidential.",
    ],
)
def test_the_parts_of_an_exact_wish_may_stand_in_any_order(site: SiteFolder, mail: str) -> None:
    assert isinstance(site.write(mail), Changed)
    assert "three cats" in site.files()["about.html"]


@pytest.mark.parametrize(
    "mail",
    [
        "“two cats” could be “three cats”.",
        "“two cats” should never be “three cats”.",
        "Change “two cats” to “three cats” and so on.",
        "Change “two cats” to “three cats” in the text message.",
        "Raise “two cats” by “three cats”.",
        "Put the heading “Sale” on the about page.",
        "Change the title of the list on the about page to “Sale”.",
        "Could the title of the about page be “Sale”?",
        "Our numbers have not changed: please change “two cats” to “three cats”.",
        "Our numbers are changing in May. Please change “two cats” to “three cats”.",
        "Change “two cats” to “three cats”. Please change that too.",
        "Please correct it. Change “two cats” to “three cats”.",
        "Our numbers are changing on Monday: change “two cats” to “three cats”.",
        "We open later on Friday so change “two cats” to “three cats”.",
        "Remove “cats”.",
        "Bitte nehmen Sie „two cats“ zur Kenntnis.",
        "Bitte „two cats“ Nicht in „three cats“ ändern.",
    ],
)
def test_a_word_more_than_the_parts_of_a_wish_is_asked_about(site: SiteFolder, mail: str) -> None:
    assert isinstance(site.write(mail), Asked | NotUnderstood)
    assert site.files() == SITE


@pytest.mark.parametrize(
    "notice",
    [
        "This message is confidential until Friday, please wait with the change until then.",
        "This email is confidential. Please do not do this before Anna has confirmed it.",
        "Diese Nachricht ist noch vertraulich, bitte noch nichts ändern.",
        "Ce message est confidentiel, ne changez rien avant lundi.",
        "Este mensaje es confidencial, no cambie nada todavía.",
        "Questo messaggio è riservato, non cambiare nulla prima di lunedì.",
        "Dit bericht is vertrouwelijk, wacht nog even tot maandag.",
    ],
)
def test_what_stands_beside_the_words_of_a_legal_notice_is_read(site: SiteFolder, notice: str) -> None:
    assert isinstance(site.write(f"Change “two cats” to “three cats”.\n\n{notice}"), Asked | NotUnderstood)
    assert site.files() == SITE


@pytest.mark.parametrize(
    "mail",
    [
        "It says “three cats” instead of “two cats”.",
        "On the about page it reads “three cats” rather than “two cats”.",
        "It costs 28 euros instead of 24 euros.",
        "Es steht „three cats“ statt „two cats“.",
        "Er staat nu “three cats” in plaats van “two cats”.",
    ],
)
def test_a_complaint_about_what_a_page_says_is_not_read_backwards(site: SiteFolder, mail: str) -> None:
    assert isinstance(site.write(mail), Asked | NotUnderstood)
    assert site.files() == SITE


def test_a_legal_notice_of_several_sentences_asks_for_nothing(site: SiteFolder) -> None:
    notice = "This e-mail and any attachments are confidential. If you are not the intended recipient, delete it."
    assert isinstance(site.write(f"Change “two cats” to “three cats”.\n\n{notice}"), Changed)


@pytest.mark.parametrize(
    ("mail", "file", "made"),
    [
        ("Change the phone number from 01234 567890 to 01234 567891.", "contact.html", "01234 567891"),
        ("Bitte die Nummer 01234 567890 durch 01234 567891 ersetzen.", "contact.html", "01234 567891"),
        ("Change the Tall mug from 24 euros to 26 euros.", "pots.html", "Tall mug, 26 euros"),
        ("Please add “Egg cup, 9 euros” to the list under Mugs on the pots.", "pots.html", "Egg cup, 9 euros"),
        ("Bitte nehmen Sie „Egg cup“ in die Liste unter Mugs auf der Pots-Seite auf.", "pots.html", "<li>Egg cup</li>"),
        ("Please make the headings dark green.", "style.css", "darkgreen"),
        ("Please add “Egg cup” under Mugs on the pots page.", "pots.html", "<li>Egg cup</li>"),
    ],
)  # fmt: skip
def test_numbers_and_words_of_the_site_need_no_quotation_marks(
    site: SiteFolder, mail: str, file: str, made: str
) -> None:
    assert isinstance(site.write(mail), Changed)
    assert made in site.files()[file]


def test_a_name_and_a_company_at_the_end_of_a_mail_sign_it(site: SiteFolder) -> None:
    mail = "Please change “two cats” to “three cats”.\n\nRachel Munro\nHarbour Pottery"
    assert isinstance(site.write(mail), Changed)
    asked = site.write("Please change “three cats” to\n\nRachel Munro\nHarbour Pottery")
    assert isinstance(asked, Asked | NotUnderstood)


@pytest.mark.parametrize(
    "mail",
    [
        "Change “two cats” to “three cats” until Sunday.",
        "On 1 December change “two cats” to “three cats”.",
        "Bitte „two cats“ ab Montag in „three cats“ ändern.",
        "Remplacez « two cats » par « three cats » à partir du 3 mai.",
        "À partir du 1er janvier, changez « two cats » en « three cats ».",
        "Ab 1. Dezember ändern Sie bitte „two cats“ in „three cats“.",
    ],
)
def test_who_names_a_date_is_told_that_none_is_kept(site: SiteFolder, mail: str) -> None:
    told = site.write(mail)
    assert isinstance(told, NotUnderstood)
    assert "keep no dates" in told.text
    assert site.files() == SITE


@pytest.mark.parametrize(
    "mail",
    [
        "Le numéro de téléphone est maintenant le 04 78 11 11 11.",
        "Ouvert aussi le dimanche : remplacez « two cats ».",
        "Change the hours from Wednesday to Saturday, 10 to 5 to Thursday to Saturday, 11 to 6.",
        "What about “open from 1 May, late on Fridays”?",
        "Our phone is new, every Sunday too: change “two cats” to “three cats”.",
    ],
)
def test_numbers_and_opening_hours_are_no_dates(site: SiteFolder, mail: str) -> None:
    told = site.write(mail)
    assert isinstance(told, NotUnderstood)
    assert "keep no dates" not in told.text


@pytest.mark.parametrize(
    ("mail", "file", "made"),
    [
        ("Ändern Sie die Farbe des Hintergrunds in hellblau.", "style.css", "lightblue"),
        ("Die Rice bowl kostet jetzt „25 euros“ statt „22 euros“.", "pots.html", "Rice bowl, 25 euros"),
        ("La Rice bowl passe à 25 euros.", "pots.html", "Rice bowl, 25 euros"),
        ("Our phone is now 01234 5: change “two cats” to “three cats”.", "about.html", ""),
        ("Our phone is now 01234 567891: change “01234 567890” to “01234 567891”.", "contact.html", "01234 567891"),
        ("Our phone is not now 01234 567891: change “01234 567890” to “01234 567891”.", "contact.html", ""),
        ("Our phone is now 01234 567899: change “01234 567890” to “01234 567891”.", "contact.html", ""),
        ("Vielleicht kostet die Rice bowl „25 euros“ statt „22 euros“.", "pots.html", ""),
        ("La Rice bowl passe à 25 euros en mai.", "pots.html", ""),
        ("Es kostet „25 euros“ statt „22 euros“.", "pots.html", ""),
    ],
)
def test_a_value_is_told_in_quotation_marks_and_once_more_beside_its_wish(
    site: SiteFolder, mail: str, file: str, made: str
) -> None:
    site.write(mail)
    assert made in site.changes()[file] if made else not site.changes()


@pytest.mark.parametrize(
    ("mail", "photos", "described"),
    [
        ("Add these two photos to the pots page.", 2, ""),
        ("Fügen Sie diese zwei Fotos auf der Seite Pots ein.", 2, ""),
        ("Ajoutez ces photos à la page pots.", 2, ""),
        ("Voici une photo de la salle, à mettre sur la page pots.", 1, "la salle"),
        ("Fügen Sie dieses Foto auf der Seite Pots ein. Es zeigt das Haus in Berlin.", 1, "das Haus in Berlin"),
        ("Add these three photos to the pots page.", 2, None),
        ("Fügen Sie dieses Foto auf der Seite Pots ein. Es zeigt, dass wir offen haben.", 1, None),
    ],
)
def test_photos_are_counted_and_described_in_each_language(
    site: SiteFolder, mail: str, photos: int, described: str | None
) -> None:
    site.write(mail, *["photo.jpg"] * photos)
    alts = re.findall(r'photo\.jpg" alt="([^"]*)"', site.files()["pots.html"])
    assert alts == ([] if described is None else [described] * photos)


@pytest.mark.parametrize("mail", ["Supprimez-le.", "Please remove it.", "Löschen Sie es bitte."])
def test_who_says_remove_it_is_asked_what(site: SiteFolder, mail: str) -> None:
    asked = site.write(mail)
    assert isinstance(asked, Asked)
    assert asked.question.startswith("What shall I remove?")


def test_places_of_one_page_are_told_apart_and_chosen_by_their_number(site: SiteFolder) -> None:
    asked = site.write("Change “bowl” to “dish” on the pots page.")
    assert isinstance(asked, Asked)
    first, second = (line.partition(": ")[2] for line in asked.question.splitlines()[1:3])
    assert first != second
    assert "its page" not in asked.question
    german = next(one for one in own_catalogues() if one.language == "de")
    lists = site.write("Add “Jar” to the list on the pots page.")
    assert isinstance(lists, Asked)
    assert "beginnt mit „Tall mug" in german.say(lists.question)


def test_a_page_is_found_by_its_longest_name_and_by_a_new_one_from_the_next_mail_on(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path, {**SITE, "pots-for-kids.html": SITE["about.html"].replace("About us", "Pots for kids")})
    site.becomes("On the pots for kids page change “two cats” to “three cats”.", "pots-for-kids.html", "two", "three")
    assert isinstance(site.write("Change the title of the about page to “Our Barn”."), Changed)
    assert isinstance(site.write("On the page called Our Barn change “two cats” to “three cats”."), Changed)
    assert "three cats" in site.files()["about.html"]
    assert isinstance(site.write("On the About us page change “three cats” to “two cats”."), Asked | NotUnderstood)


def test_a_german_page_is_found_by_its_compound_and_an_unknown_one_named(site: SiteFolder) -> None:
    assert isinstance(site.write("Auf der Potseite bitte „Mugs“ durch „Cups“ ersetzen."), Changed)
    asked = site.write("Auf der Preisseite bitte „Cups“ durch „Mugs“ ersetzen.")
    assert isinstance(asked, Asked)
    assert "did not find a page called “Preis”" in asked.question


@pytest.mark.parametrize(
    ("mail", "made"),
    [
        ("Please change the price of the soup bowl to 30 euros.", "Soup bowl, 30 euros"),
        ("The rice bowl is 25 euros now, it was 22 euros.", "Rice bowl, 25 euros"),
        ("Die Rice bowl kostet jetzt 25 € statt 22 euros. Bitte auf der Pots-Seite ändern.", "Rice bowl, 25 €"),
        ("Small mugs cost 19 euros now, not 18 euros. Would you change it please?", "Small mug, 19 euros"),
        ("Please take Rice bowl off the list on the pots page.", "Soup bowl, 28 euros</li>\n    </ul>"),
        ("Our market was a big success! Please change “Soup bowl” to “Soup dish”.", "Soup dish, 28 euros"),
        ("Please change “Soup bowl” to “Soup dish”, the season is over.", "Soup dish, 28 euros"),
        ("Please change “Soup bowl” to “Soup dish” and let me know when it is done.", "Soup dish, 28 euros"),
        ("Remove “Rice bowl, 22 euros” from the list and add “Deep bowl, 30 euros” to the Bowls list.", "Deep bowl"),
    ],
)
def test_facts_prices_and_news_are_read_with_the_words_of_the_page(site: SiteFolder, mail: str, made: str) -> None:
    site.write(mail)
    assert made in site.files()["pots.html"]


@pytest.mark.parametrize(
    "mail",
    [
        "The mug is 25 euros now, it was 24 euros, I think.",
        "The teapot costs 30 euros now instead of 28 euros.",
        "From Monday the soup bowl costs 30 euros instead of 28 euros.",
        "The soup bowl should not cost 30 euros instead of 28 euros.",
        "You wrote that the soup bowl is 30 euros now, it was 28 euros.",
        "The soup bowl is about 30 euros now.",
        "The soup bowl is 28 euros instead of 30 euros.",
        "Please take the bowl off the list on the pots page.",
        "Please take the soup off the list on the pots page.",
        "Please change “Soup bowl” to “Soup dish”. The market has the final say.",
        "Please change “Soup bowl” to “Soup dish”, because the market only allows it until May.",
    ],
)
def test_a_fact_that_the_page_does_not_bear_out_or_that_binds_is_asked_about(site: SiteFolder, mail: str) -> None:
    assert isinstance(site.write(mail), Asked | NotUnderstood)
    assert site.files() == SITE


def test_a_number_is_changed_together_with_the_link_that_calls_it(tmp_path: Path) -> None:
    page = '<p>Ring <a href="tel:+441453555029">01453 555 029</a></p><ul><li>One</li></ul>'
    site = SiteFolder(tmp_path, {"index.html": page})
    assert isinstance(site.write("My number has changed from 01453 555 029 to 01453 555 092."), Changed)
    assert 'href="tel:+441453555092">01453 555 092<' in site.files()["index.html"]
