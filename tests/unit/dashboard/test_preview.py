"""Customers' sites, as a plain web server would show them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Semaphore

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from tests.unit.dashboard.tables import PIXEL, DashboardTables
from webordinary.entrypoints.dashboard.ports import READERS
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.jobs.site_files import Stage

EDIT = {"Host": "edit.amelia.localhost:8080"}


def release(world: DashboardTables, name: str = "c0ffee", title: str = "Pottery", stage: Stage = Stage.EDIT) -> Path:
    folder = world.folder / "releases" / name
    (folder / "photos").mkdir(parents=True)
    (folder / "index.html").write_text(f"<h1>{title}</h1>", encoding="utf-8")
    (folder / "about.html").write_text("<h1>About é</h1>", encoding="utf-8")
    (folder / "style.css").write_text("h1 { color: teal }", encoding="utf-8")
    (folder / "photos" / "vase.png").write_bytes(PIXEL)
    (folder / "photos" / "index.html").write_text("<h1>Photos</h1>", encoding="utf-8")
    world.releases["amelia", stage] = folder
    return folder


@pytest.fixture
def site(world: DashboardTables, page: TestClient) -> TestClient:
    release(world)
    return page


def get(site: TestClient, path: str, **headers: str) -> Response:
    return site.get(path, headers={**EDIT, **headers})


@pytest.mark.parametrize(
    ("path", "media_type", "text"),
    [
        ("/", "text/html; charset=utf-8", "Pottery"),
        ("/index.html", "text/html; charset=utf-8", "Pottery"),
        ("/about.html", "text/html; charset=utf-8", "About é"),
        ("/about", "text/html; charset=utf-8", "About é"),
        ("/style.css", "text/css; charset=utf-8", "teal"),
        ("/photos/", "text/html; charset=utf-8", "Photos"),
    ],
)
def test_a_file_is_found_by_its_address(site: TestClient, path: str, media_type: str, text: str) -> None:
    answer = get(site, path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    assert text in answer.text
    assert answer.headers["cache-control"] == "no-cache"


def test_a_picture_is_a_picture(site: TestClient) -> None:
    answer = get(site, "/photos/vase.png")
    assert (answer.headers["content-type"], answer.content) == ("image/png", PIXEL)


@pytest.mark.parametrize(("name", "media_type"), [("old.html", "text/html"), ("old.css", "text/css")])
def test_a_page_that_is_no_utf_8_says_itself_what_it_is(
    world: DashboardTables, page: TestClient, name: str, media_type: str
) -> None:
    folder = release(world)
    for text in ("<meta charset=iso-8859-1>Über uns", "<meta charset=iso-8859-1>Café"):  # also at the very end
        (folder / name).write_bytes(text.encode("latin-1"))
        assert get(page, f"/{name}").headers["content-type"] == media_type


def test_the_page_lends_a_site_none_of_its_rules(site: TestClient) -> None:
    assert "content-security-policy" not in get(site, "/").headers


def test_a_folder_without_its_slash_is_led_there(site: TestClient) -> None:
    for path in ("/photos", "http://127.0.0.1:8080//photos"):
        answer = get(site, path)
        assert (answer.status_code, answer.headers["location"]) == (308, "/photos/")


def test_head_tells_the_size_and_sends_nothing(site: TestClient) -> None:
    answer = site.head("/photos/vase.png", headers=EDIT)
    assert (answer.headers["content-length"], answer.content) == (str(len(PIXEL)), b"")


def test_a_site_is_only_read(site: TestClient) -> None:
    assert site.post("/", headers=EDIT).status_code == 405


def test_an_unchanged_file_is_not_sent_again(site: TestClient) -> None:
    first = get(site, "/style.css")
    again = site.get("/style.css", headers={**EDIT, "If-None-Match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    since = site.get("/style.css", headers={**EDIT, "If-Modified-Since": first.headers["last-modified"]})
    assert since.status_code == 304


def test_slow_readers_of_the_console_hold_no_visitor_of_a_site_up(world: DashboardTables) -> None:
    release(world)
    begun, shown = Semaphore(0), Event()

    def slow(_: str) -> bytes | None:
        begun.release()
        shown.wait(60)
        return None

    with (
        TestClient(create_app(world.dashboard(mail_of=slow)), base_url="http://127.0.0.1:8080") as page,
        ThreadPoolExecutor(READERS) as threads,
    ):
        email_id = world.mail("Hello")
        asked = [threads.submit(page.get, f"/mails/{email_id}/raw") for _ in range(READERS)]
        for _ in asked:
            assert begun.acquire(timeout=60)
        try:
            assert "Pottery" in get(page, "/").text
        finally:
            shown.set()


def test_a_new_release_is_seen_at_once(world: DashboardTables, site: TestClient) -> None:
    tag = get(site, "/").headers["etag"]
    release(world, "decade", title="Spring Sale")
    answer = site.get("/", headers={**EDIT, "If-None-Match": tag})
    assert answer.status_code == 200
    assert "Spring Sale" in answer.text


def test_a_missing_page_says_so(site: TestClient) -> None:
    answer = get(site, "/nothing")
    assert answer.status_code == 404
    assert "no such page" in answer.text


def test_a_missing_page_shows_the_sites_own_words(world: DashboardTables, site: TestClient) -> None:
    (world.releases["amelia", Stage.EDIT] / "404.html").write_text("Lost your way?", encoding="utf-8")
    answer = get(site, "/nothing")
    assert (answer.status_code, answer.text) == (404, "Lost your way?")


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/photos/%2e%2e/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/%2fetc/passwd",
        "/.git/config",
        "/leak.txt",
        "/leaks/secret.txt",
        "/loop",
        "/index.html%00.png",
        "/" + "x" * 5000,
    ],
)
def test_nothing_outside_of_the_release_is_shown(world: DashboardTables, site: TestClient, path: str) -> None:
    root = world.releases["amelia", Stage.EDIT]
    (root.parent / "secret.txt").write_text("secret", encoding="utf-8")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("secret", encoding="utf-8")
    (root / "leak.txt").symlink_to(root.parent / "secret.txt")
    (root / "leaks").symlink_to(root.parent)
    (root / "loop").symlink_to(root / "loop")
    answer = get(site, path)
    assert answer.status_code == 404
    assert "secret" not in answer.text


def test_a_link_within_the_release_is_followed(world: DashboardTables, site: TestClient) -> None:
    root = world.releases["amelia", Stage.EDIT]
    (root / "hello.html").symlink_to("about.html")
    assert "About" in get(site, "/hello").text


def test_a_part_of_a_file_can_be_asked_for(site: TestClient) -> None:
    answer = get(site, "/style.css", Range="bytes=0-1")
    assert (answer.status_code, answer.text) == (206, "h1")


def test_the_public_site_is_another_release(world: DashboardTables, site: TestClient) -> None:
    host = {"Host": "amelia.localhost:8080"}
    assert site.get("/", headers=host).status_code == 404
    release(world, "decade", "Public", Stage.PUBLIC)
    assert "Public" in site.get("/", headers=host).text


def test_an_unknown_name_is_told_what_there_is_instead(world: DashboardTables, site: TestClient) -> None:
    answer = site.get("/about/", headers={"Host": "nosuch.localhost:8080"})
    assert answer.status_code == 404
    assert "There is no site nosuch here" in answer.text
    assert 'href="http://edit.amelia.localhost:8080/"' in answer.text
    assert 'href="http://amelia.localhost:8080/"' not in answer.text, "it shows nothing yet"
    assert 'href="http://127.0.0.1:8080/"' in answer.text
    not_public = site.get("/", headers={"Host": "amelia.localhost:8080"}).text
    assert "replying <b>publish</b>" in not_public


def test_visitors_of_a_domain_are_not_told_which_sites_there_are(world: DashboardTables) -> None:
    release(world)
    with TestClient(create_app(world.dashboard(domain="example.com")), base_url="http://127.0.0.1:8080") as page:
        answers = [page.get("/", headers={"Host": f"{name}.example.com"}) for name in ("nosuch", "amelia")]
    assert {answer.status_code for answer in answers} == {404}
    assert answers[0].text == answers[1].text, "a site that is not public yet is nobody's business either"
    assert "amelia" not in answers[0].text


def test_the_second_port_lets_the_visitor_choose_and_remembers(world: DashboardTables, second_port: TestClient) -> None:
    release(world)
    assert 'href="/_sites/edit/amelia"' in second_port.get("/").text
    chosen = second_port.get("/_sites/edit/amelia")
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/")
    assert "Pottery" in second_port.get("/").text
    assert second_port.get("/style.css").headers["content-type"].startswith("text/css")
    assert "Choose a site" in second_port.get("/_sites").text


@pytest.mark.parametrize(
    ("chosen", "location"),
    [("/shop/index.html", "/shop/index.html"), ("/shop/", "/shop/"), ("//evil.example/", "/evil.example/")],
)
def test_a_page_of_a_site_is_reached_by_choosing_it(second_port: TestClient, chosen: str, location: str) -> None:
    assert second_port.get(f"/_sites/edit/amelia{chosen}").headers["location"] == location


def test_no_site_gets_a_service_worker_on_the_port_that_sites_share(
    world: DashboardTables, second_port: TestClient
) -> None:
    folder = release(world)
    (folder / "sw.js").write_text("self.onfetch = e => e.respondWith(new Response('mine'))", encoding="utf-8")
    second_port.get("/_sites/edit/amelia")
    assert second_port.get("/sw.js").status_code == 200
    assert second_port.get("/sw.js", headers={"Service-Worker": "script"}).status_code == 403
    own = second_port.get("/sw.js", headers={**EDIT, "Service-Worker": "script"})
    assert own.status_code == 200, "under its own name a site may have one"


def test_choosing_a_site_clears_what_the_last_one_left_in_the_browser(second_port: TestClient) -> None:
    assert second_port.get("/_sites/edit/amelia").headers["clear-site-data"] == '"cache", "storage"'


@pytest.mark.parametrize("path", ["/", "/style.css", "/missing", "/photos"])
def test_a_site_is_shown_as_the_types_it_says_and_tells_others_only_its_origin(site: TestClient, path: str) -> None:
    headers = get(site, path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "strict-origin-when-cross-origin"


def test_a_forged_cookie_chooses_nothing(world: DashboardTables, second_port: TestClient) -> None:
    release(world)
    second_port.cookies.set("site", "edit.../../etc")
    assert "Choose a site" in second_port.get("/").text


CONVERSATION = Stage.of_thread("0123456789abcdef")


def test_the_preview_of_a_conversation_has_a_host_of_its_own(world: DashboardTables, site: TestClient) -> None:
    host = {"Host": f"{CONVERSATION}.edit.amelia.localhost:8080"}
    moved = site.get("/about/", headers=host, follow_redirects=False)
    assert moved.headers["location"] == "//edit.amelia.localhost:8080/about/", "the edit site shows the same"
    release(world, "decade", "Alone", CONVERSATION)
    shown = site.get("/", headers=host)
    assert "Alone" in shown.text
    assert shown.headers["x-robots-tag"] == "noindex, nofollow"
    assert "Alone" not in get(site, "/").text
