from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from webordinary.config import Config
from webordinary.entrypoints.cli.up import banner, command_name, ready_plain
from webordinary.entrypoints.running import Endpoints, has_model

CONFIG = Config(data=Path("/somewhere"), port=8180, preview_port=8181, smtp_port=2626)
ENDS = Endpoints(1, "127.0.0.1", 8180, 8181, 2626)


def test_the_last_line_is_for_scripts() -> None:
    for projects in ((), ("amelia",), ("kiln",)):
        assert banner(CONFIG, ENDS, projects, "webordinary").splitlines()[-1] == (
            "ready http://127.0.0.1:8180/ smtp 127.0.0.1:2626 preview http://127.0.0.1:8181/"
        )


def test_with_the_sample_it_says_what_to_open_and_what_to_try() -> None:
    text = banner(CONFIG, ENDS, ["amelia"], ".venv/bin/webordinary")
    assert "http://edit.amelia.localhost:8180/" in text
    assert "swaks --server 127.0.0.1:2626 --from scott@example.com --to edit@localhost" in text
    assert ".venv/bin/webordinary send mail.eml --data /somewhere" in text


def test_without_any_site_it_says_how_to_add_one() -> None:
    text = banner(CONFIG, ENDS, [], "webordinary")
    assert "webordinary project add --data /somewhere" in text
    assert "amelia" not in text


def test_from_the_folder_of_a_service_its_command_is_named_by_its_whole_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.executable", "/opt/webordinary/bin/python3")
    monkeypatch.chdir("/")
    assert command_name() == "/opt/webordinary/bin/webordinary"


def test_an_address_with_colons_is_put_in_brackets() -> None:
    assert Endpoints(1, "::1", 80, 81, 25).page == "http://[::1]:80/"


def test_on_aws_it_speaks_of_the_mail_address_and_its_bucket_and_never_of_smtp() -> None:
    config = replace(CONFIG, backend="aws", aws_account="123456789012", mailbox="edit@example.net")
    text = banner(config, replace(ENDS, smtp_port=0), ["amelia"], "webordinary")
    assert "smtp" not in text
    assert text.splitlines()[-1] == (
        "ready http://127.0.0.1:8180/ mail edit@example.net bucket webordinary-mail-123456789012 "
        "preview http://127.0.0.1:8181/"
    )
    plain = ready_plain(config, ENDS)
    assert (plain["mailbox"], plain["bucket"]) == ("edit@example.net", "webordinary-mail-123456789012")
    assert "smtp_port" not in plain


def test_a_start_without_a_model_says_what_the_built_in_agent_does_and_how_to_attach_a_real_one() -> None:
    assert not has_model(CONFIG, {})
    assert has_model(CONFIG, {"ANTHROPIC_API_KEY": "k"})
    assert has_model(CONFIG, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"})
    text = banner(CONFIG, ENDS, [], "webordinary", has_model=False)
    text = " ".join(text.split())
    for word in ("simple, exact edits", "ANTHROPIC_API_KEY", "Bedrock", "Vertex", "gateway", "ACP", "agent test"):
        assert word in text
    assert "built-in" not in banner(CONFIG, ENDS, [], "webordinary", has_model=True)
