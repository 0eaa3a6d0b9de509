"""Conversations and the directory on AWS, where several write at once and answers get lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier

import pytest

from tests.aws.emulator import RunningEmulator
from tests.extras import needs_extra

needs_extra("boto3", "aws")

from botocore.stub import ANY, Stubber  # noqa: E402

from tests.aws.faulty_proxy import CONFLICT, DROP_RESPONSE, THROTTLED, faulty_proxy  # noqa: E402
from tests.aws.mail_tables import MailTables, clients_of  # noqa: E402
from webordinary.adapters.aws import names  # noqa: E402
from webordinary.adapters.aws.dynamo import (  # noqa: E402
    Dynamo,
    to_item,
)
from webordinary.adapters.aws.mail.directory import MOST_PAGES, AwsDirectory  # noqa: E402
from webordinary.model.errors import Permanent  # noqa: E402
from webordinary.model.names import ProjectUser, thread_id_of  # noqa: E402
from webordinary.model.projects import Project, Sender, Thread  # noqa: E402

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SCOTT = ProjectUser("amelia", "scott")


@pytest.fixture
def world(ministack: RunningEmulator) -> MailTables:
    return MailTables(ministack.endpoint)


def test_of_many_who_begin_a_thread_at_once_one_did_and_all_know_it(world: MailTables) -> None:
    together = Barrier(6)

    def begin(number: int) -> Thread:
        together.wait()
        mine = Thread("t1", ProjectUser("amelia", f"user{number}"), f"subject {number}")
        return world.threads().record(mine, f"<{number}@x>", NOON)

    with ThreadPoolExecutor(6) as pool:
        stored = set(pool.map(begin, range(6)))
    assert len(stored) == 1
    assert all(world.threads().find((f"<{number}@x>",)) in stored for number in range(6))


def test_a_message_id_expires_with_its_mail_and_the_thread_stays(world: MailTables) -> None:
    world.threads().record(Thread("t1", SCOTT, "Title"), "<1@x>", NOON, "mail-1")
    world.threads().add_message("t1", "<2@x>", "mail-1")
    table, now = names.THREADS + world.suffix, datetime.now(UTC).timestamp()
    for message_id in ("<1@x>", "<2@x>"):
        item = world.dynamo.get("looking", (table, {"id": f"message#{message_id}"}))
        assert item
        assert 29 < (item["expiresAt"] - now) / 86_400 <= 30
    thread = world.dynamo.get("looking", (table, {"id": "thread#t1"}))
    assert thread
    assert "expiresAt" not in thread


def test_a_thread_survives_lost_answers_and_conflicts(world: MailTables, ministack: RunningEmulator) -> None:
    with faulty_proxy(ministack.endpoint) as proxy:
        threads = world.through(proxy.endpoint).threads()
        thread = Thread("t1", SCOTT, "Größe", "session-1")
        for fault in (DROP_RESPONSE, CONFLICT, THROTTLED):
            proxy.inject(fault, "dynamodb:TransactWriteItems")
        assert threads.record(thread, "<1@x>", NOON) == thread
        proxy.inject(DROP_RESPONSE, "dynamodb:TransactWriteItems")
        threads.add_message("t1", "<2@x>")
        proxy.inject(DROP_RESPONSE, "dynamodb:UpdateItem")
        threads.save_session("t1", "session-2")
        proxy.inject(DROP_RESPONSE, "dynamodb:BatchGetItem")
        found = threads.find(("<2@x>",))
    assert found == Thread("t1", SCOTT, "Größe", "session-2")


def test_a_thread_that_goes_on_costs_two_calls(world: MailTables, ministack: RunningEmulator) -> None:
    root = "<root@example.com>"
    thread = Thread(thread_id_of(root), SCOTT, "Title")
    world.threads().record(thread, root, NOON)
    world.threads().save_session(thread.thread_id, "session-7")
    with faulty_proxy(ministack.endpoint) as proxy:
        threads = world.through(proxy.endpoint).threads()
        found = threads.find(("<ours@localhost>", root))
        assert found
        assert threads.record(found, "<next@example.com>", NOON) == found
        assert proxy.calls == {"dynamodb:BatchGetItem": 1, "dynamodb:TransactWriteItems": 1}
    assert world.threads().find(("<next@example.com>",)) == found


def test_a_projects_settings_are_nobodys_entitlement(world: MailTables) -> None:
    directory = world.directory()
    directory.add_project(Project("amelia", "/a", daily_cap_usd=1.5, paused=True), NOON)
    assert directory.entries("project#amelia") == ()
    assert directory.project("amelia") == Project("amelia", "/a", daily_cap_usd=1.5, paused=True)
    with pytest.raises(Permanent, match="no mail address"):
        directory.add_sender(Sender("project#amelia", SCOTT), NOON)
    directory.add_sender(Sender("Jörg@Bücher.example", SCOTT), NOON)
    assert directory.entries("jörg@bücher.example") == (Sender("jörg@bücher.example", SCOTT),)
    assert directory.senders() == (Sender("jörg@bücher.example", SCOTT),)


def test_a_sender_of_several_projects_has_them_by_name(world: MailTables) -> None:
    directory = world.directory()
    for name in ("museum", "amelia", "bakery"):
        directory.add_project(Project(name, f"/{name}"), NOON)
        directory.add_sender(Sender("ann@example.com", ProjectUser(name, "ann")), NOON)
    assert [entry.key.project_id for entry in directory.entries("ann@example.com")] == ["amelia", "bakery", "museum"]


def test_a_list_goes_on_over_pages_and_ends(ministack: RunningEmulator) -> None:
    client = clients_of(ministack.endpoint).dynamodb
    directory = AwsDirectory(client, Dynamo(client))

    def page(name: str) -> dict[str, object]:
        settings = {"project_id": name, "repo": "/x"}
        item = {"email": f"project#{name}", "projectId": "-", "settings": settings}
        return {"Items": [to_item(item)], "LastEvaluatedKey": to_item({"email": name, "projectId": "-"})}

    with Stubber(client) as stub:
        stub.add_response("scan", page("bakery"))
        last = page("amelia")
        del last["LastEvaluatedKey"]
        asked = {"ExclusiveStartKey": to_item({"email": "bakery", "projectId": "-"})}
        common = ("TableName", "FilterExpression", "ConsistentRead", "ExpressionAttributeNames")
        asked |= dict.fromkeys((*common, "ExpressionAttributeValues"), ANY)  # type: ignore[arg-type]
        stub.add_response("scan", last, asked)
        assert [project.project_id for project in directory.projects()] == ["amelia", "bakery"]
        for _ in range(MOST_PAGES):
            stub.add_response("scan", page("endless"))
        with pytest.raises(Permanent, match="not listed as a whole"):
            directory.projects()
