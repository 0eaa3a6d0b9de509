"""The pure parts: what counts as which outcome, what may be done, what is told, who is asked with which key."""

from __future__ import annotations

from pathlib import Path

import pytest

from webordinary.adapters.local.agents.acp.permissions import granted
from webordinary.adapters.local.agents.acp.rules import read_last_message
from webordinary.adapters.local.agents.claude.access import model_access
from webordinary.adapters.local.agents.claude.endings import Ending, judge
from webordinary.adapters.local.agents.footprint import footprint
from webordinary.adapters.local.agents.luggage import pack, shown
from webordinary.adapters.local.agents.outcome import result_of
from webordinary.adapters.local.agents.telling import MOST_TOLD, Narrator
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Attachment, AttachmentKind
from webordinary.site.task import Answered, Asked, AttachedFile, Changed, NotUnderstood

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


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("CHANGED: Done.", ("changed", "Done.")),
        ("**Question:** Which one?", ("question", "Which one?")),
        ("answer : Yes", ("answered", "Yes")),
        ("I changed it: see there", ("", "I changed it: see there")),
        ("", ("", "")),
    ],
)
def test_the_first_word_of_the_last_message_counts(text: str, read: tuple[str, str]) -> None:
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
    assert granted(kind, paths, SITE, FILES, jailed=jailed) is allowed


def test_the_timeline_is_not_flooded() -> None:
    told: list[str] = []
    narrator = Narrator(told.append, SITE)
    narrator.tool("Edit", {"file_path": "/site/a/index.html"})
    narrator.tool("Edit", {"file_path": "/site/a/index.html"})
    for number in range(1000):
        narrator.say(f"{number} " + "x" * 1000)
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
    assert model_access(vertex, "v").upstream.url == "https://aiplatform.googleapis.com/v1"


@pytest.mark.parametrize(
    ("env", "word"),
    [
        ({}, "ANTHROPIC_API_KEY"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "AWS_REGION"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "x"}, "AWS_BEARER_TOKEN_BEDROCK"),
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


def ending(reason: str, status: int | None = None) -> Ending:
    return Ending(True, reason, "words", status, "s", 1.0, 3)


def test_how_a_run_ended_decides_what_becomes_of_it() -> None:
    assert judge(Ending(False, "completed", "", None, "s", 1.0, 3), 5.0, 60, 1.0) is None
    for reason in ("budget_exhausted", "max_turns"):
        assert isinstance(judge(ending(reason), 5.0, 60, 1.0), NotUnderstood)
    for status in (429, 500, 529, None):
        with pytest.raises(Transient):
            judge(ending("api_error", status), 5.0, 60, 1.0)
    for reason, code in (("api_error", 401), ("api_error", 400), ("error_during_execution", None)):
        with pytest.raises(Permanent):
            judge(ending(reason, code), 5.0, 60, 1.0)


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
    packed = pack(files, tmp_path / "out")
    assert [file.name for file in packed] == ["Mug-cup.jpg", "Mug-cup-2.jpg", "file", "notes.pdf"]
    assert [file.name for file in shown(packed)] == ["Mug-cup.jpg", "Mug-cup-2.jpg"]


def test_a_footprint_sees_every_kind_of_change(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a").write_text("a")
    before = footprint(tmp_path)
    (tmp_path / ".git" / "index").touch()
    assert footprint(tmp_path) == before
    (tmp_path / "b").symlink_to("a")
    assert footprint(tmp_path) != before
