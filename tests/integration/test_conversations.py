"""What an answer means after other mails of its conversation: a late “yes”, and files beside earlier ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.site import SiteHarness, open_site_harness
from tests.photos import picture
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.entrypoints.dashboard.text import event_text
from webordinary.jobs.ports import AgentResult, AgentTask, Answered, Asked, Changed, NotUnderstood
from webordinary.mail.confirm import ConfirmationAnswer, answer_in
from webordinary.mail.write import OutgoingFile
from webordinary.model.claims import CancelToken
from webordinary.model.jobs import Job, JobOutcome
from webordinary.model.snapshot import MailState, state_of

KILN = OutgoingFile("kiln.png", "image/png", picture("PNG"))
SHOP = OutgoingFile("shop.png", "image/png", picture("PNG", (32, 48)))
PRICES = OutgoingFile("prices.txt", "text/plain", b"Mugs are 28 pounds")


class Asks:
    """Titles the homepage with a mail's words; asks about a mail with a question mark, and does it after a yes."""

    def __init__(self) -> None:
        self.got: list[str] = []

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        words = task.instruction.strip()
        if "pop" in words:
            return NotUnderstood("I did not understand it.")
        if "?" in words:
            return Asked("Do you mean “undo”?" if "undo" in words else "Shall I do the rest?")
        if answer_in(words) is ConfirmationAnswer.YES:
            self.got = [one.attachment.name for one in task.attachments]
            return Answered("Taking it back.", then="undo")
        self.got = [one.attachment.name for one in task.attachments]
        page = task.workspace / "public" / "index.html"
        page = page if page.exists() else task.workspace / "index.html"
        page.write_text(page.read_text().replace("<title>", f"<title>{words} "))
        return Changed(f"Titled it “{words}”.")


@pytest.fixture
def agent() -> Asks:
    return Asks()


@pytest.fixture
def site(tmp_path: Path, agent: Asks) -> Iterator[SiteHarness]:
    with open_site_harness(tmp_path / "data") as harness:
        harness.deps = replace(harness.deps, agents={"builtin": agent, "auto": agent})
        yield harness


def summary(job: Job) -> str:
    assert job.result
    return job.result.summary


def test_a_yes_after_an_undo_that_was_typed_meanwhile_takes_nothing_else_back(site: SiteHarness) -> None:
    first = site.mail("Alpha", "<1@example.com>")
    site.mail("Beta", answers=site.answer_to(first))
    asked = site.mail("undo, or something?", answers=site.answer_to(first))
    undone = site.mail("undo", answers=site.answer_to(asked))
    assert summary(undone) == "Undone: Titled it “Beta”."
    for answered in (asked, undone):
        late = site.mail("yes", answers=site.answer_to(answered))
        assert "taken back already, so I took nothing else back" in summary(late)
        assert "<title>Alpha " in site.page()
        assert "Beta" not in site.page()


def test_a_yes_to_a_question_about_undo_takes_back_one_change_also_after_an_undo_before_it(site: SiteHarness) -> None:
    first = site.mail("Alpha", "<1@example.com>")
    site.mail("Beta", answers=site.answer_to(first))
    undone = site.mail("undo")
    assert "nothing to undo" in summary(undone)
    gamma = site.mail("Gamma", answers=site.answer_to(first))
    assert summary(site.mail("undo", answers=site.answer_to(gamma))) == "Undone: Titled it “Gamma”."
    asked = site.mail("undo, or something?", answers=site.answer_to(gamma))
    yes = site.mail("yes", answers=site.answer_to(asked))
    assert "Beta" not in site.page()
    assert summary(yes) == "Undone: Titled it “Beta”."


def asked_about_kiln(site: SiteHarness) -> Job:
    return site.mail("Shall this be there?", "<1@example.com>", files=(KILN,))


@pytest.mark.parametrize(
    ("words", "files", "got"),
    [
        ("Put it there", (), ["kiln.png"]),
        ("Put it there", (KILN,), ["kiln.png"]),
        ("Use this one instead", (SHOP,), ["shop.png"]),
        ("Nimm lieber dieses Foto", (SHOP,), ["shop.png"]),
        ("Plutôt cette photo", (SHOP,), ["shop.png"]),
        ("Put it there, and add that one too", (SHOP,), ["kiln.png", "shop.png"]),
        ("Put it there", (PRICES,), ["kiln.png", "prices.txt"]),
    ],
)
def test_an_answer_with_a_file_keeps_or_replaces_the_one_before_as_it_says(
    site: SiteHarness, agent: Asks, words: str, files: tuple[OutgoingFile, ...], got: list[str]
) -> None:
    done = site.mail(words, answers=site.answer_to(asked_about_kiln(site)), files=files)
    assert done.result
    assert done.result.commit
    assert agent.got == got


@pytest.mark.parametrize(
    ("said", "got"),
    [("The first one", ["kiln.png"]), ("2", ["shop.png"]), ("beide", ["kiln.png", "shop.png"])],
)
def test_an_answer_that_does_not_say_which_file_is_meant_is_asked_about(
    site: SiteHarness, agent: Asks, said: str, got: list[str]
) -> None:
    which = site.mail("Put it there", answers=site.answer_to(asked_about_kiln(site)), files=(SHOP,))
    assert which.result
    assert which.result.question
    assert "kiln.png" in which.result.question
    assert "shop.png" in which.result.question
    unclear = site.mail("Hm", answers=site.answer_to(which))
    assert unclear.result
    assert unclear.result.question == which.result.question
    assert agent.got == []
    chosen = site.mail(said, answers=site.answer_to(which))
    assert summary(chosen) == "Titled it “Put it there”."
    assert agent.got == got


@pytest.mark.parametrize("text", ["Add this photo to the homepage", "Here is our price list"])
def test_a_file_that_the_agent_cannot_use_is_named(site: SiteHarness, text: str) -> None:
    with_a_model = site.mail(text, files=(KILN, PRICES))
    site.deps = replace(site.deps, agents={"builtin": BuiltinAgent(), "auto": BuiltinAgent()})
    without = site.mail(text, files=(KILN, PRICES))
    assert with_a_model.result
    assert without.result
    assert (with_a_model.result.unused, without.result.unused) == ((), ("prices.txt",))


def state(site: SiteHarness, job: Job) -> MailState:
    site.services.events.close()  # written in the background
    detail = site.services.overview.mail(job.email_id)
    assert detail
    return state_of(detail.summary)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("No thanks, leave it", "I leave it as it is"),
        ("non merci", "I leave it as it is"),
        ("Nein danke, lassen Sie es so.\n\nViele Grüße\nScott", "I leave it as it is"),
        ("Never mind", "I leave it as it is"),
        ("yes", "sees your mail and answers you here"),
    ],
)
def test_a_no_or_a_yes_after_nothing_was_changed_is_understood(site: SiteHarness, words: str, told: str) -> None:
    lost = site.mail("Make it pop", "<1@example.com>")
    done = site.mail(words, answers=site.answer_to(lost))
    assert done.outcome is JobOutcome.SUCCEEDED
    assert told in summary(done)
    assert state(site, lost) is (MailState.NOT_UNDERSTOOD if words == "yes" else MailState.CLOSED)


@pytest.mark.parametrize("words", ["No, call it Alpha", "Alpha"])
def test_a_mail_that_was_not_understood_needs_no_person_once_its_sender_said_it_in_other_words(
    site: SiteHarness, words: str
) -> None:
    lost, other = site.mail("Make it pop", "<1@example.com>"), site.mail("Make this pop")
    again = site.mail("Make it pop more", answers=site.answer_to(lost))
    done = site.mail(words, answers=site.answer_to(again))
    assert done.result
    assert done.result.commit
    assert [state(site, one) for one in (lost, again, other)] == [
        MailState.CLOSED, MailState.CLOSED, MailState.NOT_UNDERSTOOD,
    ]  # fmt: skip
    detail = site.services.overview.mail(lost.email_id)
    assert detail
    assert "Closed by the sender's next mail: nothing is left to be done" in map(event_text, detail.timeline)
