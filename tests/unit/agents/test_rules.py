"""The pure parts: what counts as which outcome, what may be done, what is told, who is asked with which key."""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from webordinary.adapters.agents.acp_agent import read_last_message
from webordinary.adapters.agents.acp_session import granted
from webordinary.adapters.agents.claude_access import KEPT_SECONDS, KeyCommand, model_access
from webordinary.adapters.agents.claude_agent import ClaudeResult, judge
from webordinary.adapters.agents.process import MOST_TOLD, ProgressReporter
from webordinary.adapters.agents.workspace import prepare_files, prompt_text, result_of, shown, tree_snapshot
from webordinary.adapters.sandbox.proxy import may_ask
from webordinary.jobs.ports import AgentLimits, AgentTask, Answered, Asked, AttachedFile, Changed, NotUnderstood
from webordinary.jobs.sandbox_policy import OutgoingRequest
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Attachment, AttachmentKind

SITE, FILES = Path("/site"), Path("/attachments")


@pytest.mark.parametrize(
    ("said", "differs", "went_on", "kind"),
    [
        ("changed", True, False, Changed),
        ("changed", False, False, Changed),
        ("answered", False, False, Answered),
        ("answered", True, False, Changed),
        ("question", True, False, Asked),
        ("", True, False, Changed),
        ("", False, False, Answered),
        ("", False, True, Changed),
    ],
)
def test_nothing_that_was_done_is_dropped(said: str, differs: bool, went_on: bool, kind: type) -> None:
    assert isinstance(result_of(said, "words", differs=differs, went_on=went_on), kind)


def test_an_agent_is_told_the_subject_above_the_wish() -> None:
    task = AgentTask("Please change it to Who we are.", SITE, subject="The title of the about page")
    assert prompt_text(task, ()) == "Subject: The title of the about page\n\nPlease change it to Who we are."


def test_an_agent_that_names_a_date_is_told_the_time_at_the_site() -> None:
    now = datetime(2026, 11, 19, 16, 40, tzinfo=ZoneInfo("Europe/Berlin"))
    task = AgentTask("Close on Monday.", SITE, now=now)
    assert prompt_text(task, ()).endswith("It is Thursday, 2026-11-19 16:40 (Europe/Berlin) where this site is.")
    assert "do it now" in prompt_text(replace(task, is_due=True), ())
    until = result_of("until", "Closed.", differs=True, went_on=False, at="2026-12-06")
    assert until == Changed("Closed.", then="until", at="2026-12-06")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("CHANGED: Done.", ("changed", "Done.", "")),
        ("**Question:** Which one?", ("question", "Which one?", "")),
        ("answer : Yes", ("answered", "Yes", "")),
        ("I changed it: see there", ("", "I changed it: see there", "")),
        ("LATER 2026-12-01: On 1 December.", ("later", "On 1 December.", "2026-12-01")),
        ("until 2026-12-06T18:30: Closed.", ("until", "Closed.", "2026-12-06T18:30")),
        ("UNTIL Sunday: Closed.", ("", "UNTIL Sunday: Closed.", "")),
        ("", ("", "", "")),
    ],
)
def test_the_first_word_of_the_last_message_counts(text: str, read: tuple[str, str, str]) -> None:
    assert read_last_message(text) == read


@pytest.mark.parametrize(
    ("kind", "paths", "jailed", "allowed"),
    [
        ("edit", ["/site/index.html"], False, True),
        ("edit", ["/site/index.html", "/etc/passwd"], True, False),
        ("edit", ["/site/../etc/passwd"], True, False),
        ("edit", [], False, False),
        ("edit", [], True, True),
        ("read", ["/attachments/cup.jpg"], False, True),
        ("read", ["/etc/passwd"], True, False),
        ("edit", ["/attachments/cup.jpg"], True, False),
        ("delete", ["/site/.git/config"], True, False),
        ("execute", [], True, True),
        ("execute", [], False, False),
        ("fetch", [], True, False),
        ("", [], True, False),
    ],
)
def test_edits_of_the_site_are_granted_and_little_else(
    kind: str, paths: list[str], jailed: bool, allowed: bool
) -> None:
    assert granted(kind, paths, SITE, FILES, sandboxed=jailed) is allowed


def test_the_timeline_is_not_flooded() -> None:
    told: list[str] = []
    reporter = ProgressReporter(told.append, SITE)
    reporter.tool("Edit", {"file_path": "/site/a/index.html"})
    reporter.tool("Edit", {"file_path": "/site/a/index.html"})
    for number in range(1000):
        reporter.say(f"{number} " + "x" * 1000)
    assert told[0] == "edits a/index.html"
    assert len(told) == MOST_TOLD + 1
    assert max(map(len, told)) <= 160


def test_the_key_stays_with_the_proxy() -> None:
    access = model_access({"ANTHROPIC_API_KEY": "sk-1"})
    assert access.upstream.url == "https://api.anthropic.com"
    assert access.upstream.headers == {"x-api-key": "sk-1"}
    assert "sk-1" not in str(access.env) + repr(access)
    assert model_access({"ANTHROPIC_AUTH_TOKEN": "t"}).upstream.headers == {"Authorization": "Bearer t"}
    bedrock = {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": "b"}
    assert model_access(bedrock).upstream.url == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    vertex = {"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "global", "ANTHROPIC_VERTEX_PROJECT_ID": "p"}
    assert model_access(vertex, lambda: "v").upstream.url == "https://aiplatform.googleapis.com/v1"


def test_only_models_are_within_reach_of_the_key() -> None:
    asked = model_access({"ANTHROPIC_API_KEY": "sk-1"}).upstream.paths
    assert may_ask("/v1/messages?beta=true", asked)
    assert may_ask("/v1/messages/count_tokens", asked)
    assert not may_ask("/v1/messages/batches", asked)
    vertex = {"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "global", "ANTHROPIC_VERTEX_PROJECT_ID": "p"}
    asked = model_access(vertex, lambda: "v").upstream.paths
    assert may_ask("/projects/p/locations/global/publishers/anthropic/models/claude:streamRawPredict", asked)
    assert not may_ask("/projects/p/locations/global/customJobs", asked)


@pytest.mark.parametrize(
    ("env", "word"),
    [
        ({}, "ANTHROPIC_API_KEY"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "AWS_REGION"),
        ({"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "x"}, "ANTHROPIC_VERTEX_PROJECT_ID"),
        (
            {"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "x", "ANTHROPIC_VERTEX_PROJECT_ID": "p"},
            "agent_key_command",
        ),
    ],
)
def test_a_missing_key_is_named(env: dict[str, str], word: str) -> None:
    with pytest.raises(Permanent, match=word):
        model_access(env)


def test_signing_needs_an_extra_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)  # as if it were not installed
    with pytest.raises(Permanent, match=r"webordinary\[aws\]"):
        model_access({"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-west-1"})


def test_names_of_models_are_no_secret() -> None:
    names = {"ANTHROPIC_MODEL": "eu.anthropic.claude", "ANTHROPIC_DEFAULT_HAIKU_MODEL": "small"}
    bedrock = {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_DEFAULT_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": "b"}
    for env in ({"ANTHROPIC_API_KEY": "sk-1"}, bedrock):
        told = model_access(env | names).env
        assert {name: told[name] for name in names} == names
    assert "AWS_BEARER_TOKEN_BEDROCK" not in told


def test_a_printed_key_is_printed_again_before_it_runs_out(tmp_path: Path) -> None:
    runs, now = tmp_path / "runs", [0.0]
    counting = f"import pathlib; p = pathlib.Path({str(runs)!r}); p.touch(); t = p.read_text() + 'x'; p.write_text(t)"
    key = KeyCommand((sys.executable, "-c", f"{counting}; print(len(t))"), {}, lambda: now[0])
    access = model_access({"ANTHROPIC_API_KEY": "not this one"}, key)
    assert access.upstream.sign
    asked = OutgoingRequest("POST", "https://api.example/v1/messages", {}, b"")
    assert access.upstream.sign(asked) == {"x-api-key": "1"}
    now[0] = KEPT_SECONDS - 1
    assert access.upstream.sign(asked) == {"x-api-key": "1"}
    now[0] = KEPT_SECONDS
    assert access.upstream.sign(asked) == {"x-api-key": "2"}
    assert "not this one" not in str(access.upstream.headers)


@pytest.mark.parametrize("command", [("true",), ("no-such-program-here",), ("printf", "a\\nb")])
def test_a_program_that_prints_no_key_is_named(command: tuple[str, ...]) -> None:
    with pytest.raises(Permanent, match=command[0]):
        model_access({}, KeyCommand(command, dict(os.environ)))


def test_a_program_that_fails_today_is_asked_again_later() -> None:
    with pytest.raises(Transient, match="false gave no key: it ended with 1"):
        KeyCommand(("false",), dict(os.environ))()


def test_nothing_that_a_failing_key_program_printed_is_repeated() -> None:
    says_it_all = ("sh", "-c", "echo sk-on-stdout; echo sk-on-stderr >&2; exit 3")
    with pytest.raises(Transient, match="it ended with 3; run it by hand") as told:
        KeyCommand(says_it_all, dict(os.environ))()
    assert "sk-on" not in "".join(traceback.format_exception(told.value))


def test_a_program_that_is_slow_today_is_asked_again_later() -> None:
    with pytest.raises(Transient, match="sleep gave no key"):
        KeyCommand(("sleep", "60"), dict(os.environ), timeout_seconds=0.05)()


def ending(reason: str, status: int | None = None) -> ClaudeResult:
    return ClaudeResult(True, reason, "words", status, "s", 1.0, 3)


def test_how_a_run_ended_decides_what_becomes_of_it() -> None:
    assert judge(ClaudeResult(False, "completed", "", None, "s", 1.0, 3), AgentLimits(), 1.0) is None
    for reason in ("budget_exhausted", "max_turns"):
        assert isinstance(judge(ending(reason), AgentLimits(), 1.0), NotUnderstood)
    for status in (429, 500, 529, None):
        with pytest.raises(Transient):
            judge(ending("api_error", status), AgentLimits(), 1.0)
    for reason, code in (("api_error", 401), ("api_error", 400), ("error_during_execution", None)):
        with pytest.raises(Permanent):
            judge(ending(reason, code), AgentLimits(), 1.0)


def test_files_are_laid_out_under_plain_names(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    blob.write_bytes(b"x" * 10)
    names = ("../../Mug & cup.jpg", "Mug & cup.jpg", "…", "notes.pdf")
    files = tuple(
        AttachedFile(
            Attachment(name, "image/jpeg" if "jpg" in name else "application/pdf", AttachmentKind.IMAGE, 10, ""), blob
        )
        for name in names
    )
    packed = prepare_files(files, tmp_path / "out")
    assert [file.name for file in packed] == ["Mug-cup.jpg", "Mug-cup-2.jpg", "file", "notes.pdf"]
    assert [file.name for file in shown(packed)] == ["Mug-cup.jpg", "Mug-cup-2.jpg"]


def test_an_agent_is_told_the_customers_own_name_of_a_file_and_of_its_webp_copy(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    blob.write_bytes(b"x" * 10)
    photo = Attachment("file.jpg", "image/jpeg", AttachmentKind.IMAGE, 10, "", 'Моя "кружка".jpg', "1" * 64)
    plain = Attachment("file.webp", "image/webp", AttachmentKind.IMAGE, 10, "", "file.webp")
    packed = prepare_files((AttachedFile(photo, blob, blob), AttachedFile(plain, blob)), tmp_path / "out")
    assert [file.name for file in packed] == ["file.jpg", "file-2.webp"]
    said = prompt_text(AgentTask("Add it", tmp_path, ()), packed)
    assert r'- file.jpg (sent as "Моя \"кружка\".jpg", image/jpeg, 10 bytes): ' in said
    assert f"; as WebP, 10 bytes: {tmp_path / 'out' / 'file.webp'}\n" in said
    assert '<source type="image/webp"' in said
    assert '<source type="image/webp"' not in prompt_text(AgentTask("Add it", tmp_path, ()), packed[1:])


def test_a_footprint_sees_every_kind_of_change(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a").write_text("a")
    before = tree_snapshot(tmp_path)
    (tmp_path / ".git" / "index").touch()
    assert tree_snapshot(tmp_path) == before
    (tmp_path / "b").symlink_to("a")
    assert tree_snapshot(tmp_path) != before
