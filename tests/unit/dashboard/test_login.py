"""The console on the net: its login, its roles, and the names that it answers to."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from threading import Barrier

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.unit.dashboard.tables import NOON, DashboardTables
from webordinary.adapters.sqlite.access import SqliteActionLog, SqliteConsoleSecrets, SqliteConsoleUsers
from webordinary.entrypoints.dashboard.web import SiteNames, create_app
from webordinary.jobs.site_files import Stage
from webordinary.model.console import ConsoleUser, Role, SecretKind
from webordinary.model.projects import Project
from webordinary.operations.access import LINK_LASTS, SESSION_LASTS, Access, TooManyTries, hash_password

URL = "https://console.example.com"
PASSWORD = "correct horse battery"
HTML = {"Accept": "text/html"}
FORM = {"Origin": URL}
CADDY = ("127.0.0.1", 40000)


@cache
def hash_of_password() -> str:
    """Hashed once: that it takes long is its purpose."""
    return hash_password(PASSWORD)


@dataclass
class ConsoleWithUsers:
    """A console with its users, on a clock that tests move."""

    world: DashboardTables
    now: datetime = NOON
    seconds: float = 0.0
    settings: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stores = (
            SqliteConsoleUsers(self.world.database),
            SqliteConsoleSecrets(self.world.database),
            SqliteActionLog(self.world.database),
        )
        self.access = Access(*stores, lambda: self.now, lambda: self.seconds, always=True)
        for name, role in (("olga", Role.OPERATOR), ("vera", Role.VIEWER)):
            self.access.users.put(ConsoleUser(name, role, NOON), hash_of_password())

    def visitor(self, base_url: str = URL, **settings: object) -> TestClient:
        dashboard = self.world.dashboard(public_url=URL, domain="sites.example", access=self.access, **settings)
        return TestClient(create_app(dashboard), base_url=base_url, follow_redirects=False, client=CADDY)


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleWithUsers]:
    world = DashboardTables(tmp_path)
    yield ConsoleWithUsers(world)
    world.database.close()


def sign_in(page: TestClient, name: str, password: str = PASSWORD, origin: str = URL) -> int:
    answer = page.post("/login", data={"name": name, "password": password}, headers={"Origin": origin})
    return answer.status_code


def test_a_visitor_is_led_to_the_login_and_then_to_the_page_that_was_asked_for(console: ConsoleWithUsers) -> None:
    with console.visitor() as page:
        led = page.get("/mails/" + "0" * 64, headers=HTML)
        assert (led.status_code, led.headers["location"]) == (303, "/login?next=/mails/" + "0" * 64)
        assert "Sign in" in page.get(led.headers["location"]).text
        answer = page.post(led.headers["location"], data={"name": "Olga", "password": PASSWORD}, headers=FORM)
        assert answer.headers["location"] == "/mails/" + "0" * 64
        assert "Sign out" in page.get("/").text


@pytest.mark.parametrize("elsewhere", ["//evil.example", "/\\evil.example", "https://evil.example", "\t//evil.example"])
def test_the_login_leads_to_no_other_host(console: ConsoleWithUsers, elsewhere: str) -> None:
    with console.visitor() as page:
        fields = {"name": "olga", "password": PASSWORD}
        answer = page.post("/login", params={"next": elsewhere}, data=fields, headers=FORM)
        assert answer.headers["location"] == "/"


def every_route(console: ConsoleWithUsers) -> list[tuple[str, str]]:
    app = create_app(console.world.dashboard(access=console.access))
    routes = [route for route in app.routes if isinstance(route, Route)]
    return [(method, route.path) for route in routes for method in sorted(route.methods or ())]


def test_no_route_but_the_few_open_ones_answers_without_a_login(console: ConsoleWithUsers) -> None:
    with console.visitor() as page:
        open_ones = set()
        for method, path in every_route(console):
            filled = path.replace("{email_id}", "0" * 64).replace("{position:int}", "0").replace("{secret}", "x")
            if page.request(method, filled, headers=FORM).status_code not in (401, 403):
                open_ones.add(path)
    sign_in_pages = {"/login", "/login/oidc", "/login/oidc/callback", "/link/{secret}", "/wrote/{token}"}
    assert open_ones == sign_in_pages | {"/healthz", "/tls/ask", "/hooks/{project_id}"}  # a hook is signed


def test_a_viewer_changes_nothing_on_any_route(console: ConsoleWithUsers) -> None:
    with console.visitor() as page:
        assert sign_in(page, "vera") == 303
        for method, path in every_route(console):
            if method in ("GET", "HEAD") or path in (
                "/login",
                "/logout",
                "/link/{secret}",
                "/wrote/{token}",
                "/hooks/{project_id}",
            ):
                continue
            filled = path.replace("{secret}", "x").replace("{email_id}", "0" * 64)
            assert page.request(method, filled, headers=FORM).status_code == 403, (method, path)
        assert page.get("/").status_code == 200
    assert console.world.sent == []


def test_a_session_is_new_at_each_login_and_ends_when_it_is_ended(console: ConsoleWithUsers) -> None:
    with console.visitor() as page:
        page.cookies.set("__Host-session", "chosen-by-an-attacker", domain="console.example.com")
        assert sign_in(page, "olga") == 303
        first = page.cookies.get("__Host-session", domain="console.example.com")
        assert first != "chosen-by-an-attacker"
        assert page.post("/logout", headers=FORM).status_code == 303
        page.cookies.set("__Host-session", str(first), domain="console.example.com")
        assert page.get("/").status_code == 401, "the ended session is not taken up again"


def test_a_session_cookie_is_for_this_host_https_and_no_script(console: ConsoleWithUsers) -> None:
    with console.visitor() as page:
        cookie = page.post("/login", data={"name": "olga", "password": PASSWORD}, headers=FORM).headers["set-cookie"]
    assert cookie.startswith("__Host-session=")
    assert {"Secure", "HttpOnly", "SameSite=lax", "Path=/"} <= {part.strip() for part in cookie.split(";")}


def test_a_session_expires_and_ends_with_its_user(console: ConsoleWithUsers) -> None:
    with console.visitor() as page:
        sign_in(page, "olga")
        console.now += SESSION_LASTS
        assert page.get("/").status_code == 401
        sign_in(page, "olga")
        assert page.get("/").status_code == 200
        console.access.users.remove("olga")
        assert page.get("/").status_code == 401


def test_passwords_cannot_be_guessed_at_speed(console: ConsoleWithUsers) -> None:
    with console.visitor() as page:
        tries = [sign_in(page, "olga", f"wrong password {number}") for number in range(6)]
        assert tries == [401] * 5 + [429]
        assert sign_in(page, "olga") == 429, "not even the right one, for a while"
        console.seconds += 11
        assert sign_in(page, "olga") == 303


def test_guesses_side_by_side_count_like_guesses_in_turn(console: ConsoleWithUsers) -> None:
    begun = Barrier(20)

    def guess(number: int) -> bool:
        begun.wait(60)
        try:
            return console.access.sign_in("olga", f"wrong password {number}", "192.0.2.1") is None
        except TooManyTries:
            return False

    with ThreadPoolExecutor(20) as threads:
        assert sum(threads.map(guess, range(20))) == 5


def test_a_guesser_does_not_lock_a_user_out_of_where_they_are_signed_in(console: ConsoleWithUsers) -> None:
    assert console.access.sign_in("olga", PASSWORD, "198.51.100.7")
    for _ in range(5):
        assert console.access.sign_in("olga", "wrong password", "192.0.2.1") is None
    with pytest.raises(TooManyTries):
        console.access.sign_in("olga", PASSWORD, "203.0.113.1")
    assert console.access.sign_in("olga", PASSWORD, "198.51.100.7")
    for _ in range(5):
        assert console.access.sign_in("olga", "wrong password", "198.51.100.7") is None
    with pytest.raises(TooManyTries):
        console.access.sign_in("olga", PASSWORD, "198.51.100.7")


def test_a_guesser_elsewhere_does_not_lock_a_user_out_of_this_machine(console: ConsoleWithUsers) -> None:
    for _ in range(5):
        assert console.access.sign_in("olga", "wrong password", "192.0.2.1") is None
    assert console.access.sign_in("olga", PASSWORD, "127.0.0.1")
    for _ in range(5):
        assert console.access.sign_in("olga", "wrong password", "127.0.0.1") is None
    with pytest.raises(TooManyTries):
        console.access.sign_in("olga", PASSWORD, "127.0.0.1")


def test_all_addresses_of_one_ipv6_line_are_one_guesser(console: ConsoleWithUsers) -> None:
    for number in range(5):
        assert console.access.sign_in(f"user{number}", "wrong password", f"2001:db8::{number}") is None
    with pytest.raises(TooManyTries):
        console.access.sign_in("another", "wrong password", "2001:db8::ffff:1")
    assert console.access.sign_in("olga", PASSWORD, "2001:db8:0:1::1")


def test_one_guesser_behind_the_proxy_does_not_lock_out_the_others(console: ConsoleWithUsers) -> None:
    with console.visitor(trusted_proxies=frozenset({"127.0.0.1"})) as page:
        for number in range(6):
            fields = {"name": f"nobody{number}", "password": "x"}
            page.post("/login", data=fields, headers={**FORM, "X-Forwarded-For": "10.9.9.9, 192.0.2.1"})
        blocked = page.post("/login", data=fields, headers={**FORM, "X-Forwarded-For": "forged, 192.0.2.1"})
        assert blocked.status_code == 429
        fields = {"name": "olga", "password": PASSWORD}
        fine = page.post("/login", data=fields, headers={**FORM, "X-Forwarded-For": "192.0.2.1, 198.51.100.7"})
        assert fine.status_code == 303


@pytest.mark.parametrize(
    "origin", ["http://console.example.com", "https://evil.example", "null", "https://console.example.com:8443"]
)
def test_a_form_of_another_origin_signs_nobody_in_and_changes_nothing(console: ConsoleWithUsers, origin: str) -> None:
    with console.visitor() as page:
        assert sign_in(page, "olga", origin=origin) == 403
        assert sign_in(page, "olga") == 303
        assert page.post("/mails", data={"text": "x"}, headers={"Origin": origin}).status_code == 403


def test_an_api_token_needs_no_cookie_and_has_the_rights_of_its_user(console: ConsoleWithUsers) -> None:
    operator, viewer = (console.access.issue_token(name, "script", timedelta(days=1)) for name in ("olga", "vera"))
    with console.visitor() as page:
        assert page.get("/api/status", headers={"Authorization": f"Bearer {viewer}"}).status_code == 200
        fields = {"from": "scott@example.com", "text": "Hello"}
        assert page.post("/mails", data=fields, headers={"Authorization": f"Bearer {viewer}"}).status_code == 403
        assert page.post("/mails", data=fields, headers={"Authorization": f"Bearer {operator}"}).status_code == 303
        assert page.get("/api/status", headers={"Authorization": "Bearer wo_guessed"}).status_code == 401
        console.now += timedelta(days=1)
        assert page.get("/api/status", headers={"Authorization": f"Bearer {operator}"}).status_code == 401


def test_a_session_is_no_api_token_and_an_api_token_is_no_session(console: ConsoleWithUsers) -> None:
    token = console.access.issue_token("olga", "script", timedelta(days=1))
    session = console.access.sign_in("olga", PASSWORD, "here")
    with console.visitor() as page:
        assert page.get("/", headers={"Cookie": f"__Host-session={token}"}).status_code == 401
        assert page.get("/", headers={"Authorization": f"Bearer {session}"}).status_code == 401


def test_every_change_is_written_down_with_its_user(console: ConsoleWithUsers) -> None:
    with console.visitor() as page:
        sign_in(page, "olga")
        page.post("/mails", data={"from": "scott@example.com", "text": "Hello"}, headers=FORM)
    actions = [(action.user, action.action) for action in console.access.log.latest(10)]
    assert actions == [("olga", "POST /mails"), ("olga", "signed in")]


def test_a_one_time_link_sets_a_password_once(console: ConsoleWithUsers) -> None:
    secret = console.access.issue_link("nina", Role.VIEWER)
    with console.visitor() as page:
        welcome = page.get(f"/link/{secret}")
        assert "Welcome, nina" in welcome.text
        assert welcome.headers["referrer-policy"] == "strict-origin", "its style sheet is asked for without the secret"
        short = page.post(f"/link/{secret}", data={"password": "short"}, headers=FORM)
        assert short.status_code == 400
        assert "10 to 200 characters" in short.text
        assert page.post(f"/link/{secret}", data={"password": PASSWORD}, headers=FORM).status_code == 303
        assert page.get("/").status_code == 200
        assert page.post(f"/link/{secret}", data={"password": "another password"}, headers=FORM).status_code == 404
        assert sign_in(page, "nina") == 303


def test_a_one_time_link_expires(console: ConsoleWithUsers) -> None:
    secret = console.access.issue_link("nina", Role.VIEWER)
    console.now += LINK_LASTS
    assert console.access.identify(secret, kind=SecretKind.LINK) is None


def test_only_digests_of_secrets_are_stored(console: ConsoleWithUsers) -> None:
    secrets = [console.access.issue_link("nina", Role.VIEWER), console.access.sign_in("olga", PASSWORD, "here")]
    with console.world.database.read() as conn:
        stored = [
            str(tuple(row))
            for table in ("console_secrets", "console_users")
            for row in conn.execute(f"SELECT * FROM {table}")
        ]
    assert not [secret for secret in [*secrets, PASSWORD] if any(str(secret) in row for row in stored)]


def test_a_trusted_proxy_names_the_user_and_nobody_else_can(console: ConsoleWithUsers) -> None:
    named = {"X-Forwarded-User": "olga"}
    with console.visitor(trusted_proxies=frozenset({"127.0.0.1"}), forward_auth_header="X-Forwarded-User") as page:
        assert page.get("/", headers=named).status_code == 200
        assert page.get("/", headers={"X-Forwarded-User": "stranger"}).status_code == 401
        for both in (("olga", "stranger"), ("stranger", "olga")):
            assert page.get("/", headers=[("X-Forwarded-User", name) for name in both]).status_code == 401
    with console.visitor(trusted_proxies=frozenset({"127.0.0.2"}), forward_auth_header="X-Forwarded-User") as page:
        assert page.get("/", headers=named).status_code == 401
    with console.visitor(trusted_proxies=frozenset({"127.0.0.1"})) as page:
        assert page.get("/", headers=named).status_code == 401


def test_on_the_net_page_and_sites_answer_on_their_own_ports_only(console: ConsoleWithUsers) -> None:
    for url, host, status in (
        ("http://x:8080", "console.example.com", 401),
        ("http://x:8080", "edit.amelia.sites.example", 421),
        ("http://x:8081", "edit.amelia.sites.example", 404),
        ("http://x:8081", "console.example.com", 421),
        ("http://x:8081", "127.0.0.1", 421),
        ("http://x:8080", "evil.example", 421),
    ):
        with console.visitor(base_url=url) as page:
            answer = page.get("/", headers={"Host": host})
            assert answer.status_code == status, (url, host)
            assert "amelia" not in answer.text
            assert "127.0.0.1" not in answer.text


PREVIEW = Stage.of_thread("a" * 16)
OWN = Project("amelia", "amelia.git", domains=("www.amelia-pottery.com",))


def test_a_site_is_shown_under_its_own_domain(console: ConsoleWithUsers, tmp_path: Path) -> None:
    release = tmp_path / "release"
    release.mkdir()
    (release / "index.html").write_text("<h1>Pottery</h1>")
    console.world.releases["amelia", Stage.PUBLIC] = release
    with console.visitor(base_url="http://x:8081", project_settings=lambda: [OWN]) as page:
        assert "Pottery" in page.get("/", headers={"Host": "www.amelia-pottery.com"}).text
        assert page.get("/", headers={"Host": "amelia-pottery.com"}).status_code == 421


def test_a_site_that_was_added_a_moment_ago_gets_its_certificate(
    console: ConsoleWithUsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SiteNames, "UNKNOWN_SECONDS", 0.0)
    known: list[Project] = []
    settings = {"project_settings": lambda: list(known), "trusted_proxies": frozenset({"127.0.0.1"})}
    with console.visitor(base_url="http://127.0.0.1:8080", **settings) as page:
        assert page.get("/tls/ask", params={"domain": "edit.amelia.sites.example"}).status_code == 404
        known.append(OWN)
        for name in ("edit.amelia.sites.example", "www.amelia-pottery.com"):
            assert page.get("/tls/ask", params={"domain": name}).status_code == 200


def test_a_proxy_on_this_machine_is_told_which_names_get_a_certificate(console: ConsoleWithUsers) -> None:
    settings = {"project_settings": lambda: [OWN], "trusted_proxies": frozenset({"127.0.0.1"})}
    with console.visitor(base_url="http://127.0.0.1:8080", **settings) as page:
        names = ("console.example.com", "amelia.sites.example", "edit.amelia.sites.example", "www.amelia-pottery.com")
        assert [page.get("/tls/ask", params={"domain": name}).status_code for name in names] == [200] * 4
        preview = f"{PREVIEW}.edit.amelia.sites.example"
        foreign = ("evil.example", "bob.sites.example", "x.edit.amelia.sites.example", "", "127.0.0.1", preview)
        assert [page.get("/tls/ask", params={"domain": name}).status_code for name in foreign] == [404] * 6
        console.world.releases["amelia", PREVIEW] = Path("shown")
        assert page.get("/tls/ask", params={"domain": preview}).status_code == 200
    stranger = create_app(console.world.dashboard(public_url=URL, access=console.access, **settings))
    with TestClient(stranger, base_url=URL, client=("192.0.2.9", 1)) as page:
        assert page.get("/tls/ask", params={"domain": "console.example.com"}).status_code == 404


def test_a_draft_is_not_for_search_engines_and_may_have_a_password(console: ConsoleWithUsers, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("unfinished")
    for stage in (Stage.EDIT, Stage.PUBLIC, PREVIEW):
        console.world.releases["amelia", stage] = tmp_path
    closed = Project("amelia", "amelia.git", edit_password=hash_of_password())
    edit, public = {"Host": "edit.amelia.sites.example"}, {"Host": "amelia.sites.example"}

    def basic(password: str) -> dict[str, str]:
        return edit | {"Authorization": "Basic " + b64encode(f"anybody:{password}".encode()).decode()}

    with console.visitor(base_url="http://x:8081", project_settings=lambda: [closed]) as page:
        preview = {"Host": f"{PREVIEW}.edit.amelia.sites.example"}
        assert page.get("/", headers=preview).status_code == 401
        right = page.get("/", headers=preview | {"Authorization": basic(PASSWORD)["Authorization"]})
        assert (right.status_code, right.headers["x-robots-tag"]) == (200, "noindex, nofollow")
        asked = page.get("/", headers=edit)
        assert (asked.status_code, "unfinished" in asked.text) == (401, False)
        assert asked.headers["www-authenticate"].startswith("Basic ")
        assert page.get("/", headers=basic("wrong")).status_code == 401
        assert page.get("/", headers=edit | {"Authorization": "Basic ?"}).status_code == 401
        for _ in range(2):
            assert page.get("/", headers=basic(PASSWORD)).status_code == 200
        assert page.get("/", headers=basic(PASSWORD)).headers["x-robots-tag"] == "noindex, nofollow"
        shown = page.get("/", headers=public)
        assert (shown.status_code, "x-robots-tag" in shown.headers) == (200, False)


def test_a_cookie_of_another_site_does_not_hide_the_session(console: ConsoleWithUsers) -> None:
    olga, vera = (console.access.sign_in(name, PASSWORD, "here") for name in ("olga", "vera"))
    planted = f'__Host-session={olga}; x=a __Host-session={vera}; y={{"a":1}}'
    with console.visitor() as page:
        fields = {"from": "scott@example.com", "text": "Hello"}
        assert page.post("/mails", data=fields, headers={**FORM, "Cookie": planted}).status_code == 303


def test_a_new_password_ends_the_sessions_and_links_of_before(console: ConsoleWithUsers) -> None:
    session = console.access.sign_in("olga", PASSWORD, "here") or ""
    first, second = (console.access.issue_link("olga", Role.OPERATOR) for _ in range(2))
    assert console.access.redeem_link(second, "a new password", "here")
    assert console.access.identify(session) is None
    assert console.access.redeem_link(first, "another password", "here") is None


def test_visitors_through_the_proxy_do_not_learn_which_names_are_ours(console: ConsoleWithUsers) -> None:
    settings = {"project_settings": lambda: [OWN], "trusted_proxies": frozenset({"127.0.0.1"})}
    with console.visitor(base_url="http://127.0.0.1:8080", **settings) as page:
        forwarded = {"X-Forwarded-For": "198.51.100.7"}
        asked = page.get("/tls/ask", params={"domain": "amelia.sites.example"}, headers=forwarded)
        assert asked.status_code == 404


def test_the_password_of_a_draft_cannot_be_guessed_at_speed(console: ConsoleWithUsers) -> None:
    closed = Project("amelia", "amelia.git", edit_password=hash_of_password())
    with console.visitor(base_url="http://x:8081", project_settings=lambda: [closed]) as page:
        answers = []
        for number in range(6):
            guess = b64encode(f"x:wrong {number}".encode()).decode()
            headers = {"Host": "edit.amelia.sites.example", "Authorization": f"Basic {guess}"}
            answers.append(page.get("/", headers=headers).status_code)
        assert answers == [401] * 5 + [429]
