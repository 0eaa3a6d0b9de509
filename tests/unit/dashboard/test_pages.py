"""The pages as a browser gets them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from starlette.testclient import TestClient

from tests.unit.dashboard.conftest import PAGE
from tests.unit.dashboard.tables import AMELIA_SCOTT, PIXEL, DashboardTables, lively
from webordinary.adapters.sqlite.dead_letters import SqliteDeadLetters
from webordinary.adapters.sqlite.jobs import SqliteInterruptions
from webordinary.entrypoints.dashboard.pages import PAGE_SIZE
from webordinary.entrypoints.dashboard.ports import _card
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import job_id_of


def test_an_empty_home_page_offers_the_examples(page: TestClient) -> None:
    text = page.get("/").text
    assert "Be the first customer" in text
    for number in (1, 2, 3):
        assert f'href="/write?example={number}"' in text


def test_the_home_page_shows_who_works_on_what(world: DashboardTables, page: TestClient) -> None:
    lively(world)
    text = page.get("/").text
    assert "claimed by worker 2" in text
    assert "works on" in text
    assert "1 waiting (900 ms), 1 running" in text
    assert 'href="http://edit.amelia.localhost:8080/"' in text
    assert "http://127.0.0.1:8081/_sites/edit/amelia" in text


def test_the_fragment_is_the_changing_part_of_the_page(world: DashboardTables, page: TestClient) -> None:
    lively(world)
    fragment = page.get("/fragments/home").text
    assert "<html" not in fragment
    assert fragment in page.get("/").text


def test_a_dead_letter_raises_a_red_banner(world: DashboardTables, page: TestClient) -> None:
    email_id = world.mail("Broken")
    SqliteDeadLetters(world.database).add(email_id, None, "three starts", world.now)
    text = page.get("/").text
    assert 'role="alert"' in text
    assert "1 mail was given up: three starts" in text
    assert f'href="/mails/{email_id}"' in text
    assert "<code>webordinary dlq redrive 1</code>" in text
    assert f"<code>webordinary dlq redrive {email_id[:12]}</code>" in page.get(f"/mails/{email_id}").text


def test_work_that_nobody_owns_raises_a_red_banner_after_five_minutes(world: DashboardTables, page: TestClient) -> None:
    world.job(world.mail("Waiting"), "queued", queued_at=world.at(0))
    assert 'role="alert"' not in page.get("/").text
    world.now += timedelta(seconds=300)
    assert 'role="alert"' not in page.get("/").text
    world.now += timedelta(seconds=1)
    text = page.get("/").text
    assert "No worker owns the work of amelia#scott" in text
    assert "webordinary worker" in text


def test_work_behind_a_live_claim_raises_no_banner(world: DashboardTables, page: TestClient) -> None:
    world.job(world.mail("Waiting"), "queued", queued_at=world.at(-600))
    world.claim(AMELIA_SCOTT, world.worker("worker 1"), lease=30)
    assert 'role="alert"' not in page.get("/").text
    world.now += timedelta(seconds=330)
    assert 'role="alert"' not in page.get("/").text, "its owner is gone for five minutes only now"
    world.now += timedelta(seconds=1)
    assert 'role="alert"' in page.get("/").text


def test_work_begun_by_a_worker_that_is_gone_raises_a_banner_too(world: DashboardTables, page: TestClient) -> None:
    worker = world.worker("worker 1")
    world.job(world.mail("Begun"), "running", worker=worker, queued_at=world.at(-90), started_at=world.at(-80))
    world.claim(AMELIA_SCOTT, worker, lease=30)
    world.now += timedelta(seconds=331)
    assert "No worker owns the work of amelia#scott" in page.get("/").text


def test_old_mails_are_reached_page_by_page(world: DashboardTables, page: TestClient) -> None:
    ids = [world.mail(f"Mail {n}", received=-1000 + n) for n in range(PAGE_SIZE + 3)]
    first = page.get("/").text
    assert ids[-1] in first
    assert f'href="/?before={ids[3]}"' in first
    second = page.get(f"/?before={ids[3]}").text
    assert all(email_id in second for email_id in ids[:3])
    assert ids[4] not in second


def test_a_mail_is_printed_once_for_every_list_and_anew_when_it_changed(
    world: DashboardTables, page: TestClient
) -> None:
    email_id = world.mail("Brighter <pots>")
    assert "Brighter &lt;pots&gt;" in page.get("/").text
    printed = _card.cache_info().misses
    assert "Brighter &lt;pots&gt;" in page.get("/fragments/home").text
    assert _card.cache_info().misses == printed
    world.put("dead_letters", email_id=email_id, reason="broken", died_at=world.at(0))
    assert "given up" in page.get("/fragments/home").text


def test_the_status_is_the_same_as_json(world: DashboardTables, page: TestClient) -> None:
    lively(world)
    status = page.get("/api/status").json()
    assert [line["subject"] for line in status["in_flight"]] == [
        "And one more thing about the footer",
        "Photos of the new glaze",
    ]
    assert [worker["busy"] for worker in status["workers"]] == [False, True]
    assert status["in_flight"][1]["steps"][2] == {
        "name": "claimed",
        "label": "claimed by worker 2",
        "progress": "done",
        "took": "200 ms",
    }


def test_health_says_that_the_system_can_be_seen(page: TestClient) -> None:
    assert page.get("/healthz").json() == {"ok": True, "seq": 0}


def test_a_mails_page_tells_its_whole_story(world: DashboardTables, page: TestClient) -> None:
    text = page.get(f"/mails/{world.published('New title', worker=world.worker('worker 2'))}").text
    assert "answered in 800 ms" in text
    assert "Started by worker 2" in text
    assert "Spring &lt;Sale&gt;" in text
    assert "<Sale>" not in text
    assert '<a href="http://edit.amelia.localhost:8080/" target="_blank"' in text
    assert "text=undo" in text
    assert "text=publish" in text
    assert "The owner makes it public by replying <b>publish</b>" in text
    assert text.index("Received and safely stored") < text.index("Reply sent"), "oldest first, as it says"


def test_a_mails_page_calls_workers_by_their_names(world: DashboardTables, page: TestClient) -> None:
    lost, next_one = world.worker("worker 1", ended=True), world.worker("worker 2")
    email_id = world.mail("New title")
    world.event("ClaimTakenOver", email_id, -3, next_one, previous=lost)
    text = page.get(f"/mails/{email_id}").text
    assert "worker 2 took amelia#scott over from worker 1, which is lost" in text
    assert "container-" not in text


def test_where_a_mail_is_written_it_is_said_how_a_change_becomes_public(page: TestClient) -> None:
    assert "Reply <b>publish</b> to its answer, and it is public" in page.get("/write").text
    assert "not public yet: reply <b>publish</b>" in page.get("/").text


def test_a_mails_page_leads_to_the_changed_page_under_both_addresses(world: DashboardTables, page: TestClient) -> None:
    email_id = world.published("New title")
    text = page.get(f"/mails/{email_id}").text
    assert "See it on the edit site" in text
    with world.database.write() as conn:
        conn.execute("UPDATE jobs SET result = replace(result, ':8080/', ':8080/about/')")
    text = page.get(f"/mails/{email_id}").text
    assert 'id="site" href="http://edit.amelia.localhost:8080/about/"' in text
    assert 'id="site-by-port" href="http://127.0.0.1:8081/_sites/edit/amelia/about/"' in text
    with world.database.write() as conn:
        conn.execute("UPDATE jobs SET command = 'publish', result = replace(result, '//edit.', '//')")
    text = page.get(f"/mails/{email_id}").text
    assert "See it on the public site" in text
    assert 'id="publish"' not in text
    assert "/_sites/public/amelia/about/" in text


def test_the_page_of_an_interrupted_mail_names_the_thread_that_it_made_way_for(world: DashboardTables) -> None:
    audit = SqliteInterruptions(world.database)
    email_id, quiet = world.mail("Interrupted"), world.mail("Not interrupted")
    world.job(email_id, "queued", queued_at=world.at(0), interruptions=1)
    world.job(quiet, "queued", queued_at=world.at(0))
    job = NewJob(job_id_of(email_id), AMELIA_SCOTT, "0" * 16, email_id, Command.EDIT).recorded(1, world.now, ready=True)
    audit.record(job._replace(worker="container-7", interruptions=1), "another thread", world.now, "thread-b")
    with TestClient(create_app(world.dashboard(interruptions_of=partial(audit.listing, 20))), base_url=PAGE) as page:
        text = page.get(f"/mails/{email_id}").text
        assert "Interruptions" not in page.get(f"/mails/{quiet}").text
    for said in ("Interruptions", "another thread", "thread thread-b", "container-7"):
        assert said in text


def test_what_a_customer_writes_is_never_html(world: DashboardTables, page: TestClient) -> None:
    attack = "<script>alert(1)</script>"
    email_id = world.mail(attack, attack)
    world.attach(email_id, 0, name=attack, reason=attack)
    world.event("MailRefused", email_id, 0, reason=attack)
    for path in ("/", f"/mails/{email_id}", f"/write?reply_to={email_id}", f"/write?text={attack}"):
        assert "<script>alert" not in page.get(path).text
    raw = page.get(f"/mails/{email_id}/raw")
    assert raw.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_result_with_a_strange_address_makes_no_link(world: DashboardTables, page: TestClient) -> None:
    email_id = world.published("New title")
    with world.database.write() as conn:
        conn.execute("UPDATE jobs SET result = replace(result, 'http://edit', 'javascript:http://edit')")
    assert 'href="javascript' not in page.get(f"/mails/{email_id}").text


def test_a_mail_that_could_not_be_read_shows_its_bytes(world: DashboardTables, page: TestClient) -> None:
    email_id = world.mail("Odd", "Some odd words", parsed=False)
    text = page.get(f"/mails/{email_id}").text
    assert "(not read yet)" in text
    assert "Some odd words" in text


def test_a_picture_is_shown_and_nothing_else_is(world: DashboardTables, page: TestClient) -> None:
    email_id = world.mail("Photo")
    stored = {"kind": "image", "size": len(PIXEL), "digest": "d" * 64}
    world.attach(email_id, 0, name="vase.png", media_type="image/png", **stored)
    world.attach(email_id, 1, name="x.svg", media_type="image/svg+xml", **stored)
    picture = page.get(f"/mails/{email_id}/attachments/0")
    assert (picture.headers["content-type"], picture.content) == ("image/png", PIXEL)
    assert page.get(f"/mails/{email_id}/attachments/1").status_code == 404
    assert page.get(f"/mails/{email_id}/attachments/9").status_code == 404


def test_a_mail_that_is_not_there_yet_is_waited_for(page: TestClient) -> None:
    answer = page.get(f"/mails/{'a' * 64}")
    assert answer.status_code == 404
    assert "not here yet" in answer.text
    assert f'data-live="/mails/{"a" * 64}?fragment=1"' in answer.text


def test_an_address_that_is_no_page_says_so(page: TestClient) -> None:
    assert page.get("/mails/nonsense").status_code == 404
    assert "There is no such mail." in page.get("/mails/nonsense").text
    assert page.get("/nothing").status_code == 404
    assert page.put("/mails", headers={"Origin": "http://127.0.0.1:8080"}).status_code == 405
