"""Which mails are commands, and what they name."""

from __future__ import annotations

import pytest

from webordinary.mail.parsing.commands import ALL, BOTH, command_of, named_change, publishes_or_undoes
from webordinary.mail.parsing.small_talk import Clause, without_own_name
from webordinary.model.mail import Command


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("undo", ""),
        (" Undo! ", ""),
        ("undo one.html", "one.html"),
        ("Undo /about/.", "/about/"),
        ("undo https://edit.amelia.example.com/one.html", "https://edit.amelia.example.com/one.html"),
        ("undo 3f2a9b1c", "3f2a9b1c"),
        ("undo “Add a page about glazes”", "Add a page about glazes"),
        ('undo "Add a page".', "Add a page"),
        ("Please undo.", ""),
        ("undo one.html, please!", "one.html"),
    ],
)
def test_an_undo_may_name_a_change(text: str, named: str) -> None:
    assert command_of(text, "My site") is Command.UNDO
    assert command_of("", f"Re: {text}") is Command.UNDO
    assert named_change(text, "My site") == named


@pytest.mark.parametrize("command", sorted(set(Command) - {Command.EDIT, Command.REMEMBER, Command.FORGET}))
@pytest.mark.parametrize("text", ["{}", "{} please", "Please {}.", "Hi,\n\nplease {}\n\nThanks, Scott"])
def test_each_command_is_known_by_its_name_with_polite_words_around_it(text: str, command: Command) -> None:
    assert command_of(text.format(command), "My site", "Scott") is command


@pytest.mark.parametrize(
    "text",
    [
        "undo yesterday's edits of one.html",
        "undo one.html\nand add a photo",
        "undo v1.2",
        "publish one.html",
    ],
)
def test_a_sentence_is_no_command(text: str) -> None:
    assert command_of(text, "My site") is Command.EDIT
    assert named_change(text, "My site") == ""


@pytest.mark.parametrize(
    "subject",
    [
        "publish",
        "Odp: publish",
        "Re[2]: publish",
        "RE: AW: publish",
        "Ré: publish",
        " Fwd : Re [3] : Publish! ",
        "Rép: publish",
    ],
)
def test_an_empty_mail_is_the_command_in_its_subject_whatever_a_mail_program_put_before_it(subject: str) -> None:
    assert command_of(" \n", subject) is Command.PUBLISH


UNDONE_WITH_A_NO = """\
Nein danke, bitte doch wieder rückgängig machen.
Doch lieber nicht, bitte rückgängig machen!
Hm, doch nicht, mach das bitte rückgängig
Nein. Bitte rückgängig machen.
Nein, das gefällt mir nicht. Mach es rückgängig.
Nein das gefällt mir doch nicht, bitte rückgängig machen
Non, finalement annulez-la s'il vous plaît. Merci, Margot
Finalement non, annulez.
Finalement non. Annulez s'il vous plaît.
Non merci, annulez.
Annulation svp
En fait non, annule ça
Non, ça ne me plaît pas. Annulez svp
Hmm, no, I do not like it. Undo it please
No. Undo it.
No thanks, undo it please
On second thought, no. Undo it.
Better not. Undo please.
No me gusta, deshazlo
Mejor no, deshazlo
Al final no, deshazlo por favor
No, meglio di no, annulla
Alla fine no, annulla per favore
No grazie, annullalo
Nee dank je, maak het ongedaan
Toch maar niet, maak het ongedaan aub
Nee, toch liever niet. Draai het terug.
That was a mistake, please undo it
Das war ein Versehen, bitte rückgängig machen
Das sieht nicht gut aus. Bitte wieder rückgängig machen.
Je n'aime pas du tout, annulez svp
C'était une erreur. Annulez la modification.
No me gusta nada, deshazlo
Fue un error, deshaz el cambio
Non mi piace così, annulla
Ik vind het niet mooi, maak het ongedaan"""
NOT_UNDONE = """\
Nein, bitte nicht rückgängig machen
Doch nicht rückgängig machen
Doch lieber nicht rückgängig machen
Doch lieber nicht.
Nein danke
No, I do not like it
Finalement non, n'annulez pas
Finalement n'annulez pas
Finalement non
No, no lo deshagas
Mejor no deshazlo
Meglio non annullare
Non annulez
Nee, niet ongedaan maken
Toch maar niet terugdraaien
Liever niet terugdraaien
Doch nicht, veröffentlichen
Nein, bitte veröffentlichen
No thanks, publish
No. Publish it.
Finalement non, publiez
Rather not undo
Better not, do not undo it
No, undo nothing
Rückgängig machen? Nein, doch nicht.
Rückgängig machen, doch lieber nicht
Undo it. No, don't.
Undo it. No.
Undo it please. Better not.
Undo, no thanks
Annulez, finalement non
Annulez. Finalement non.
Can you undo it? Rather not.
Nein, mach das Foto rückgängig
Non, annulez la photo
Das war kein Versehen, bitte nicht rückgängig machen
Je n'aime pas, publiez
Es war ein Fehler, das rückgängig zu machen
It was a mistake to undo it"""


@pytest.mark.parametrize("text", [*UNDONE_WITH_A_NO.splitlines(), "Non, annulez-la s\u2019il vous plaît"])
def test_an_undo_is_understood_with_a_no_or_a_dislike_before_it(text: str) -> None:
    assert command_of(text, "Re: My site", "Margot Dupont") is Command.UNDO


@pytest.mark.parametrize("text", NOT_UNDONE.splitlines())
def test_a_no_to_the_undo_itself_undoes_nothing(text: str) -> None:
    assert command_of(text, "Re: My site", "Margot Dupont") is Command.EDIT


@pytest.mark.parametrize(
    "text",
    ["Bitte alles rückgängig machen", "undo everything.", "Annulez tout svp", "Deshaz todo", "annulla tutto",
     "Alles ongedaan maken", "Undo all changes"],
)  # fmt: skip
def test_an_undo_of_everything_names_all_and_is_no_part_of_another_wish(text: str) -> None:
    assert command_of(text, "Re: My site") is Command.UNDO
    assert named_change(text, "Re: My site") == ALL
    assert publishes_or_undoes(Clause(text.strip("."))) is None


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Und dann bitte gleich online stellen", Command.PUBLISH),
        ("dann sofort veröffentlichen", Command.PUBLISH),
        ("et publiez immédiatement", Command.PUBLISH),
        ("nicht gleich online stellen", None),
        ("gleich das Foto online stellen", None),
    ],
)
def test_a_publish_beside_a_wish_may_be_for_at_once(text: str, command: Command | None) -> None:
    assert publishes_or_undoes(Clause(text)) is command


def test_a_long_mail_of_blanks_is_read_in_passing() -> None:
    """No clock is asked: a pattern that goes back over the blanks takes hours."""
    assert command_of("undo" + "\r" * 1_000_000 + "^", "") is Command.EDIT


def test_the_subject_of_an_undo_names_its_change_after_any_prefix() -> None:
    assert named_change("", "Re[2]: undo about.html") == "about.html"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (Command.PUBLISH, "Publish\n\nKind regards\nScott"),
        (Command.PUBLISH, "Perfect, thanks! Please publish."),
        (Command.PUBLISH, "Looks great, please publish it."),
        (Command.UNDO, "undo that"),
        (Command.UNDO, "Hmm, sorry, undo that. Thanks"),
        (Command.PUBLISH, "veröffentlichen"),
        (Command.UNDO, "rückgängig"),
        (Command.UNDO, "annule"),
        (Command.PUBLISH, "Hi there,\n\nLooks great, please publish it.\n\nThanks,\nScott"),
        (
            Command.PUBLISH,
            "Hello,\nthat looks lovely, publish it please!\nBest wishes\nMary Miller\nAmelia Pottery\n+44 1234 567890",
        ),
        (Command.PUBLISH, "publish\nSent from my iPhone"),
        (Command.PUBLISH, "Hi Anna, thank you so much! Publish now please. Cheers, Tom"),
        (Command.PUBLISH, "Could you publish it please?"),
        (Command.PUBLISH, "Great! Go live."),
        (Command.PUBLISH, "ok publish"),
        (Command.PUBLISH, "Yes, please publish"),
        (Command.UNDO, "undo the last change"),
        (Command.UNDO, "Please undo my last change. Sorry!"),
        (Command.PUBLISH, "Hallo,\n\nsieht super aus, bitte veröffentlichen.\n\nViele Grüße\nAnna Schmidt"),
        (Command.PUBLISH, "Bitte veröffentlichen Sie es. Danke!"),
        (Command.PUBLISH, "Könnten Sie das bitte veröffentlichen? Vielen Dank!"),
        (Command.PUBLISH, "Bonjour,\n\nC'est parfait, merci ! Publiez svp.\n\nCordialement\nPierre"),
        (Command.UNDO, "Annule ça s'il te plaît"),
        (Command.PUBLISH, "Hola,\n\nMuchas gracias, perfecto. Publícalo por favor.\n\nSaludos\nMaría"),
        (Command.UNDO, "Deshaz eso"),
        (Command.PUBLISH, "Buongiorno, tutto perfetto, pubblica per favore. Grazie, Luca"),
        (Command.UNDO, "annulla"),
        (Command.PUBLISH, "Hoi, ziet er goed uit! Publiceer het maar. Groetjes, Jan"),
        (Command.UNDO, "Maak het ongedaan aub"),
        (Command.UNDO, "Mach das bitte rückgängig"),
        (Command.PUBLISH, "Thanks, that was quick! Publish it please 🙂"),
        (Command.PUBLISH, "Thanks Anna, please publish these changes"),
        (Command.PUBLISH, "Passt, kann live gehen. Danke!"),
        (Command.PUBLISH, "Va benissimo, si può pubblicare. Cordiali saluti"),
        (Command.UNDO, "Hmm, I don't like it. Please undo it."),
        (Command.UNDO, "Das gefällt mir leider nicht, bitte rückgängig machen."),
        (Command.STATUS, "Wie ist der Stand?"),
        (Command.STOP, "Please stop working on it"),
        (Command.PUBLISH, "publish all"),
        (Command.PUBLISH, "Yes please, publish both."),
        (Command.PUBLISH, "publish everything please"),
        (Command.PUBLISH, "Publish both please, thank you! Scott"),
        (Command.PUBLISH, "Publish both please, thanks. Miller"),
        (Command.PUBLISH, "Publish it. Scott"),
        (Command.PUBLISH, "looks great please publish it"),
        (Command.PUBLISH, "thnaks! publish"),
        (Command.STOP, "stop"),
        (Command.STATUS, "status please"),
        (Command.STATUS, "What is the status?"),
        (Command.STOP, "STOP!"),
        (Command.PUBLISH, "Thank you, this looks perfect 🙂 Publish!"),
        (Command.PUBLISH, "Good morning,\n\nplease publish.\n\nScott"),
        (Command.PUBLISH, "Thanks, that's exactly what I wanted. Publish please."),
        (Command.PUBLISH, "Yes, that's right. Publish this one."),
        (Command.PUBLISH, "LGTM, publish"),
        (Command.PUBLISH, "I love it. Please make it live!"),
        (Command.PUBLISH, "Please make this live now, thanks"),
        (Command.PUBLISH, "Super, danke! Du kannst es jetzt online stellen."),
        (Command.PUBLISH, "Einverstanden. Bitte veröffentlichen."),
        (Command.PUBLISH, "Très bien, merci de publier."),
        (Command.PUBLISH, "Tu peux mettre en ligne, merci !"),
        (Command.PUBLISH, "Super ! Mettez-le en ligne, s'il vous plaît."),
        (Command.PUBLISH, "Me encanta, puedes publicarlo. Gracias"),
        (Command.PUBLISH, "Ponlo en línea por favor"),
        (Command.PUBLISH, "Ciao, perfetto, pubblica pure. Grazie, Scott"),
        (Command.PUBLISH, "Va bene così. Mettilo online, grazie"),
        (Command.PUBLISH, "Graag publiceren"),
        (Command.PUBLISH, "U kunt het publiceren, bedankt."),
        (Command.UNDO, "Oh no, please undo the last change. Sorry!"),
        (Command.UNDO, "Hmm, no, undo please. Thanks"),
        (Command.UNDO, "Sorry, I changed my mind - please undo it.\n\nBest regards,\nScott"),
        (Command.UNDO, "I've changed my mind about it. Undo please"),
        (Command.UNDO, "Actually, undo that please"),
        (Command.UNDO, "Nein, bitte rückgängig machen. Danke"),
        (Command.UNDO, "Ich habe es mir anders überlegt, bitte rückgängig machen"),
        (Command.UNDO, "J'ai changé d'avis, annulez svp"),
        (Command.PUBLISH, "Okay, then just publish please"),
        (Command.PUBLISH, "Well, publish it please"),
        (Command.UNDO, "¿Puedes deshacerlo?"),
        (Command.STATUS, "Quel est le statut ?"),
        (Command.STATUS, "¿Cuál es el estado?"),
        (Command.STATUS, "Qual è lo stato?"),
        (Command.STATUS, "Wat is de status?"),
    ],
)
def test_a_command_is_understood_with_greeting_praise_thanks_closing_and_name(command: Command, text: str) -> None:
    assert command_of(text, "Re: My site", "Scott Miller") is command


@pytest.mark.parametrize(
    "text",
    [
        "don't publish yet",
        "publish the photo on the about page",
        "Please don't publish",
        "publish tomorrow",
        "publish it on Monday",
        "Bitte morgen veröffentlichen",
        "publish but not the photo",
        "Looks good but don't publish",
        "undo and publish",
        "Can we publish?",
        "publish?",
        "Should I publish it?",
        "Publish\n\nThanks\nBut not the photo",
        "Publish\n\nThanks,\nTomorrow",
        "Thanks for publishing",
        "Did you publish it?",
        "I would publish it if the title was bigger",
        "nicht veröffentlichen",
        "noch nicht veröffentlichen",
        "ne publiez pas",
        "no publiques",
        "non pubblicare",
        "niet publiceren",
        "change the title and publish",
        "Publish when the photo is there",
        "publish soon",
        "not great, undo the heading",
        "Thanks",
        "Yes please",
        "stop the music on the homepage",
        "status quo is fine",
        "The publish button is red",
        "Wait, then publish",
        "Perfect once the title is changed, publish",
        "I can publish it",
        "They publish it",
        "publish it and add a photo",
        "Nur die Startseite veröffentlichen",
        "publie la photo",
        "hold on publish",
        "never publish",
        "Is it published",
        "That's right.",
        "Approved",
        "Is that right? Publish",
        "Not approved. Publish",
        "No, publish nothing",
        "Einverstanden, aber noch nicht veröffentlichen",
        "Va bene così, ma non pubblicare",
        "Publiez demain",
        "Zet de foto online",
        "Mets la photo en ligne",
        "C'est publié ?",
        "¿Está publicado?",
        "No deshacer.",
        "I don't like it. Publish.",
        "I changed my mind - publish it",
        "I changed my mind, don't undo it",
        "I changed my mind - please undo it tomorrow",
        "I changed my mind - please undo it and make the title red",
        "I have not changed my mind, undo it",
        "don't undo it yet",
        "Actually, don't undo it",
        "no undo please",
        "No, publish please",
        "Hmm, no, don't undo it",
        "Hmm, no, undo please and change the title",
        "Undo? No, please.",
        "Undo it please, no",
        "If it rains, undo it",
        "Publish, if it looks good",
    ],
)
def test_one_word_that_is_no_small_talk_makes_a_mail_an_edit(text: str) -> None:
    assert command_of(text, "Re: My site", "Scott Miller") is Command.EDIT


@pytest.mark.parametrize(
    "text", ["publish all", "Please publish everything. Thanks!", "alles veröffentlichen", "tout publier"]
)
def test_a_publish_may_name_all_changes(text: str) -> None:
    assert command_of(text, "x") is Command.PUBLISH


@pytest.mark.parametrize("text", ["publish both", "Publish both, please!", "beide veröffentlichen"])
def test_a_publish_of_both_conversations_names_them(text: str) -> None:
    assert named_change(text, "x") == BOTH


def test_only_a_publish_of_everything_names_all() -> None:
    assert [named_change(text, "x") for text in ("publish all", "publish everything, please", "publish it")] == [
        ALL,
        ALL,
        "",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stop\n\nAnna", Command.STOP),
        ("Stopp bitte!\n\nBob", Command.STOP),
        ("status\n\nAnna Smith", Command.STATUS),
        ("Bitte alles veröffentlichen.\n\nAnna", Command.PUBLISH),
        ("Hi,\n\nundo\n\nBob", Command.UNDO),
        ("publish\n\nTomorrow", Command.EDIT),
        ("publish\n\nNot Yet", Command.EDIT),
    ],
)
def test_a_name_below_a_command_signs_it_without_a_closing_too(text: str, expected: Command) -> None:
    assert command_of(text, "") is expected


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Change “A” to “B” please. Scott", "Change “A” to “B” please."),
        ("Hi! Change “A” to “B”. Scott Miller.", "Hi! Change “A” to “B”."),
        ("Change “A” to “B”. Everywhere", "Change “A” to “B”. Everywhere"),
        ("The name should be Scott", "The name should be Scott"),
        ("Supprimez « Fermé. »", "Supprimez « Fermé. »"),
        ("", ""),
    ],
)
def test_the_senders_own_name_at_the_end_is_no_part_of_the_wish(text: str, kept: str) -> None:
    assert without_own_name(text, "Scott Miller") == kept
