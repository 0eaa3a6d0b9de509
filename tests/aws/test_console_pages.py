"""The console on both backends: the same pages with the same sections after the same mails, and the same actions."""
# ruff: noqa: E402

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.acceptance.test_browser import up
from tests.aws.lambdas import packaged, until
from tests.aws.test_aws_local import start, variables
from tests.unit.dashboard.tables import DashboardTables
from webordinary.entrypoints.cli import main
from webordinary.entrypoints.dashboard.web import create_app

pytestmark = pytest.mark.timeout(600)
LETTERS = {"done": "Set the title to Spring Sale", "not-understood": "Please make the whole site feel warmer"}
STRANGER = (
    "From: scott@new.example\nTo: edit@localhost\nSubject: Hi\nMessage-ID: <1@new.example>\n\nSet the title to Hi\n"
)
ELSEWHERE = ("/login/oidc", "/login/oidc/callback", "/link/{secret}", "/wrote/{token}", "/tls/ask", "/events")
"""What needs a login, or never ends."""
NOT_THERE = ("/mails/{email_id}/attachments/{position:int}", "/mails/{email_id}/pictures/{position:int}",
             "/sites/{project_id}/domains/{domain}")  # fmt: skip
HEADING = re.compile(r"<h([12])[^>]*>(.*?)</h\1>", re.DOTALL)
MAIL = re.compile(r'href="(/mails/[0-9a-f]{64})"')


class ConsoleClient:
    """A running system, as the browser of its operator sees it."""

    def __init__(self, page: str) -> None:
        self.http = httpx.Client(base_url=page.rstrip("/"), headers={"Origin": page.rstrip("/")}, timeout=60)
        for state, text in LETTERS.items():  # one after the other: the second could interrupt the first on one of both
            form = {"from": "scott@example.com", "subject": "A wish", "text": text}
            assert self.http.post("/mails", data=form).status_code == 303
            self.await_mail(state)

    def await_mail(self, state: str) -> str:
        """Its address, once there is one."""
        until(lambda: self.mail(state), f"a mail that is {state}")
        return self.mail(state)

    def await_words(self, path: str, words: str) -> str:
        """A page, once it says so."""
        until(lambda: words in self.http.get(path).text, f"{path} to say {words!r}")
        return self.http.get(path).text

    def close(self) -> None:
        self.http.close()

    def mail(self, state: str) -> str:
        """The address of the one mail in this state; empty if there is none."""
        return next(iter(MAIL.findall(self.http.get("/mails", params={"state": state}).text)), "")

    def sections(self, path: str) -> list[str]:
        """The headings of a page, without what a machine chose."""
        page = self.http.get(path)
        assert page.status_code == 200, (path, page.status_code, page.text[-500:])
        return [re.sub(r"<[^>]*>|\b[0-9a-f]{10,}\b|\s+", " ", words).strip() for _, words in HEADING.findall(page.text)]


def every_page() -> list[str]:
    app = create_app(DashboardTables(Path()).dashboard())
    readable = (route for route in app.routes if isinstance(route, Route) and "GET" in (route.methods or ()))
    return [route.path for route in readable if route.path not in ELSEWHERE]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    with up(tmp_path_factory.mktemp("embedded") / "data") as there, closing(ConsoleClient(there.page)) as system:
        yield system


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ConsoleClient, Path]]:
    packaged()
    data = tmp_path_factory.mktemp("cloud") / "data"
    process: subprocess.Popen[str] = start(data)
    try:
        assert process.stdout
        with closing(ConsoleClient(json.loads(process.stdout.readline())["page"])) as system:
            yield system, data
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=200)


def test_each_page_of_the_console_has_the_same_sections_on_aws(
    embedded: ConsoleClient, cloud: tuple[ConsoleClient, Path]
) -> None:
    for path in every_page():
        for state in LETTERS:
            # A mail is in its state before all events of it have come: on AWS through logs, here in steps of a second.
            # A mail has reached its state before all of its events are here: on AWS they come through logs.
            until(partial(shown_alike, (embedded, cloud[0]), path, state), f"the sections of {path} to be those here")


def shown_alike(systems: tuple[ConsoleClient, ConsoleClient], path: str, state: str) -> bool:
    here, there = (shown(system, path, state) for system in systems)
    return here == there


def shown(system: ConsoleClient, path: str, state: str) -> list[str] | int:
    """The sections of a page, or the status of one that is not there."""
    filled = path.replace("/mails/{email_id}", system.mail(state)).replace("{project_id}", "amelia")
    filled = filled.replace("{position:int}", "0").replace("{domain}", "www.example.com")
    return system.http.get(filled).status_code if path in NOT_THERE else system.sections(filled)


def test_a_mail_is_rehearsed_and_another_one_closed_on_both(
    embedded: ConsoleClient, cloud: tuple[ConsoleClient, Path]
) -> None:
    for system in (embedded, cloud[0]):
        done, unclear = system.mail("done"), system.mail("not-understood")
        assert system.http.post(f"{done}/replays").status_code == 303
        system.await_words(done, "It ended as")
        assert unclear in system.http.get("/attention").text
        assert system.http.post(f"{unclear}/closings").status_code == 303
        assert system.await_mail("closed") == unclear
        assert unclear not in system.http.get("/attention").text


def test_the_author_of_a_refused_mail_is_let_in_on_aws_and_the_page_shows_the_run_that_did_it(
    cloud: tuple[ConsoleClient, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, data = cloud
    for name, value in variables(data / "emulator" / "environment").items():
        monkeypatch.setenv(name, value)
    letter = tmp_path / "letter.eml"
    letter.write_text(STRANGER)
    assert main(["send", str(letter)]) == 0
    mail = system.await_mail("refused")
    assert "Let scott@new.example in, and do it" in system.http.get("/attention").text
    assert system.http.post(f"{mail}/admissions", data={"key": "amelia#scott"}).status_code == 303
    shown = system.await_words(mail, "Shown on the edit site")
    assert re.search('aria-label="Way: [^"]*await result', shown, re.IGNORECASE)
    assert system.http.post(f"{mail}/admissions", data={"key": "amelia#scott"}).status_code == 409
