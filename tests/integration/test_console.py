"""The operator's actions in the console, on a real data folder: each does what the command of the same name does."""

from __future__ import annotations

import hmac
import re
import shutil
import subprocess
import tempfile
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.harness.chaos import until
from tests.harness.console import FORM, PAGE, open_console
from tests.integration.git_over_http import serving
from tests.unit.test_house import commands
from webordinary.adapters.dot_git import MAX_RULES_BYTES
from webordinary.compose.checks import projects_checks
from webordinary.compose.container import Container
from webordinary.compose.embedded import EmbeddedContainer, open_embedded
from webordinary.config import Config
from webordinary.entrypoints.cli import main
from webordinary.entrypoints.cli.main import parser
from webordinary.entrypoints.dashboard import actions
from webordinary.jobs.site_files import Stage
from webordinary.mail.auth import AwaitsConfirmation, Refused
from webordinary.mail.parsing.message import parse
from webordinary.model.console import ConsoleUser, Role
from webordinary.model.jobs import JobOutcome, JobResult, NewJob, Settlement
from webordinary.model.mail import Command, Delivery, TransportKind
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import Project, Sender, SenderRole
from webordinary.operations import onboarding, site_settings

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MAIL = b"From: scott@example.com\r\nSubject: Hello\r\nMessage-ID: <1@example.com>\r\n\r\nHello\r\n"
DELIVERY = Delivery(TransportKind.SMTP, "127.0.0.1", "scott@example.com", ("edit@localhost",), NOON)


@pytest.fixture
def container(tmp_path: Path) -> Iterator[EmbeddedContainer]:
    with open_embedded(Config(data=tmp_path / "data")) as container:
        onboarding.ensure_sample(container)
        yield container


@pytest.fixture
def page(container: Container) -> Iterator[TestClient]:
    with open_console(container) as client:
        yield client


def give_up(container: Container) -> tuple[int, str]:
    """A mail that was accepted and then given up."""
    [accepted] = container.accept_mail(MAIL, DELIVERY)
    container.dead_letters.add(accepted.email_id, None, "the kiln was <cold>", NOON)
    [letter] = container.dead_letters.all(10)
    return letter.letter_id, accepted.email_id


def test_a_mail_that_was_given_up_is_tried_again_by_one_click(container: Container, page: TestClient) -> None:
    letter_id, email_id = give_up(container)
    assert "the kiln was &lt;cold&gt;" in page.get("/attention").text
    done = page.post(f"/dead-letters/{letter_id}/redrives", headers=FORM)
    assert (done.status_code, done.headers["location"]) == (303, "/attention")
    assert container.dead_letters.all(10) == []
    assert container.workflows.start(f"{email_id}-r1", {"emailId": email_id, "redrive": 1}) is False
    again = page.post(f"/dead-letters/{letter_id}/redrives", headers=FORM)
    assert again.status_code == 409
    assert "gone" in again.text


def test_a_dead_letter_is_dropped_by_one_click_and_its_mail_stays(container: Container, page: TestClient) -> None:
    letter_id, email_id = give_up(container)
    assert page.post(f"/dead-letters/{letter_id}/drops", headers=FORM).status_code == 303
    assert "Nothing waits for you" in page.get("/attention").text
    assert container.raw_mails.load(email_id).raw == MAIL


def test_a_site_is_paused_and_resumed_by_one_click(container: Container, page: TestClient) -> None:
    assert "amelia" in page.get("/sites").text
    assert page.post("/sites/amelia/pauses", headers=FORM).status_code == 303
    assert "Its mails wait" in page.get("/sites/amelia").text
    assert page.post("/sites/amelia/resumes", headers=FORM).status_code == 303
    project = container.directory.project("amelia")
    assert project
    assert not project.paused


def test_the_page_of_a_site_shows_its_people_and_releases(container: Container, page: TestClient) -> None:
    text = page.get("/sites/amelia").text
    assert "scott@example.com" in text
    assert "shown now" in text
    assert page.get("/sites/nobody").status_code == 404


def test_a_site_is_added_from_the_page_and_a_typing_error_keeps_what_was_typed(
    container: Container, page: TestClient
) -> None:
    origins = container.config.data / "origins"
    subprocess.run(["git", "-C", origins / "amelia.git", "config", "http.receivepack", "true"], check=True)
    with serving(origins, "x-access-token", "ghp_secret") as server:
        typed = {
            "name": "baker",
            "user": "berta",
            "sender": "berta@example.com",
            "repo": f"{server.address}/amelia.git",
        }
        folder, program = {"repo": str(origins / "amelia.git")}, {"repo": "ext::sh -c true"}
        for wrong in (folder, program, {"repo": f"file://{origins}/amelia.git"}, {"name": "No Name"}, {"sender": "b"}):
            refused = page.post("/sites", data=typed | wrong, headers=FORM)
            assert refused.status_code == 409, wrong
            assert 'value="berta"' in refused.text
        assert page.post("/sites", data=typed, headers=FORM).status_code == 303
        wait_for("add baker")
        assert "could not be added" in page.get("/sites").text
        assert page.post("/sites", data=typed | {"credential": "ghp_secret"}, headers=FORM).status_code == 303
        wait_for("add baker")
    text = page.get("/sites").text
    assert "could not be added" not in text
    assert 'href="/sites/baker"' in text
    assert container.current_site("baker", Stage.EDIT)
    assert ProjectUser("baker", "berta") in {one.key for one in container.directory.entries("berta@example.com")}
    assert page.post("/sites", data=typed, headers=FORM).status_code == 409


def test_the_first_page_says_how_many_mails_need_a_person(container: Container, page: TestClient) -> None:
    assert "a person." not in page.get("/").text
    hold(container)
    assert "1 mail needs a person." in page.get("/").text


def test_a_viewer_sees_pages_without_buttons(container: Container, page: TestClient) -> None:
    container.directory.add_project(Project("broken", "broken.git", build_problem="no page", paused=True), NOON)
    give_up(container)
    assert container.access
    container.access.users.put(ConsoleUser("vera", Role.VIEWER, NOON), "")
    page.cookies.set("session", container.access.sign_in_proven("vera", "127.0.0.1", "by a test"))
    for path in ("/attention", "/sites/amelia", "/sites/broken", "/pool", "/"):
        answer = page.get(path)
        assert answer.status_code == 200
        assert re.findall(r'<form[^>]* action="([^"]*)"|href="(/write)', answer.text) == [("/logout", "")], path


def test_what_cannot_be_shown_again_is_said_in_words(container: Container, page: TestClient) -> None:
    shown = container.current_site("amelia", Stage.EDIT)
    for path in ("edit/releases/no-such-release", "staging/releases/x"):
        answer = page.post(f"/sites/amelia/{path}/rollbacks", headers=FORM)
        assert answer.status_code in (404, 409)
    assert container.current_site("amelia", Stage.EDIT) == shown


def test_no_action_is_taken_for_another_sites_form(container: Container, page: TestClient) -> None:
    letter_id, _ = give_up(container)
    for path in (f"/dead-letters/{letter_id}/drops", "/sites/amelia/pauses"):
        assert page.post(path, headers={"Origin": "http://evil.example"}).status_code == 403
    assert len(container.dead_letters.all(10)) == 1


def hold(container: Container) -> str:
    """A mail of a known sender that proves nothing, as the workflow holds it."""
    [accepted] = container.accept_mail(MAIL, DELIVERY)
    container.raw_mails.mark_placed(accepted.email_id, AwaitsConfirmation("no proof"))
    return accepted.email_id


def test_a_held_mail_is_released_by_one_click_in_the_operators_name(container: Container, page: TestClient) -> None:
    email_id = hold(container)
    assert "They wrote it" in page.get("/attention").text
    assert page.post(f"/mails/{email_id}/releases", headers=FORM).status_code == 303
    assert container.raw_mails.is_released(email_id)
    assert page.post(f"/mails/{'0' * 64}/releases", headers=FORM).status_code == 409


def test_a_held_mail_is_dropped_by_one_click(container: Container, page: TestClient) -> None:
    email_id = hold(container)
    assert page.post(f"/mails/{email_id}/drops", headers=FORM).status_code == 303
    assert not container.raw_mails.is_released(email_id)
    assert page.post(f"/mails/{email_id}/drops", headers=FORM).status_code == 409


def test_mails_are_found_by_sender_site_and_state(container: Container, page: TestClient) -> None:
    email_id = hold(container)
    for query, found in (("sender=SCOTT", True), ("state=held&project=amelia", True), ("state=done", False)):
        assert (f"/mails/{email_id}" in page.get(f"/mails?{query}").text) is found, query


def test_a_page_past_the_end_of_a_list_shows_its_last_page(container: Container, page: TestClient) -> None:
    email_id = hold(container)
    assert email_id in page.get("/mails?page=999").text
    assert "No mail fits" in page.get("/mails?page=999&q=nowhere").text
    assert 'href="/sites/amelia"' in page.get("/sites?page=99").text
    assert "No site has this in its name" in page.get("/sites?q=nowhere").text


def test_an_action_that_is_refused_leads_back_to_the_page_of_its_form(page: TestClient) -> None:
    def refused(referer: str) -> str:
        return page.post("/dead-letters/7/redrives", headers={**FORM, "Referer": referer}).text

    assert '<a class="button" href="/attention">Back</a>' in refused(f"{PAGE}/attention")
    for elsewhere in ("https://evil.example//evil.example/", "nonsense", ""):
        assert ">Back</a>" not in refused(elsewhere)


def test_a_site_is_chosen_from_a_short_list_and_typed_where_there_are_many(
    container: Container, page: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    email_id = hold(container)
    assert "<option selected>amelia</option>" in page.get("/mails?project=amelia").text
    monkeypatch.setattr(actions, "MOST_CHOICES", 0)
    typed = page.get("/mails?project=amelia").text
    assert "<option" not in typed
    assert '<input name="project" value="amelia"' in typed
    assert email_id in typed


def test_the_operator_answers_a_customer_in_the_conversation_from_the_page(
    container: Container, page: TestClient
) -> None:
    [accepted] = container.accept_mail(MAIL, DELIVERY)
    unread = page.post(f"/mails/{accepted.email_id}/answers", data={"text": "Hello Scott"}, headers=FORM)
    assert (unread.status_code, "cannot be answered" in unread.text) == (409, True)
    container.mail_deps.parsed_mails.save(accepted.email_id, parse(MAIL), NOON)
    done = page.post(f"/mails/{accepted.email_id}/answers", data={"text": "Hello Scott"}, headers=FORM)
    assert done.status_code == 303
    [entry] = container.outbox.of(accepted.email_id)
    assert b"Hello Scott" in entry.reply.raw


def test_an_answer_that_cannot_be_sent_or_comes_second_is_shown_again_with_its_words(
    container: Container, page: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    [accepted] = container.accept_mail(MAIL, DELIVERY)
    answers = f"/mails/{accepted.email_id}/answers"
    unread = page.post(answers, data={"text": "Dear <Scott>"}, headers=FORM)
    assert (unread.status_code, "Dear &lt;Scott&gt;</textarea>" in unread.text) == (409, True)
    container.mail_deps.parsed_mails.save(accepted.email_id, parse(MAIL), NOON)
    blank = page.post(answers, data={"text": " \n"}, headers=FORM)
    assert (blank.status_code, "The answer has no words" in blank.text) == (409, True)
    long = "Ще раз дякуємо. " * 300
    assert page.post(answers, data={"text": long}, headers=FORM).status_code == 303
    second = page.post(answers, data={"text": "And one more thing"}, headers=FORM)
    assert (second.status_code, len(container.outbox.of(accepted.email_id))) == (409, 1)
    assert "And one more thing</textarea>" in second.text
    assert 'name="again" value="yes"' in second.text
    meant = page.post(answers, data={"text": "And one more thing", "again": "yes"}, headers=FORM)
    assert (meant.status_code, len(container.outbox.of(accepted.email_id))) == (303, 2)
    assert main(["mails", "answer", accepted.email_id, "Third", "--data", str(container.config.data)]) == 0
    assert "it is answer 3 to this mail" in capsys.readouterr().out


def test_a_held_mail_without_a_certain_sender_has_no_button_that_cannot_work(
    container: Container, page: TestClient
) -> None:
    certain = hold(container)
    [accepted] = container.accept_mail(MAIL.replace(b"From:", b"From: eve@example.com\r\nFrom:"), DELIVERY)
    container.raw_mails.mark_placed(accepted.email_id, AwaitsConfirmation("no proof"))
    shown = page.get("/attention").text
    assert f'action="/mails/{certain}/releases"' in shown
    assert f'action="/mails/{accepted.email_id}/releases"' not in shown
    assert f'action="/mails/{accepted.email_id}/drops"' in shown
    assert "It cannot be done: " in shown
    assert "Ask scott@example.com to send it again" in shown


@pytest.mark.parametrize(
    ("form", "typed", "words", "kept"),
    [
        ("people", {"address": "nobody", "user": "anna"}, "no mail address", 'value="anna"'),
        ("people", {"address": "anna@example.com", "user": "Anna!"}, "ser name", 'value="anna@example.com"'),
        ("domains", {"domain": "no domain"}, "This is no domain", 'value="no domain"'),
        (
            "settings",
            {"wishes": "British <spelling>", "daily_cap_usd": "much"},
            "number of dollars",
            "&lt;spelling&gt;",
        ),
        ("settings", {"agent": "nobody", "default_instruction": "Tidy up"}, "no agent", 'value="Tidy up"'),
        ("removals", {"name": "bakery"}, "Nothing was removed", 'id="remove-site" open'),
        ("people/roles", {"address": "scott@example.com", "role": "king"}, "Choose", 'scott@example.com" open'),
    ],
)
def test_what_prevents_an_action_is_said_on_the_sites_page_with_what_was_typed(
    page: TestClient, form: str, typed: dict[str, str], words: str, kept: str
) -> None:
    refused = page.post(f"/sites/amelia/{form}", data=typed, headers=FORM)
    assert refused.status_code == 409
    assert words in refused.text
    assert kept in refused.text
    assert "<h1>amelia</h1>" in refused.text
    assert "data-live" not in refused.text, "news would replace what was typed"
    assert page.post(f"/sites/none/{form}", data=typed, headers=FORM).status_code in (404, 409)


def test_a_secret_that_was_refused_is_not_printed_into_the_page(page: TestClient) -> None:
    secrets = {"edit_password": "correct horse", "daily_cap_usd": "much"}
    assert "correct horse" not in page.post("/sites/amelia/settings", data=secrets, headers=FORM).text


def test_settings_that_another_browser_changed_meanwhile_are_not_overwritten(
    container: Container, page: TestClient
) -> None:
    [seen] = re.findall('name="seen" value="([0-9a-f]+)"', page.get("/sites/amelia").text)
    first = {"seen": seen, "agent": "builtin", "default_instruction": "Tidy up", "wishes": ""}
    assert page.post("/sites/amelia/settings", data=first, headers=FORM).status_code == 303
    mine = {"seen": seen, "agent": "builtin", "default_instruction": "", "wishes": "British\r\nspelling"}
    late = page.post("/sites/amelia/settings", data=mine, headers=FORM)
    assert (late.status_code, "were changed while you wrote" in late.text) == (409, True)
    assert "now: Tidy up" in late.text
    assert "British\nspelling</textarea>" in late.text
    assert onboarding.project_of(container, "amelia").default_instruction == "Tidy up"
    [seen_now] = re.findall('name="seen" value="([0-9a-f]+)"', late.text)
    assert page.post("/sites/amelia/settings", data=mine | {"seen": seen_now}, headers=FORM).status_code == 303
    assert onboarding.project_of(container, "amelia").wishes == ("British", "spelling")


def fail(container: Container) -> str:
    """A mail whose job failed and whose reply has left."""
    email_id = hold(container)
    container.raw_mails.release(email_id)
    new = NewJob(job_id_of(email_id), ProjectUser("amelia", "scott"), "0" * 16, email_id, Command.EDIT)
    container.jobs.record(new, NOON, ready=True)
    settled = Settlement(JobOutcome.FAILED, JobResult("", error="npm ended with an error"))
    container.jobs.settle_waiting(new.job_id, settled, NOON)
    return email_id


def test_a_card_of_what_needs_a_person_shows_the_beginning_of_what_the_customer_wrote(
    container: Container, page: TestClient
) -> None:
    email_id = fail(container)
    wrote = "Make the <pots> " + "a little bit nicer " * 40
    container.mail_deps.parsed_mails.save(email_id, replace(parse(MAIL), text=wrote), NOON)
    [shown] = re.findall("<blockquote>(.*?)</blockquote>", page.get("/attention").text)
    assert shown.startswith("Make the &lt;pots&gt; a little bit nicer")
    assert 250 < len(shown) < 320
    _, given_up = give_up(container)
    assert given_up == email_id, "the same mail"
    _, letters = page.get("/attention").text.split('<h2 id="letters">')
    assert "<blockquote>Make the &lt;pots&gt;" in letters


def test_a_failed_mail_is_handed_to_another_agent_by_click_and_by_command(
    container: Container, page: TestClient
) -> None:
    email_id = fail(container)
    assert "<option>claude</option>" in page.get("/attention").text
    retries = f"/mails/{email_id}/retries"
    assert page.post(retries, headers=FORM, data={"key": "command"}).status_code == 409, "it has no program"
    assert page.post(retries, headers=FORM, data={"key": "claude"}).status_code == 303
    assert onboarding.project_of(container, "amelia").agent == "claude"
    assert container.workflows.start(f"{email_id}-r1", {"emailId": email_id, "redrive": 1}) is False
    words = ["mails", "retry", email_id, "--agent", "builtin", "--data", str(container.config.data)]
    assert main(words) == 0
    assert onboarding.project_of(container, "amelia").agent == "builtin"


def test_a_failed_mail_is_tried_again_or_closed_by_one_click(container: EmbeddedContainer, page: TestClient) -> None:
    email_id = fail(container)
    assert "npm ended with an error" in page.get("/attention").text
    assert page.post(f"/mails/{email_id}/closings", headers=FORM).status_code == 303
    container.events.close()
    assert "Nothing waits for you" in page.get("/attention").text
    back = page.post(f"/mails/{email_id}/retries", headers=FORM, data={"back": f"/mails/{email_id}"})
    assert (back.status_code, back.headers["location"]) == (303, f"/mails/{email_id}")
    assert container.workflows.start(f"{email_id}-r1", {"emailId": email_id, "redrive": 1}) is False
    elsewhere = page.post(f"/mails/{email_id}/retries", headers=FORM, data={"back": "//evil.example"})
    assert elsewhere.headers["location"] == "/attention"


def refuse(container: Container, author: str = "Scott@new.example") -> str:
    """A mail of a stranger, as the workflow refuses it."""
    raw = MAIL.replace(b"scott@example.com", author.encode())
    [accepted] = container.accept_mail(
        raw, replace(DELIVERY, mail_from="bounces+7@mailer.example", received_at=container.clock.now())
    )
    container.raw_mails.mark_placed(accepted.email_id, Refused("entitled to no project"))
    return accepted.email_id


def test_the_author_of_a_refused_mail_is_let_in_by_one_click_or_command(container: Container, page: TestClient) -> None:
    email_id = refuse(container)
    assert "Let scott@new.example in, and do it" in page.get("/attention").text, "not the address of the envelope"
    admissions = f"/mails/{email_id}/admissions"
    for wrong in ("gone#x", "amelia", ""):
        assert page.post(admissions, headers=FORM, data={"key": wrong}).status_code == 409
    assert container.directory.entries("scott@new.example") == ()
    for _ in range(2):
        assert page.post(admissions, headers=FORM, data={"key": "amelia#scott"}).status_code == 303
    assert [str(one.key) for one in container.directory.entries("scott@new.example")] == ["amelia#scott"]
    assert container.workflows.start(f"{email_id}-r1", {"emailId": email_id, "redrive": 1}) is False
    assert (
        page.post(f"/mails/{hold(container)}/admissions", headers=FORM, data={"key": "amelia#scott"}).status_code == 409
    )
    other = refuse(container, "anna@new.example")
    assert main(["mails", "admit", "amelia#anna", other, "--data", str(container.config.data)]) == 0
    assert [str(one.key) for one in container.directory.entries("anna@new.example")] == ["amelia#anna"]
    assert container.workflows.start(f"{other}-r1", {"emailId": other, "redrive": 1}) is False


def test_a_click_alone_lets_no_stranger_into_the_first_site_of_the_list(container: Container, page: TestClient) -> None:
    container.directory.add_sender(Sender("ann@example.com", ProjectUser("amelia", "ann")), container.clock.now())
    refuse(container)
    shown = page.get("/attention").text
    assert '<select name="key" required><option></option><option>amelia#ann</option>' in shown


def test_what_a_search_found_is_exported(container: Container, page: TestClient) -> None:
    email_id = hold(container)
    head, row = page.get("/mails.csv?state=held").text.splitlines()
    assert (head.split(",")[0], row.split(",")[0]) == ("mail", email_id)
    assert page.get("/mails.jsonl?state=dead").text == ""


def push(container: Container, name: str, text: str, origin: Path | None = None) -> None:
    """A developer's commit on main of the sample."""
    origin = origin or container.config.data / "origins" / "amelia.git"
    with tempfile.TemporaryDirectory() as scratch:
        git = ["git", "-C", scratch, "-c", "user.name=dev", "-c", "user.email=dev@example.com"]
        subprocess.run(["git", "clone", "--quiet", str(origin), scratch], check=True)
        (Path(scratch) / name).parent.mkdir(parents=True, exist_ok=True)
        (Path(scratch) / name).write_text(text)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", "A push"], check=True)
        subprocess.run([*git, "push", "--quiet", "origin", "HEAD:main"], check=True)


def wait_for(thread_name: str) -> None:
    for thread in threading.enumerate():
        if thread.name == thread_name:
            thread.join()


def shown(container: Container, name: str) -> str:
    release = container.current_site("amelia", Stage.EDIT)
    assert release
    return (release / name).read_text()


def test_a_push_is_shown_after_one_click_and_by_a_signed_webhook_only(container: Container, page: TestClient) -> None:
    push(container, "new.html", "<h1>One</h1>")
    assert page.post("/sites/amelia/builds", headers=FORM).status_code == 303
    wait_for("rebuild amelia")
    assert shown(container, "new.html") == "<h1>One</h1>"
    push(container, "new.html", "<h1>Two</h1>")
    body, secret = b'{"ref": "refs/heads/main"}', site_settings.new_hook(container, "amelia")
    signature = "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()
    for wrong in ("", "sha256=", signature[:-1], "sha256=\u00e9"):
        sent = {b"X-Hub-Signature-256": wrong.encode()}
        assert page.post("/hooks/amelia", content=body, headers=sent).status_code == 403
    assert page.post("/hooks/gone", content=body, headers={"X-Hub-Signature-256": signature}).status_code == 403
    assert (
        page.post("/hooks/amelia", content=body + b" ", headers={"X-Hub-Signature-256": signature}).status_code == 403
    )
    assert page.post("/hooks/amelia", content=body, headers={"X-Hub-Signature-256": signature}).status_code == 202
    wait_for("rebuild amelia")
    assert shown(container, "new.html") == "<h1>Two</h1>"
    assert secret not in page.get("/sites/amelia").text


def test_a_push_builds_the_sites_of_a_repository_that_it_concerns_and_no_neighbour(
    container: Container, page: TestClient, tmp_path: Path
) -> None:
    origin, names = tmp_path / "mono.git", ("web", "shop")
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", origin], check=True)
    for name in names:
        push(container, f"apps/{name}/index.html", f"<h1>{name}</h1>", origin)
    for name in names:
        added = onboarding.onboard(
            container, name, str(origin), "ann", "ann@example.com", lambda _: None, folder=f"apps/{name}"
        )
        assert added.problem == ""
    secrets = {name: site_settings.new_hook(container, name) for name in names}

    def built_by(file: str) -> list[str]:
        push(container, file, f"<p>{file}</p>", origin)
        before = {name: container.current_site(name, Stage.EDIT) for name in names}
        for name, secret in secrets.items():
            signature = "sha256=" + hmac.new(secret.encode(), b"{}", "sha256").hexdigest()
            called = page.post(f"/hooks/{name}", content=b"{}", headers={"X-Hub-Signature-256": signature})
            assert called.status_code == 202
            wait_for(f"rebuild {name}")
        return [name for name in names if container.current_site(name, Stage.EDIT) != before[name]]

    assert built_by("apps/shop/new.html") == ["shop"]
    assert built_by("apps/web/new.html") == ["web"]
    assert built_by("shared/colours.css") == ["web", "shop"]
    assert built_by("package.json") == ["web", "shop"]
    assert built_by("apps/shop/used.html") == ["web", "shop"], "a workspace: a build may use its neighbours"


def test_the_body_of_a_webhook_call_is_never_kept(page: TestClient) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(75):
            yield b"x" * 65_000

    async def post() -> tuple[int, int]:
        transport = httpx.ASGITransport(page.app)
        async with httpx.AsyncClient(transport=transport, base_url=PAGE) as client:
            tracemalloc.start()
            answer = await client.post("/hooks/amelia", content=parts(), headers={"X-Hub-Signature-256": "sha256="})
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return answer.status_code, most

    assert page.portal
    status, most = page.portal.call(post)
    assert status == 403
    assert most < 1_000_000


def test_a_site_whose_build_fails_is_red_until_it_is_mended(container: Container, page: TestClient) -> None:
    project = container.directory.project("amelia")
    assert project
    container.directory.add_project(replace(project, builder="nonsense"), NOON)
    assert "in order" in page.get("/sites").text
    push(container, "new.html", "<h1>One</h1>")
    assert "nonsense" in onboarding.rebuild(container, "amelia")
    assert "its last build failed" in page.get("/sites").text
    assert "known are" in page.get("/sites/amelia").text
    shutil.rmtree(container.config.data / "sites" / "amelia")
    assert "nothing is shown" in page.get("/sites").text
    assert "Sites that show nothing" in page.get("/attention").text
    broken = replace(onboarding.project_of(container, "amelia"), builder="")
    container.directory.add_project(broken, NOON)
    assert onboarding.rebuild(container, "amelia") == ""
    assert "in order" in page.get("/sites").text
    assert "known are" not in page.get("/sites/amelia").text


def test_a_push_that_is_refused_is_a_build_problem_of_its_site(container: Container, page: TestClient) -> None:
    push(container, ".gitattributes", "* text\n" * (MAX_RULES_BYTES // 7 + 1))
    assert page.post("/sites/amelia/builds", headers=FORM).status_code == 303
    wait_for("rebuild amelia")
    assert "its last build failed" in page.get("/sites").text
    assert "more than 1000 kB" in page.get("/sites/amelia").text
    push(container, ".gitattributes", "* text\n")
    assert onboarding.rebuild(container, "amelia") == ""
    assert "in order" in page.get("/sites").text


def settings_of(container: Container) -> Project:
    project = container.directory.project("amelia")
    assert project
    return project


def role_of(container: Container, address: str) -> SenderRole | None:
    found = [one.role for one in container.directory.entries(address) if one.key.project_id == "amelia"]
    return found[0] if found else None


def test_settings_of_a_site_are_changed_by_click_as_by_command(container: Container, page: TestClient) -> None:
    fields = {
        "agent": "builtin",
        "daily_cap_usd": "4.5",
        "default_instruction": "Ask them what to do",
        "approver": "scott@example.com",
        "wishes": "British spelling\r\n\r\nnever touch prices\r\n",
        "edit_password": "kiln and glaze",
    }
    assert page.post("/sites/amelia/settings", data=fields, headers=FORM).status_code == 303
    by_click, text = settings_of(container), page.get("/sites/amelia").text
    assert by_click.wishes == ("British spelling", "never touch prices")
    assert (by_click.agent, by_click.daily_cap_usd, by_click.approver) == ("builtin", 4.5, "scott@example.com")
    assert by_click.edit_password
    assert "kiln and glaze" not in text
    assert "never touch prices" in text
    assert page.post("/sites/amelia/settings", data={"open_edit_site": "yes"}, headers=FORM).status_code == 303
    assert settings_of(container) == replace(by_click, edit_password=""), "what the form does not have stays"
    given = ["--agent", "auto", "--daily-cap", "2", "--wishes", "by command", "--data", str(container.config.data)]
    assert main(["project", "set", "amelia", *given]) == 0
    assert settings_of(container).agent == "auto"
    assert 'value="2"' in page.get("/sites/amelia").text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"daily_cap_usd": "much"}, "such as 5"),
        ({"daily_cap_usd": "-1"}, "such as 5"),
        ({"agent": "command"}, "here is no agent"),
        ({"approver": "stranger@example.com"}, "may not publish amelia"),
        ({"wishes": "x\n" * 21}, "at most 20 wishes"),
        ({"edit_password": "short"}, "10 to 200"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_words(
    container: Container, page: TestClient, fields: dict[str, str], words: str
) -> None:
    before = settings_of(container)
    refused = page.post("/sites/amelia/settings", data={"default_instruction": "new", **fields}, headers=FORM)
    assert refused.status_code == 409
    assert words in refused.text
    assert settings_of(container) == before


def test_people_of_a_site_are_added_given_a_role_and_removed_by_click(container: Container, page: TestClient) -> None:
    people = "/sites/amelia/people"
    anna = {"address": "Anna@Example.com", "user": "anna"}
    assert page.post(people, data=anna, headers=FORM).status_code == 303
    assert role_of(container, "anna@example.com") is SenderRole.BOTH
    given = {"address": "anna@example.com", "role": "editor"}
    assert page.post(f"{people}/roles", data=given, headers=FORM).status_code == 303
    assert role_of(container, "anna@example.com") is SenderRole.EDITOR
    assert 'value="editor" selected' in page.get("/sites/amelia").text
    assert main(["project", "role", "amelia", "anna@example.com", "both", "--data", str(container.config.data)]) == 0
    assert role_of(container, "anna@example.com") is SenderRole.BOTH
    for path, wrong in (
        (people, {"address": "no address", "user": "anna"}),
        (people, {"address": "b@example.com", "user": "No Name"}),
        (f"{people}/roles", {"address": "anna@example.com", "role": "owner"}),
        (f"{people}/roles", {"address": "stranger@example.com", "role": "both"}),
    ):
        assert page.post(path, data=wrong, headers=FORM).status_code == 409, wrong
    stranger = page.post(f"{people}/roles", data={"address": "Z@Example.com", "role": "both"}, headers=FORM)
    assert "Z@Example.com may change nothing of amelia" in stranger.text
    assert page.post(f"{people}/removals", data=given, headers=FORM).status_code == 303
    assert role_of(container, "anna@example.com") is None
    assert "anna@example.com" not in page.get("/sites/amelia").text


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("pauses", {}, 303),
        ("settings", {"wishes": "British spelling"}, 303),
        ("people", {"address": "anna@example.com", "user": "anna"}, 303),
        ("people/roles", {"address": "scott@example.com", "role": "editor"}, 303),
        ("people/removals", {"address": "scott@example.com"}, 303),
        ("domains", {"domain": "www.pottery.invalid"}, 200),
        ("domains/removals", {"domain": "www.pottery.invalid"}, 303),
        ("hooks", {}, 200),
        ("hooks/removals", {}, 303),
        ("credentials/removals", {}, 303),
        ("removals", {"name": "amelia"}, 303),
    ],
)
def test_each_change_of_a_site_is_an_event_so_that_other_open_pages_show_it(
    container: EmbeddedContainer, page: TestClient, path: str, fields: dict[str, str], status: int
) -> None:
    until(lambda: [one for one in container.overview.events_after(0, 10) if one.kind == "SiteAdded"], "the first event")
    before = container.overview.last_seq()
    assert page.post(f"/sites/amelia/{path}", data=fields, headers=FORM).status_code == status
    container.events.close()
    told = [entry for entry in container.overview.events_after(before, 10) if entry.data.get("by") == "operator"]
    assert [entry.kind for entry in told] in (["SiteChanged"], ["SiteAdded"])


def test_a_form_of_unknown_length_is_asked_for_its_length(page: TestClient) -> None:
    answer = page.post("/claims/amelia%23scott/releases", content=iter([b"a=b"]), headers=FORM)
    assert answer.status_code == 411
    assert "Content-Length" in answer.text
    too_large = page.post("/claims/amelia%23scott/releases", content=b"a=" + bytes(1_000_000), headers=FORM)
    assert too_large.status_code == 413


def test_a_domain_is_added_checked_and_removed_by_click_as_by_command(container: Container, page: TestClient) -> None:
    domains = "/sites/amelia/domains"
    added = page.post(domains, data={"domain": "WWW.Pottery.invalid"}, headers=FORM)
    assert "www.pottery.invalid.  CNAME  amelia.localhost." in added.text
    assert "does not lead here yet" in added.text
    assert settings_of(container).domains == ("www.pottery.invalid",)
    data = ["--data", str(container.config.data)]
    assert main(["project", "domain", "add", "amelia", "localhost.pottery.invalid", *data]) == 0
    text = page.get("/sites/amelia").text
    assert f'href="{domains}/localhost.pottery.invalid"' in text
    checked = page.get(f"{domains}/www.pottery.invalid")
    assert (checked.status_code, "CNAME" in checked.text) == (200, True)
    assert page.get(f"{domains}/www.example.com").status_code == 404, "a stranger's name is not looked up"
    for wrong, words in (("no domain", "no domain"), ("edit.amelia.localhost", "is a name of this server")):
        refused = page.post(domains, data={"domain": wrong}, headers=FORM)
        assert (refused.status_code, words in refused.text) == (409, True)
    for name in ("www.pottery.invalid", "localhost.pottery.invalid"):
        assert page.post(f"{domains}/removals", data={"domain": name}, headers=FORM).status_code == 303
    assert settings_of(container).domains == ()


def test_a_domain_that_cannot_be_compared_is_not_said_to_lead_elsewhere(tmp_path: Path) -> None:
    with open_embedded(Config(data=tmp_path / "data", domain="pottery.invalid")) as container:
        onboarding.ensure_sample(container)
        with open_console(container) as page:
            added = page.post("/sites/amelia/domains", data={"domain": "www.kiln.invalid"}, headers=FORM)
    assert "cannot be compared" in added.text
    assert "not known whether it leads here" in added.text
    assert "does not lead here yet" not in added.text


def test_a_webhook_that_no_one_can_call_says_so(
    container: Container, page: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    made = page.post("/sites/amelia/hooks", headers=FORM).text
    assert "No one outside this machine reaches this address" in made
    assert "Its repository is a folder of this machine" in made
    assert main(["project", "hook", "amelia", "--data", str(container.config.data)]) == 0
    out = capsys.readouterr().out
    assert "The former secret is no longer valid." in out
    assert "No one outside this machine reaches this address" in out
    project = settings_of(container)
    public = replace(container.config, public_url="https://console.example.com")
    assert site_settings.hook_doubts(public, replace(project, repo="https://git.example.com/a.git")) == []


def test_a_site_that_no_person_may_publish_says_so_on_its_page_and_in_doctor(
    container: Container, page: TestClient
) -> None:
    assert "No person may publish" not in page.get("/sites/amelia").text
    site_settings.set_role(container, "amelia", "scott@example.com", SenderRole.EDITOR)
    assert "No person may publish amelia" in page.get("/sites/amelia").text
    found = {check.name: check.look().what for check in projects_checks(container) if check.name == "people of amelia"}
    assert "no person may publish amelia" in found["people of amelia"]


def test_a_second_site_of_a_person_changes_where_to_write_for_the_first_and_says_so(
    container: Container, page: TestClient, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, data = tmp_path / "kiln", str(container.config.data)
    folder.mkdir()
    (folder / "index.html").write_text("<title>Kiln</title><h1>Kiln</h1>")
    add = ["project", "add", "kiln", "--repo", str(folder), "--user", "scott", "--sender", "scott@example.com"]
    assert main([*add, "--data", f"{data}/../data"]) == 0
    words = "as scott@example.com has two sites now, amelia is changed by mail to edit+amelia@localhost from now on"
    out = capsys.readouterr().out
    assert words in out
    assert "/../" not in out
    assert "writes to edit+amelia@localhost for this one" in page.get("/sites/amelia").text
    assert main([*add, "--data", data]) == 0
    assert words not in capsys.readouterr().out, "it has changed already"
    assert main(["project", "remove", "kiln", "--yes", "--data", data]) == 0
    assert "a new site called kiln goes on with it; to begin anew, move it away" in capsys.readouterr().out
    assert "for this one" not in page.get("/sites/amelia").text


def test_the_secret_of_a_webhook_is_shown_once_and_a_new_one_ends_it(container: Container, page: TestClient) -> None:
    body, hooks = b"{}", "/sites/amelia/hooks"

    def call(secret: str) -> int:
        signature = "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()
        return page.post("/hooks/amelia", content=body, headers={"X-Hub-Signature-256": signature}).status_code

    made = page.post(hooks, headers=FORM)
    [first] = re.findall('<code id="secret">([^<]+)<', made.text)
    assert f"{PAGE}/hooks/amelia" in made.text
    assert made.headers["cache-control"] == "no-store"
    assert call(first) == 202
    assert first not in page.get("/sites/amelia").text
    [second] = re.findall('<code id="secret">([^<]+)<', page.post(hooks, headers=FORM).text)
    wait_for("rebuild amelia")
    assert (call(first), call(second)) == (403, 202)
    assert page.post(f"{hooks}/removals", headers=FORM).status_code == 303
    assert call(second) == 403
    assert main(["project", "hook", "amelia", "--data", str(container.config.data)]) == 0
    assert "on: a push builds it" in page.get("/sites/amelia").text
    assert main(["project", "hook", "amelia", "--remove", "--data", str(container.config.data)]) == 0
    assert settings_of(container).hook_secret == ""
    wait_for("rebuild amelia")


def test_a_credential_is_tried_before_the_page_keeps_it(container: Container, page: TestClient) -> None:
    origins = container.config.data / "origins"
    subprocess.run(["git", "-C", origins / "amelia.git", "config", "http.receivepack", "true"], check=True)
    credentials = "/sites/baker/credentials"
    with serving(origins, "x-access-token", "ghp_secret") as server:
        container.directory.add_project(Project("baker", f"{server.address}/amelia.git"), NOON)
        refused = page.post(credentials, data={"credential": "ghp_wrong"}, headers=FORM)
        assert (refused.status_code, "does not let us in" in refused.text) == (409, True)
        assert "ghp_wrong" not in refused.text
        assert container.credentials.kind("baker").value == "none"
        assert page.post(credentials, data={"credential": "ghp_secret\r\n"}, headers=FORM).status_code == 303
    assert container.credentials.kind("baker").value == "token"
    text = page.get("/sites/baker").text
    assert ("ghp_secret" in text, "Forget the credential" in text) == (False, True)
    assert page.post(f"{credentials}/removals", headers=FORM).status_code == 303
    assert container.credentials.kind("baker").value == "none"
    assert page.post("/sites/gone/credentials", data={"credential": "x"}, headers=FORM).status_code == 409


def test_a_site_is_removed_only_by_its_typed_name_and_with_open_jobs_only_on_purpose(
    container: Container, page: TestClient
) -> None:
    removals = "/sites/amelia/removals"
    for typed in ({}, {"name": ""}, {"name": "Amelia"}, {"name": "baker"}):
        refused = page.post(removals, data=typed, headers=FORM)
        assert (refused.status_code, "Nothing was removed" in refused.text) == (409, True), typed
    email_id = hold(container)
    container.jobs.record(
        NewJob(job_id_of(email_id), ProjectUser("amelia", "scott"), "0" * 16, email_id, Command.EDIT), NOON, ready=True
    )
    busy = page.post(removals, data={"name": "amelia"}, headers=FORM)
    assert (busy.status_code, "has open jobs" in busy.text) == (409, True)
    assert container.current_site("amelia", Stage.EDIT)
    assert "Give up its open jobs (1)" in page.get("/sites/amelia").text
    done = page.post(removals, data={"name": " amelia ", "force": "yes"}, headers=FORM)
    assert (done.status_code, done.headers["location"]) == (303, "/sites")
    assert container.directory.project("amelia") is None
    assert container.current_site("amelia", Stage.EDIT) is None
    assert (container.config.data / "origins" / "amelia.git").is_dir(), "the repository stays"
    assert page.get("/sites/amelia").status_code == 404


COMMANDS = {
    "/mails": "send",
    "/mails/{email_id}/replies": "replies send-again",
    "/mails/{email_id}/releases": "mails release",
    "/mails/{email_id}/drops": "mails drop",
    "/mails/{email_id}/answers": "mails answer",
    "/mails/{email_id}/retries": "mails retry",
    "/mails/{email_id}/cancellations": "mails cancel",
    "/mails/{email_id}/interrupts": "mails interrupt",
    "/mails/{email_id}/replays": "mails replay",
    "/mails/{email_id}/closings": "mails close",
    "/mails/{email_id}/admissions": "mails let-in",
    "/dead-letters/{letter_id:int}/redrives": "dlq redrive",
    "/dead-letters/{letter_id:int}/drops": "dlq drop",
    "/claims/{key}/releases": "pool release",
    "/workers/{worker}/drains": "pool drain",
    "/sites": "project add",
    "/sites/{project_id}/builds": "release rebuild",
    "/sites/{project_id}/settings": "project set",
    "/sites/{project_id}/people": "project add",
    "/sites/{project_id}/people/roles": "project role",
    "/sites/{project_id}/people/removals": "project remove",
    "/sites/{project_id}/domains": "project domain add",
    "/sites/{project_id}/domains/removals": "project domain remove",
    "/sites/{project_id}/hooks": "project hook",
    "/sites/{project_id}/hooks/removals": "project hook",
    "/sites/{project_id}/credentials": "project credential",
    "/sites/{project_id}/credentials/removals": "project credential",
    "/sites/{project_id}/removals": "project remove",
    "/sites/{project_id}/pauses": "pause",
    "/sites/{project_id}/resumes": "resume",
    "/sites/{project_id}/{stage}/releases/{release}/rollbacks": "release rollback",
}
NO_ACTIONS = {"/login", "/logout", "/link/{secret}", "/wrote/{token}", "/hooks/{project_id}"}
"""They sign a person in or out, or belong to a customer or a machine."""


def test_every_action_of_the_console_is_also_a_command(page: TestClient) -> None:
    app = page.app
    assert isinstance(app, Starlette)
    posts = {route.path for route in app.routes if isinstance(route, Route) and "POST" in (route.methods or ())}
    assert posts - NO_ACTIONS == {*COMMANDS}
    assert {*COMMANDS.values()} <= {*commands(parser())}
