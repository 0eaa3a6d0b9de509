"""Requests by host name: those for the console, those for a site, and those that are refused."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.unit.dashboard.tables import DashboardTables
from webordinary.entrypoints.dashboard.sites import DashboardHost, Destination, Hosts, SiteHost, SitePort
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.jobs.site_files import Stage
from webordinary.model.projects import Project

HOSTS = Hosts(domain="localhost", preview_port=8081)


@pytest.mark.parametrize(
    ("host", "port", "destination"),
    [
        ("127.0.0.1:8080", 8080, DashboardHost()),
        ("localhost:8080", 8080, DashboardHost()),
        ("LocalHost", 8080, DashboardHost()),
        ("127.0.0.1:9000", 8080, DashboardHost()),
        ("127.0.0.1:8081", 8081, SitePort()),
        ("edit.amelia.localhost:8080", 8080, SiteHost("amelia", Stage.EDIT)),
        ("amelia.localhost:8080", 8080, SiteHost("amelia", Stage.PUBLIC)),
        ("t-0123456789abcdef.edit.amelia.localhost", 8080, SiteHost("amelia", Stage("t-0123456789abcdef"))),
        ("edit.amelia.localhost.:8081", 8081, SiteHost("amelia", Stage.EDIT)),
        ("edit.localhost", 8080, SiteHost("edit", Stage.PUBLIC)),
        ("evil.example", 8080, None),
        ("127.0.0.1.evil.example", 8080, None),
        ("localhost.evil.example:8080", 8080, None),
        ("x.edit.amelia.localhost", 8080, None),
        ("edit.am_elia.localhost", 8080, None),
        ("edit..localhost", 8080, None),
        ("127.0.0.1:8080@evil.example", 8080, None),
        ("", 8080, None),
    ],
)
def test_a_request_comes_to_the_destination_that_its_host_names(
    host: str, port: int, destination: Destination | None
) -> None:
    assert HOSTS.destination(host, port) == destination


def test_a_name_made_to_resolve_to_this_machine_does_not_reach_the_page(page: TestClient) -> None:
    answer = page.get("/", headers={"Host": "evil.example:8080"})
    assert answer.status_code == 421
    assert "127.0.0.1" in answer.text


def test_a_site_has_none_of_the_pages_routes(page: TestClient) -> None:
    for path in ("/api/status", "/static/live.js", "/events", "/write", "/healthz"):
        answer = page.get(path, headers={"Host": "edit.amelia.localhost:8080"})
        assert answer.status_code == 404
        assert "shows nothing yet" in answer.text


@pytest.mark.parametrize(("problem", "told"), [("npm ended with an error", "could not be built"), ("", "first change")])
def test_an_edit_site_that_could_not_be_built_says_so_and_not_why(
    world: DashboardTables, problem: str, told: str
) -> None:
    dashboard = world.dashboard(project_settings=lambda: [Project("amelia", "amelia.git", build_problem=problem)])
    with TestClient(create_app(dashboard), base_url="http://127.0.0.1:8080") as page:
        text = page.get("/", headers={"Host": "edit.amelia.localhost:8080"}).text
    assert told in text
    assert "npm" not in text


def test_the_second_port_has_none_of_the_pages_routes(second_port: TestClient) -> None:
    assert "Choose a site" in second_port.get("/api/status").text
    assert second_port.post("/mails", data={"text": "x"}).status_code == 405


GOOD = {"from": "scott@example.com", "subject": "Hello", "text": "Please."}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8081"},
        {"Origin": "https://127.0.0.1:8080"},
        {"Origin": "http://edit.amelia.localhost:8080", "Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_form_of_another_page_sends_nothing(page: TestClient, headers: dict[str, str]) -> None:
    answer = page.post("/mails", data=GOOD, headers=headers)
    assert answer.status_code == 403
    assert "Origin" in answer.text


@pytest.mark.parametrize("headers", [{"Origin": "http://127.0.0.1:8080"}, {"Sec-Fetch-Site": "same-origin"}])
def test_the_pages_own_form_sends(page: TestClient, headers: dict[str, str]) -> None:
    assert page.post("/mails", data=GOOD, headers=headers).status_code == 303


def test_another_sites_script_cannot_hold_the_live_stream(page: TestClient) -> None:
    headers = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    assert page.get("/events", headers=headers).status_code == 403


def test_another_site_may_link_to_the_page_but_not_frame_it(page: TestClient) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert page.get("/", headers=link).status_code == 200
    assert page.get("/", headers={**link, "Sec-Fetch-Dest": "iframe"}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/write", "/static/live.js", "/nothing-here", "/api/status"])
def test_every_answer_of_the_page_carries_the_security_headers(page: TestClient, path: str) -> None:
    headers = page.get(path).headers
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert "set-cookie" not in headers
