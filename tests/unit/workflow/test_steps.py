"""Each step of the workflow by itself, over a database file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest
from tests.integration.house import AMELIA_SCOTT, SCOTT, WORKER, House, open_house

from webordinary.compose.steps import answering_of, steps_of
from webordinary.mail.ports import EarlierMailFirst
from webordinary.model.claims import ClaimRequest, StartedJob
from webordinary.model.errors import Permanent
from webordinary.model.jobs import JobOutcome, JobResult, JobState, Settlement
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import Project, Sender, SenderRole
from webordinary.workflow.definition import REPEATABLE, STEPS, Step


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with open_house(tmp_path / "data") as house:
        yield house


@pytest.fixture
def steps(house: House) -> Mapping[str, Step]:
    return steps_of(house.services, answering_of(house.services))


def identified(
    house: House, steps: Mapping[str, Step], text: str = "Change the title to Spring Sale"
) -> dict[str, str]:
    """The payload of a mail after IdentifyProjectUser."""
    email_id = house.accept(text)
    steps["ParseEmail"]({"emailId": email_id})
    job = steps["IdentifyProjectUser"]({"emailId": email_id, "retries": 0})
    return {"emailId": email_id, **job}


def test_every_step_of_the_file_has_a_function(steps: Mapping[str, Step]) -> None:
    assert tuple(steps) == STEPS
    assert set(STEPS) > REPEATABLE


BOB = "bob@example.com"


@pytest.mark.parametrize(("sender", "verdict"), [(SCOTT, "admitted"), ("stranger@example.com", "refused")])
def test_authenticate_sender_judges_by_the_directory(
    house: House, steps: Mapping[str, Step], sender: str, verdict: str
) -> None:
    email_id = house.accept("Change the title", sender=sender)
    assert steps["AuthenticateSender"]({"emailId": email_id}) == {"verdict": verdict}


def test_parse_email_keeps_the_first_reading(house: House, steps: Mapping[str, Step]) -> None:
    email_id = house.accept("Change the title to Spring Sale")
    assert steps["ParseEmail"]({"emailId": email_id}) == {"attachments": []}
    first = house.services.mailroom.read(email_id)
    steps["ParseEmail"]({"emailId": email_id})
    assert first.is_parsed
    assert house.services.mailroom.read(email_id) == first


def test_identify_records_one_job_however_often_it_is_called(house: House, steps: Mapping[str, Step]) -> None:
    payload = identified(house, steps)
    again = steps["IdentifyProjectUser"]({"emailId": payload["emailId"], "retries": 0})
    assert {"emailId": payload["emailId"], **again} == payload
    [job] = house.services.jobs.open_jobs(AMELIA_SCOTT)
    assert (job.job_id, job.state) == (job_id_of(payload["emailId"]), JobState.QUEUED)


def test_identify_waits_for_an_earlier_mail_of_the_same_sender(house: House, steps: Mapping[str, Step]) -> None:
    house.accept("Change the title to Spring Sale")
    later = house.accept("No, to Summer Sale")
    steps["ParseEmail"]({"emailId": later})
    with pytest.raises(EarlierMailFirst):
        steps["IdentifyProjectUser"]({"emailId": later, "retries": 0})


def test_identify_refuses_a_sender_who_was_removed_meanwhile(house: House, steps: Mapping[str, Step]) -> None:
    email_id = house.accept("Change the title to Spring Sale")
    steps["ParseEmail"]({"emailId": email_id})
    house.services.directory.remove_sender(SCOTT, "amelia")
    assert steps["IdentifyProjectUser"]({"emailId": email_id, "retries": 0}) == {"route": "refused"}
    assert not house.services.jobs.open_jobs(AMELIA_SCOTT)


def test_identify_asks_a_sender_of_two_projects_which_one_is_meant(house: House, steps: Mapping[str, Step]) -> None:
    now = house.services.clock.now()
    house.services.directory.add_project(Project("kiln", "kiln.git"), now)
    house.services.directory.add_sender(Sender(SCOTT, ProjectUser("kiln", "scott")), now)
    assert identified(house, steps)["route"] == "ask"


@pytest.mark.parametrize("command", ["status", "stop"])
def test_a_command_that_is_answered_at_once_records_no_job(
    house: House, steps: Mapping[str, Step], command: str
) -> None:
    payload = identified(house, steps, command)
    assert (payload["route"], payload["command"]) == ("command", command)
    assert not house.services.jobs.open_jobs(AMELIA_SCOTT)


@pytest.mark.parametrize(
    ("role", "refused", "taken"),
    [
        (SenderRole.EDITOR, "publish", "undo"),
        (SenderRole.PUBLISHER, "Change the title to Spring Sale", "publish"),
        (SenderRole.PUBLISHER, "remember: British spelling", "publish"),
        (SenderRole.PUBLISHER, "forget: everything", "publish"),
    ],
)
def test_a_mail_that_its_senders_role_does_not_allow_is_answered_and_records_no_job(
    house: House, steps: Mapping[str, Step], role: SenderRole, refused: str, taken: str
) -> None:
    house.services.directory.set_role(SCOTT, "amelia", role)
    payload = identified(house, steps, refused)
    assert payload["route"] == "not-theirs"
    assert not house.services.jobs.open_jobs(AMELIA_SCOTT)
    steps["Reply"]({**payload, "redrive": 0, "sender": {"verdict": "admitted"}, "job": payload})
    [reply] = house.services.outbox.of(payload["emailId"])
    assert b"Nothing was changed" in reply.reply.raw
    assert identified(house, steps, taken)["route"] != "not-theirs"
    assert len(house.services.jobs.open_jobs(AMELIA_SCOTT)) == 1
    assert identified(house, steps, "status")["route"] == "command"


def test_a_standing_wish_is_kept_once_and_listed_by_status(house: House, steps: Mapping[str, Step]) -> None:
    for _ in range(2):
        payload = identified(house, steps, "Hi,\n\nremember: British spelling\n\nThanks, Scott")
        assert (payload["route"], payload["command"]) == ("command", "remember")
        steps["RunCommand"](payload)
        steps["RunCommand"](payload)
    project = house.services.directory.project("amelia")
    assert project
    assert project.wishes == ("British spelling",)
    assert not house.services.jobs.open_jobs(AMELIA_SCOTT)
    steps["RunCommand"](identified(house, steps, "forget: british"))
    project = house.services.directory.project("amelia")
    assert project
    assert project.wishes == ()


def test_stop_ends_the_waiting_jobs_of_its_thread_once(house: House, steps: Mapping[str, Step]) -> None:
    payload = {**identified(house, steps), "command": "stop"}
    assert steps["RunCommand"](payload) == {"stopped": 1}
    assert steps["RunCommand"](payload) == {"stopped": 0}


def test_send_to_container_writes_nothing_for_a_job_that_is_queued(house: House, steps: Mapping[str, Step]) -> None:
    payload = identified(house, steps)
    before = house.services.jobs.get(payload["jobId"])
    assert steps["SendToContainer"](payload) == {}
    assert house.services.jobs.get(payload["jobId"]) == before


def test_a_job_that_is_not_recorded_is_an_error_that_names_it(steps: Mapping[str, Step]) -> None:
    with pytest.raises(Permanent, match="job-unknown"):
        steps["SendToContainer"]({"jobId": "job-unknown"})


def test_ownership_is_looked_up_and_a_claim_is_requested_once(house: House, steps: Mapping[str, Step]) -> None:
    payload = identified(house, steps)
    assert steps["CheckOwnership"](payload) == {"owned": False, "idle": False}
    steps["SendClaimRequest"](payload)
    steps["SendClaimRequest"](payload)
    [request] = house.services.pool.hints.receive(house.services.clock.now(), (), 10)
    assert isinstance(request, ClaimRequest)
    assert request.key == AMELIA_SCOTT


def test_the_running_job_of_another_thread_is_found(house: House, steps: Mapping[str, Step]) -> None:
    first = identified(house, steps)
    started = house.services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, house.services.clock.now())
    assert isinstance(started, StartedJob)
    assert steps["CheckActiveJob"](first) == {"mustInterrupt": False}
    second = identified(house, steps, "Change the footer")
    assert steps["CheckActiveJob"](second) == {"mustInterrupt": True, "jobId": first["jobId"]}


def test_await_result_binds_the_token_to_the_job(house: House, steps: Mapping[str, Step]) -> None:
    payload = identified(house, steps)
    steps["AwaitResult"]({**payload, "taskToken": "token"})
    job = house.services.jobs.get(payload["jobId"])
    assert job
    assert job.task_token == "token"


def test_give_up_ends_the_job_and_keeps_one_dead_letter(house: House, steps: Mapping[str, Step]) -> None:
    payload = identified(house, steps)
    assert steps["GiveUp"](payload) == {"gaveUp": True}
    assert steps["GiveUp"](payload) == {"gaveUp": True}
    assert [letter.email_id for letter in house.services.dead_letters.all(10)] == [payload["emailId"]]
    assert not house.services.jobs.open_jobs(AMELIA_SCOTT)


def test_one_reply_is_written_however_often_the_step_is_called(house: House, steps: Mapping[str, Step]) -> None:
    payload = identified(house, steps)
    asked = {"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload}
    house.settle()
    assert steps["Reply"](asked) == {"replied": True}
    assert steps["Reply"](asked) == {"replied": True}
    assert len(house.replies(payload["emailId"])) == 1


@pytest.mark.parametrize(("role", "offered"), [(SenderRole.BOTH, True), (SenderRole.EDITOR, False)])
def test_the_reply_offers_a_publication_to_those_who_may_publish(
    house: House, steps: Mapping[str, Step], role: SenderRole, offered: bool
) -> None:
    house.services.directory.set_role(SCOTT, "amelia", role)
    payload = identified(house, steps)
    house.settle(Settlement(JobOutcome.SUCCEEDED, JobResult("The title is new.", "abc", "http://edit.localhost/")))
    steps["Reply"]({"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload})
    [reply] = house.replies(payload["emailId"])
    body = message_from_bytes(reply.reply.raw, policy=default).get_body(("plain",))  # type: ignore[attr-defined]
    assert ("publish" in body.get_content()) is offered
    assert "undo" in body.get_content()


@pytest.mark.parametrize(
    ("asks", "publishes", "told"),
    [
        (SenderRole.EDITOR, SenderRole.PUBLISHER, [SCOTT, BOB]),
        (SenderRole.EDITOR, SenderRole.BOTH, [SCOTT, BOB]),
        (SenderRole.EDITOR, SenderRole.EDITOR, [SCOTT]),
        (SenderRole.BOTH, SenderRole.PUBLISHER, [SCOTT]),
    ],
)
def test_a_change_that_its_sender_may_not_publish_is_shown_once_to_the_person_who_may(
    house: House, steps: Mapping[str, Step], asks: SenderRole, publishes: SenderRole, told: list[str]
) -> None:
    directory, now = house.services.directory, house.services.clock.now()
    directory.set_role(SCOTT, "amelia", asks)
    payload = identified(house, steps)
    directory.add_sender(Sender(BOB, ProjectUser("amelia", "bob")), now)
    directory.set_role(BOB, "amelia", publishes)
    project = directory.project("amelia")
    assert project
    directory.add_project(replace(project, approver=BOB), now)
    house.settle(Settlement(JobOutcome.SUCCEEDED, JobResult("The title is new.", "abc", "http://edit.localhost/")))
    for _ in range(2):
        steps["Reply"]({"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload})
    assert [entry.reply.recipient for entry in house.replies(payload["emailId"])] == told


@pytest.mark.parametrize(
    ("role", "said", "route"),
    [
        (SenderRole.PUBLISHER, "Yes, thank you!", "queue"),
        (SenderRole.PUBLISHER, "Ja, danke", "queue"),
        (SenderRole.PUBLISHER, "Yes, but make it green", "not-theirs"),
        (SenderRole.PUBLISHER, "No", "not-theirs"),
        (SenderRole.BOTH, "Yes", "edit"),
        (SenderRole.EDITOR, "Yes", "edit"),
    ],
)
def test_the_yes_of_a_person_who_only_publishes_publishes(
    house: House, steps: Mapping[str, Step], role: SenderRole, said: str, route: str
) -> None:
    house.services.directory.set_role(SCOTT, "amelia", role)
    assert identified(house, steps, said)["route"] == route


def test_a_refused_mail_gets_no_reply(house: House, steps: Mapping[str, Step]) -> None:
    email_id = house.accept("Change the title", sender="stranger@example.com")
    assert steps["Reply"]({"emailId": email_id}) == {"replied": False}
    assert house.replies(email_id) == []
