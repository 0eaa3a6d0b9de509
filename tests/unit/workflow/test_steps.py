"""Each step of the workflow by itself, over a database file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest
from tests.harness.embedded import AMELIA_SCOTT, SCOTT, WORKER, EmbeddedHarness, open_harness

from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests
from webordinary.compose.steps import answering_of, steps_of
from webordinary.mail.ports import EarlierMailFirst
from webordinary.mail.replies.answers import NOT_PUBLIC_YET
from webordinary.model.claims import ClaimRequest, StartedJob
from webordinary.model.errors import Permanent
from webordinary.model.jobs import (
    NOT_UNDERSTOOD,
    ChangeLine,
    Job,
    JobOutcome,
    JobResult,
    JobState,
    NewJob,
    Requeue,
    RequeueReason,
    Settlement,
)
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import Project, Sender, SenderRole
from webordinary.operations.mails import close_mail
from webordinary.workflow.answering import not_published, unanswered
from webordinary.workflow.definition import REPEATABLE, STEPS, Step
from webordinary.workflow.queueing import Queueing

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data") as harness:
        yield harness


@pytest.fixture
def steps(harness: EmbeddedHarness) -> Mapping[str, Step]:
    return steps_of(harness.services, answering_of(harness.services))


def identified(
    harness: EmbeddedHarness, steps: Mapping[str, Step], text: str = "Change the title to Spring Sale"
) -> dict[str, str]:
    """The payload of a mail after IdentifyProjectUser."""
    email_id = harness.accept(text)
    steps["ParseEmail"]({"emailId": email_id})
    job = steps["IdentifyProjectUser"]({"emailId": email_id, "retries": 0})
    return {"emailId": email_id, **job}


def test_every_step_of_the_file_has_a_function(steps: Mapping[str, Step]) -> None:
    assert tuple(steps) == STEPS
    assert set(STEPS) > REPEATABLE


BOB = "bob@example.com"


@pytest.mark.parametrize(("sender", "verdict"), [(SCOTT, "admitted"), ("stranger@example.com", "refused")])
def test_authenticate_sender_judges_by_the_directory(
    harness: EmbeddedHarness, steps: Mapping[str, Step], sender: str, verdict: str
) -> None:
    email_id = harness.accept("Change the title", sender=sender)
    assert steps["AuthenticateSender"]({"emailId": email_id}) == {"verdict": verdict}


def test_parse_email_keeps_the_first_reading(harness: EmbeddedHarness, steps: Mapping[str, Step]) -> None:
    email_id = harness.accept("Change the title to Spring Sale")
    assert steps["ParseEmail"]({"emailId": email_id}) == {"attachments": []}
    first = harness.services.mail_deps.read(email_id)
    steps["ParseEmail"]({"emailId": email_id})
    assert first.is_parsed
    assert harness.services.mail_deps.read(email_id) == first


def test_identify_records_one_job_however_often_it_is_called(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    payload = identified(harness, steps)
    again = steps["IdentifyProjectUser"]({"emailId": payload["emailId"], "retries": 0})
    assert {"emailId": payload["emailId"], **again} == payload
    [job] = harness.services.jobs.open_jobs(AMELIA_SCOTT)
    assert (job.job_id, job.state) == (job_id_of(payload["emailId"]), JobState.QUEUED)


def test_identify_waits_for_an_earlier_mail_of_the_same_sender(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    harness.accept("Change the title to Spring Sale")
    later = harness.accept("No, to Summer Sale")
    steps["ParseEmail"]({"emailId": later})
    with pytest.raises(EarlierMailFirst):
        steps["IdentifyProjectUser"]({"emailId": later, "retries": 0})


def test_identify_refuses_a_sender_who_was_removed_meanwhile(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    email_id = harness.accept("Change the title to Spring Sale")
    steps["ParseEmail"]({"emailId": email_id})
    harness.services.directory.remove_sender(SCOTT, "amelia")
    assert steps["IdentifyProjectUser"]({"emailId": email_id, "retries": 0}) == {"route": "refused"}
    assert not harness.services.jobs.open_jobs(AMELIA_SCOTT)


def test_identify_asks_a_sender_of_two_projects_which_one_is_meant(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    now = harness.services.clock.now()
    harness.services.directory.add_project(Project("kiln", "kiln.git"), now)
    harness.services.directory.add_sender(Sender(SCOTT, ProjectUser("kiln", "scott")), now)
    assert identified(harness, steps)["route"] == "ask"


@pytest.mark.parametrize("command", ["status", "stop"])
def test_a_command_that_is_answered_at_once_records_no_job(
    harness: EmbeddedHarness, steps: Mapping[str, Step], command: str
) -> None:
    payload = identified(harness, steps, command)
    assert (payload["route"], payload["command"]) == ("command", command)
    assert not harness.services.jobs.open_jobs(AMELIA_SCOTT)


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
    harness: EmbeddedHarness, steps: Mapping[str, Step], role: SenderRole, refused: str, taken: str
) -> None:
    harness.services.directory.set_role(SCOTT, "amelia", role)
    payload = identified(harness, steps, refused)
    assert payload["route"] == "not-theirs"
    assert not harness.services.jobs.open_jobs(AMELIA_SCOTT)
    steps["Reply"]({**payload, "redrive": 0, "sender": {"verdict": "admitted"}, "job": payload})
    [reply] = harness.services.outbox.of(payload["emailId"])
    assert b"Nothing was changed" in reply.reply.raw
    assert identified(harness, steps, taken)["route"] != "not-theirs"
    assert len(harness.services.jobs.open_jobs(AMELIA_SCOTT)) == 1
    assert identified(harness, steps, "status")["route"] == "command"


def test_a_standing_wish_is_kept_once_and_listed_by_status(harness: EmbeddedHarness, steps: Mapping[str, Step]) -> None:
    for _ in range(2):
        payload = identified(harness, steps, "Hi,\n\nremember: British spelling\n\nThanks, Scott")
        assert (payload["route"], payload["command"]) == ("command", "remember")
        steps["RunCommand"](payload)
        steps["RunCommand"](payload)
    project = harness.services.directory.project("amelia")
    assert project
    assert project.wishes == ("British spelling",)
    assert not harness.services.jobs.open_jobs(AMELIA_SCOTT)
    steps["RunCommand"](identified(harness, steps, "forget: british"))
    project = harness.services.directory.project("amelia")
    assert project
    assert project.wishes == ()


def test_stop_ends_the_waiting_jobs_of_its_thread_once(harness: EmbeddedHarness, steps: Mapping[str, Step]) -> None:
    payload = {**identified(harness, steps), "command": "stop"}
    assert steps["RunCommand"](payload) == {"stopped": 1}
    assert steps["RunCommand"](payload) == {"stopped": 0}


def test_send_to_container_writes_nothing_for_a_job_that_is_queued(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    payload = identified(harness, steps)
    before = harness.services.jobs.get(payload["jobId"])
    steps["SendToContainer"](payload)
    assert harness.services.jobs.get(payload["jobId"]) == before


class AskedHints(SqliteClaimRequests):
    """Remembers what was said."""

    def __init__(self) -> None:
        super().__init__(MemoryDatabase())
        self.requests: list[ClaimRequest] = []

    def send(self, request: ClaimRequest, now: object, *, again: bool = False) -> bool:
        self.requests.append(request)
        return True


@pytest.mark.parametrize("put_off", [False, True])
def test_a_claim_is_requested_with_what_was_told_as_json_when_the_job_was_queued(
    harness: EmbeddedHarness, steps: Mapping[str, Step], put_off: bool
) -> None:
    payload, now = identified(harness, steps), harness.services.clock.now()
    pool = harness.services.pool
    if put_off:
        started = pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, now)
        assert isinstance(started, StartedJob)
        held = Requeue(RequeueReason.HELD, now + timedelta(hours=1))
        pool.claims.end_and_take_next(started, held, now, more=False)
    told = json.loads(json.dumps(steps["SendToContainer"](payload)))
    hints = AskedHints()
    services = harness.services
    queueing = Queueing(
        replace(pool, hints=hints), services.interruptions, services.events, services.clock.now, lambda job: None
    )
    job = services.jobs.get(payload["jobId"])
    assert job
    assert bool(job.not_before) == put_off
    queueing.send_claim_request({"jobId": job.job_id, "queued": told})
    queueing.send_claim_request({"jobId": job.job_id})  # an execution that began before it was told
    assert hints.requests == [ClaimRequest.for_job(job)] * 2


def test_a_job_that_is_not_recorded_is_an_error_that_names_it(steps: Mapping[str, Step]) -> None:
    with pytest.raises(Permanent, match="job-unknown"):
        steps["SendToContainer"]({"jobId": "job-unknown"})


def test_ownership_is_looked_up_and_a_claim_is_requested_once(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    payload = identified(harness, steps)
    assert steps["CheckOwnership"](payload) == {"owned": False, "idle": False}
    steps["SendClaimRequest"](payload)
    steps["SendClaimRequest"](payload)
    [request] = harness.services.pool.hints.receive(harness.services.clock.now(), (), 10)
    assert isinstance(request, ClaimRequest)
    assert request.key == AMELIA_SCOTT


def test_the_running_job_of_another_thread_is_found(harness: EmbeddedHarness, steps: Mapping[str, Step]) -> None:
    first = identified(harness, steps)
    started = harness.services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, harness.services.clock.now())
    assert isinstance(started, StartedJob)
    assert steps["CheckActiveJob"](first) == {"mustInterrupt": False}
    second = identified(harness, steps, "Change the footer")
    assert steps["CheckActiveJob"](second) == {"mustInterrupt": True, "jobId": first["jobId"]}


def test_await_result_binds_the_token_to_the_job(harness: EmbeddedHarness, steps: Mapping[str, Step]) -> None:
    payload = identified(harness, steps)
    steps["AwaitResult"]({**payload, "taskToken": "token"})
    job = harness.services.jobs.get(payload["jobId"])
    assert job
    assert job.task_token == "token"


def test_give_up_ends_the_job_and_keeps_one_dead_letter(harness: EmbeddedHarness, steps: Mapping[str, Step]) -> None:
    payload = identified(harness, steps)
    assert steps["GiveUp"](payload) == {"gaveUp": True}
    assert steps["GiveUp"](payload) == {"gaveUp": True}
    assert [letter.email_id for letter in harness.services.dead_letters.all(10)] == [payload["emailId"]]
    assert not harness.services.jobs.open_jobs(AMELIA_SCOTT)


def test_one_reply_is_written_however_often_the_step_is_called(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    payload = identified(harness, steps)
    asked = {"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload}
    harness.settle()
    assert steps["Reply"](asked) == {"replied": True}
    assert steps["Reply"](asked) == {"replied": True}
    assert len(harness.replies(payload["emailId"])) == 1


@pytest.mark.parametrize(("role", "offered"), [(SenderRole.BOTH, True), (SenderRole.EDITOR, False)])
def test_the_reply_offers_a_publication_to_those_who_may_publish(
    harness: EmbeddedHarness, steps: Mapping[str, Step], role: SenderRole, offered: bool
) -> None:
    harness.services.directory.set_role(SCOTT, "amelia", role)
    payload = identified(harness, steps)
    harness.settle(Settlement(JobOutcome.SUCCEEDED, JobResult("The title is new.", "abc", "http://edit.localhost/")))
    steps["Reply"]({"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload})
    [reply] = harness.replies(payload["emailId"])
    body = message_from_bytes(reply.reply.raw, policy=default).get_body(("plain",))
    assert body
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
    harness: EmbeddedHarness, steps: Mapping[str, Step], asks: SenderRole, publishes: SenderRole, told: list[str]
) -> None:
    directory, now = harness.services.directory, harness.services.clock.now()
    directory.set_role(SCOTT, "amelia", asks)
    payload = identified(harness, steps)
    directory.add_sender(Sender(BOB, ProjectUser("amelia", "bob")), now)
    directory.set_role(BOB, "amelia", publishes)
    project = directory.project("amelia")
    assert project
    directory.add_project(replace(project, approver=BOB), now)
    harness.settle(Settlement(JobOutcome.SUCCEEDED, JobResult("The title is new.", "abc", "http://edit.localhost/")))
    for _ in range(2):
        steps["Reply"]({"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload})
    assert [entry.reply.recipient for entry in harness.replies(payload["emailId"])] == told


def shown_to_bob(harness: EmbeddedHarness, steps: Mapping[str, Step], role: SenderRole, result: JobResult) -> str:
    """An editor's change that the approver was sent; the Message-ID of that mail."""
    directory, now = harness.services.directory, harness.services.clock.now()
    directory.set_role(SCOTT, "amelia", SenderRole.EDITOR)
    directory.add_sender(Sender(BOB, ProjectUser("amelia", "bob")), now)
    directory.set_role(BOB, "amelia", role)
    project = directory.project("amelia")
    assert project
    directory.add_project(replace(project, approver=BOB), now)
    payload = identified(harness, steps)
    harness.settle(Settlement(JobOutcome.SUCCEEDED, result))
    steps["Reply"]({"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload})
    [shown] = [one.reply for one in harness.replies(payload["emailId"]) if one.reply.recipient == BOB]
    return shown.message_id


def routed(harness: EmbeddedHarness, steps: Mapping[str, Step], text: str, sender: str, answers: str) -> dict[str, str]:
    email_id = harness.accept(text, sender=sender, answers=answers)
    steps["ParseEmail"]({"emailId": email_id})
    return {"emailId": email_id, **steps["IdentifyProjectUser"]({"emailId": email_id, "retries": 0})}


def written_to(harness: EmbeddedHarness, address: str) -> str:
    """The plain text of the last reply to this address."""
    due = harness.services.outbox.due(harness.services.clock.now(), 100)
    last = [one for one in due if one.reply.recipient == address][-1]
    body = message_from_bytes(last.reply.raw, policy=default).get_body(("plain",))
    assert body
    return " ".join(body.get_content().split())


SHOWN = JobResult("The title is new.", "abc", "http://edit.localhost/")


@pytest.mark.parametrize(
    ("said", "route"),
    [
        *((said, "queue") for said in (
            "Ja", "Ja, passt so. Danke Lena!\n\nGreta", "Ja, gefällt mir!", "yes looks good", "oui",
            "Hallo Lena, ja, gerne",
        )),
        *((said, "other") for said in (
            "Ja, aber bitte in grün", "Yes?", "Danke Lena!", "No", "Ja, das gefällt mir nicht",
        )),
    ],
)  # fmt: skip
@pytest.mark.parametrize("role", [SenderRole.BOTH, SenderRole.PUBLISHER])
def test_each_kind_of_yes_of_the_person_who_was_shown_a_change_publishes_it(
    harness: EmbeddedHarness, steps: Mapping[str, Step], role: SenderRole, said: str, route: str
) -> None:
    shown = shown_to_bob(harness, steps, role, SHOWN)
    other = "edit" if role is SenderRole.BOTH else "not-theirs"
    placed = routed(harness, steps, said, BOB, shown)
    assert placed["route"] == (other if route == "other" else route)
    if route == "queue":
        job = harness.services.jobs.get(placed["jobId"])
        assert job
        assert job.command is Command.PUBLISH


def test_a_yes_beside_the_question_about_a_change_publishes_nothing(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    shown_to_bob(harness, steps, SenderRole.BOTH, SHOWN)
    assert routed(harness, steps, "Yes", BOB, "")["route"] == "edit"


def test_who_approves_is_not_told_what_the_editor_may_not(harness: EmbeddedHarness, steps: Mapping[str, Step]) -> None:
    both = replace(SHOWN, summary=f"The title is new.\n\n{NOT_PUBLIC_YET}")
    shown_to_bob(harness, steps, SenderRole.BOTH, both)
    assert "you may ask" not in written_to(harness, BOB)
    assert "The title is new." in written_to(harness, BOB)
    assert f"{BOB} is shown this change, too" in written_to(harness, SCOTT)


def test_an_editor_who_publishes_is_told_who_has_the_change_already(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    shown = shown_to_bob(harness, steps, SenderRole.BOTH, SHOWN)
    payload = routed(harness, steps, "publish", SCOTT, shown)
    assert payload["route"] == "not-theirs"
    steps["Reply"]({"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload})
    assert f"{BOB} has your change already" in written_to(harness, SCOTT)


def test_you_are_who_reads_the_reply_and_not_who_began_the_conversation(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    shown = shown_to_bob(harness, steps, SenderRole.BOTH, SHOWN)
    payload = routed(harness, steps, "Yes", BOB, shown)
    lines = (ChangeLine("The title is new.", "scott", "abc"), ChangeLine("A new colour.", "bob", "abd"))
    harness.settle(Settlement(JobOutcome.SUCCEEDED, JobResult("Public.", "r", is_public=True, published=lines)))
    steps["Reply"]({"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload})
    assert "The title is new. (asked by scott)" in written_to(harness, BOB)
    assert "A new colour. (asked by you)" in written_to(harness, BOB)


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
    harness: EmbeddedHarness, steps: Mapping[str, Step], role: SenderRole, said: str, route: str
) -> None:
    harness.services.directory.set_role(SCOTT, "amelia", role)
    assert identified(harness, steps, said)["route"] == route


@pytest.mark.parametrize(
    ("undone", "headline"),
    [(None, "Done on your edit site"), (ChangeLine("The title", "scott", "a"), "Taken back on your edit site")],
    ids=["an agent's word", "an undo"],
)
def test_what_was_done_is_told_by_the_result_and_not_by_its_words(
    harness: EmbeddedHarness, steps: Mapping[str, Step], undone: ChangeLine | None, headline: str
) -> None:
    payload = identified(harness, steps)
    result = JobResult("Undone: the title is as it was.", "abc", "http://edit.localhost/", undone=undone)
    harness.settle(Settlement(JobOutcome.SUCCEEDED, result))
    steps["Reply"]({"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload})
    [entry] = harness.replies(payload["emailId"])
    assert headline in message_from_bytes(entry.reply.raw, policy=default).get_body(("plain",)).get_content()  # type: ignore[union-attr]


def test_a_refused_mail_gets_no_reply(harness: EmbeddedHarness, steps: Mapping[str, Step]) -> None:
    email_id = harness.accept("Change the title", sender="stranger@example.com")
    assert steps["Reply"]({"emailId": email_id}) == {"replied": False}
    assert harness.replies(email_id) == []


def test_status_knows_what_was_undone_published_or_asked_meanwhile() -> None:
    def settled(number: int, command: Command, result: JobResult, thread: str = "t") -> Job:
        new = NewJob(f"job-{number}", AMELIA_SCOTT, thread, f"mail-{number}", command).recorded(
            number, NOON, ready=True
        )
        return new._replace(outcome=JobOutcome.SUCCEEDED, result=result, settled_at=NOON)

    def waiting(*jobs: Job) -> list[str]:
        return [line.words for line in not_published(jobs)]

    changes = [settled(n, Command.EDIT, JobResult(f"Change {n}", f"c{n}")) for n in (1, 2, 3)]
    of_2 = ChangeLine("Change 2", "scott", "c2")
    undone = settled(4, Command.UNDO, JobResult("Undone: Change 2\n\nNot public.", "d", undone=of_2))
    assert waiting(undone, *reversed(changes)) == ["Change 1", "Change 3"]
    again = settled(5, Command.EDIT, JobResult("Change 2", "c5"))
    assert waiting(again, undone, *reversed(changes)) == ["Change 1", "Change 3", "Change 2"]
    taken_back = settled(6, Command.UNDO, JobResult("Undone: Change 2", "d", undone=of_2))
    assert waiting(taken_back, again, *reversed(changes)) == ["Change 1", "Change 3", "Change 2"]
    boast = settled(6, Command.EDIT, JobResult("Undone: Change 1", "c6"))
    assert waiting(boast, *reversed(changes)) == ["Change 1", "Change 2", "Change 3", "Undone: Change 1"]
    still = ChangeLine("Undone: Change 0", "scott", "c7")
    half = settled(7, Command.UNDO, JobResult("Undone", "c7", undone=ChangeLine("Change 0"), waiting=(still,)))
    assert waiting(half, *changes[:1]) == ["Change 1", "Undone: Change 0"], "`publish all` would bring it"
    left = (ChangeLine("Change 3", "scott"), ChangeLine("A photo", "bob"))
    public = settled(5, Command.PUBLISH, JobResult("Now public", is_public=True, waiting=left))
    assert waiting(public, undone, *reversed(changes)) == ["Change 3"]
    bobs = ChangeLine("A photo", "bob", "c8")
    put_back = Project("amelia", "r", rolled_back_at=NOON.timestamp() - 1, waiting_then=(of_2, bobs))
    assert not_published([], put_back) == [of_2, bobs], "`publish all` brings what others asked for, too"
    by_bob = settled(8, Command.PUBLISH, JobResult("Now public", is_public=True, waiting=(of_2,)))
    by_bob = by_bob._replace(key=ProjectUser("amelia", "bob"))
    assert not_published([by_bob], put_back) == [of_2]
    assert not_published([by_bob, *changes], replace(put_back, rolled_back_at=NOON.timestamp())) == [of_2, bobs]
    question = settled(6, Command.EDIT, JobResult("Which?", question="Which?"), "u")
    assert unanswered([question, public], NOON, set()) == [question]
    assert unanswered([question, public], NOON, {"u"}) == []
    assert unanswered([settled(7, Command.EDIT, JobResult("Done", "e"), "u"), question], NOON, set()) == []
    assert unanswered([question], NOON + timedelta(days=1), set()) == []
    both = settled(9, Command.PUBLISH, JobResult("Both?", question="Both?"), "w")
    everything = replace_result(public, waiting=())
    assert unanswered([public, both], NOON, set()) == [both]
    assert unanswered([everything, both, question], NOON, set()) == [question], "all is public: nothing to ask"


def replace_result(job: Job, **changes: object) -> Job:
    assert job.result
    return job._replace(result=replace(job.result, **changes))  # type: ignore[arg-type]


def test_status_names_the_mails_that_a_person_looks_at_until_that_is_done(
    harness: EmbeddedHarness, steps: Mapping[str, Step]
) -> None:
    def said() -> str:
        payload = identified(harness, steps, "status")
        steps["Reply"]({"emailId": payload["emailId"], "sender": {"verdict": "admitted"}, "job": payload})
        return written_to(harness, SCOTT)

    assert "all your mails are answered" in said()
    mail = identified(harness, steps, "Make it nicer")
    harness.settle(Settlement(JobOutcome.FAILED, JobResult("I did not understand.", error=NOT_UNDERSTOOD)))
    waits = said()
    assert "all your mails are answered" not in waits
    assert "wait for the person who looks after your site: - Mail 2" in waits
    close_mail(harness.services, mail["emailId"], "ann")
    assert "all your mails are answered" in said()
