from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from webordinary.config import NAMES, SECRETS, Config, ConfigError, flag_of, setting_of, variable_of

ROOT = Path(__file__).parents[2]


def problems(**settings: object) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        Config(**settings)  # type: ignore[arg-type]
    return {problem.field: str(problem) for problem in caught.value.problems}


def test_without_any_settings_it_listens_on_this_machine_only() -> None:
    config = Config.load()
    assert (config.host, config.port, config.smtp_port, config.workers) == ("127.0.0.1", 8080, 2525, 2)
    assert config.trusted_peers == ()
    assert config.data.is_absolute()


def test_flags_win_over_variables_and_variables_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('port = 1001\nsmtp_port = 1002\npreview_port = 1003\ndomain = "Example.COM"\n')
    env = {"WEBORDINARY_SMTP_PORT": "2002", "WEBORDINARY_PREVIEW_PORT": "2003"}
    config = Config.load(file, env, {"preview_port": "3003", "host": None})
    assert (config.port, config.smtp_port, config.preview_port) == (1001, 2002, 3003)
    assert config.domain == "example.com"


def test_the_file_in_the_data_folder_is_read_unless_another_is_named(tmp_path: Path) -> None:
    (tmp_path / "webordinary.toml").write_text('trusted_peers = ["127.0.0.1", "::1"]\n')
    other = tmp_path / "other.toml"
    other.write_text("workers = 5\n")
    assert Config.load(None, {"WEBORDINARY_DATA": str(tmp_path)}).trusted_peers == ("127.0.0.1", "::1")
    assert Config.load(other, {}, {"data": tmp_path}).trusted_peers == ()


def test_every_wrong_setting_is_told_at_once_with_its_source_and_what_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_text('workers = "many"\nprot = 1\nagent_command = [1]\n')
    with pytest.raises(ConfigError) as caught:
        Config.load(file, {"WEBORDINARY_PORT": "99999"}, {"slots": "0"})
    message = str(caught.value)
    for expected in (
        f"workers ({file}): 'many' is not possible; it must be a whole number from 0 to 64",
        f"prot ({file}): there is no such setting; did you mean port?",
        f"agent_command ({file}): [1] is not possible; it must be a list of at most 100 words",
        "port (WEBORDINARY_PORT): '99999' is not possible; it must be a whole number from 0 to 65,535",
        "slots (--slots): '0' is not possible",
    ):
        assert expected in message


@pytest.mark.parametrize(
    "content", ["port = = 1", "port = 1\nport = 2", "\x00", "[port]\nx = 1\n", "port = inf", "port = true"]
)
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"broken\.toml"):
        Config.load(file)


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    for file in (tmp_path / "nowhere.toml", tmp_path):
        with pytest.raises(ConfigError, match="correct it or name another with --config"):
            Config.load(file)


def test_a_misspelt_variable_is_told_but_a_strangers_is_left_alone() -> None:
    Config.load(None, {"WEBORDINARY_WORKER": "w1", "WEBORDINARY_COLOUR_OF_THE_SKY": "blue"})
    with pytest.raises(ConfigError, match="did you mean smtp_port"):
        Config.load(None, {"WEBORDINARY_SMTPPORT": "25"})


def test_a_config_cannot_be_made_wrong() -> None:
    assert set(problems(host="example.com", lease_seconds=float("nan"), domain="-x-")) == {
        "host",
        "lease_seconds",
        "domain",
    }
    assert set(problems(mailbox="edit+tag@localhost")) == {"mailbox"}
    assert set(problems(trusted_peers=("localhost",))) == {"trusted_peers"}


def test_settings_that_contradict_each_other_are_refused() -> None:
    assert "at most half" in problems(renew_seconds=40, lease_seconds=60)["renew_seconds"]
    assert "different ports" in problems(port=2525)["port"]
    assert "needs relay_host" in problems(relay_user="me")["relay_user"]
    assert "agent_command" in problems(agent="command")["agent"]
    Config(port=0, preview_port=0, smtp_port=0)


@pytest.mark.parametrize("name", [{"domain": "example.com"}, {"mailbox": "edit@example.com"}])
def test_trusted_peers_beside_a_real_domain_are_refused(name: dict[str, str]) -> None:
    assert "Remove trusted_peers" in problems(trusted_peers=("127.0.0.1",), **name)["trusted_peers"]
    Config(trusted_peers=("127.0.0.1",), domain="sites.localhost")
    Config(**name)  # type: ignore[arg-type]
    Config(trusted_peers=("127.0.0.1",), backend="aws", **name)  # type: ignore[arg-type]


def test_secrets_are_never_shown() -> None:
    config = Config(relay_host="mail.example.com", relay_user="me", relay_password="hunter2")
    assert "hunter2" not in repr(config)
    with pytest.raises(ConfigError) as caught:
        Config.load(None, {"WEBORDINARY_RELAY_PASSWORD": "hunter2\n"})
    assert "hunter2" not in str(caught.value)


def test_a_child_process_gets_the_same_settings_as_variables() -> None:
    config = Config(agent="command", agent_command=("my agent", "--say", "it's"), relay_starttls=False)
    assert Config.load(None, config.environment()) == config


def test_every_setting_has_its_variable_its_flag_and_its_row_in_the_docs() -> None:
    from webordinary.entrypoints.cli.main import parser

    up = _flags(parser(), "up")
    rows = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8").splitlines()
    for name in NAMES:
        row = [line for line in rows if line.startswith(f"| `{name}` ")]
        assert len(row) == 1, f"docs/configuration.md needs one row for {name}"
        assert variable_of(name) in row[0]
        assert setting_of(name).rule.allowed in row[0], f"{name}: say that it may be {setting_of(name).rule.allowed}"
        assert (flag_of(name) in up) == (name not in SECRETS)


def _flags(parser: argparse.ArgumentParser, command: str) -> set[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {flag for a in action.choices[command]._actions for flag in a.option_strings}
    raise AssertionError("no commands")


def test_a_mailbox_needs_one_password_and_an_encrypted_connection() -> None:
    needs_one = problems(imap_host="imap.example.com")
    assert "exactly one of" in needs_one["imap_host"]
    both = problems(imap_host="imap.example.com", imap_password="x", imap_token_command="token")
    assert "exactly one of" in both["imap_host"]
    clear = problems(imap_host="imap.example.com", imap_password="x", imap_security="none")
    assert "travel in clear" in clear["imap_security"]


def test_workers_get_no_secret_and_no_setting_that_needs_one() -> None:
    config = Config(
        relay_host="mail.example.com",
        relay_user="edit",
        relay_password="s3",
        imap_host="mail.example.com",
        imap_password="s3",
    )
    assert "s3" not in config.without_secrets().environment().values()


def test_the_mails_of_a_person_and_the_cost_of_a_site_are_bounded_without_any_setting() -> None:
    assert Config().hourly_mails == 30
    assert Config().daily_cap_usd == 20


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_every_secret_may_stand_in_a_file_that_the_settings_or_a_variable_name(name: str) -> None:
    assert f"{name}_file" in NAMES
    assert getattr(Config.load(None, {f"{variable_of(name)}_FILE": "/run/secret"}), f"{name}_file") == "/run/secret"


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_a_file_that_is_named_wins_over_a_credential(name: str, tmp_path: Path) -> None:
    (tmp_path / f"webordinary.{name}").write_text("x" * 40)
    given = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert getattr(Config.load(None, given), name) == "x" * 40
    assert getattr(Config.load(None, {**given, f"{variable_of(name)}_FILE": "/run/secret"}), name) == ""


@pytest.mark.parametrize("name", ["relay_password", "oidc_client_secret"])
def test_a_secret_and_its_file_contradict_one_another(name: str) -> None:
    assert f"{name}_file" in problems(**{name: "hunter2", f"{name}_file": "/run/secret"})


def test_a_secret_is_read_from_the_credentials_that_systemd_passes(tmp_path: Path) -> None:
    (tmp_path / "webordinary.push_secret").write_text("x" * 40)
    assert Config.load(None, {"CREDENTIALS_DIRECTORY": str(tmp_path)}).push_secret == "x" * 40


def test_a_credential_that_cannot_be_read_is_named_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"hunter2\xff")
    (tmp_path / "binary").rename(tmp_path / "webordinary.relay_password")
    with pytest.raises(ConfigError, match=r"relay_password.*not text") as caught:
        Config.load(None, {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert "hunter2" not in str(caught.value)


def test_a_worker_reads_no_secret_from_the_files_that_its_parent_was_given(tmp_path: Path) -> None:
    (tmp_path / "webordinary.imap_password").write_text("hunter2\n")
    parents = {"WEBORDINARY_RELAY_PASSWORD_FILE": str(tmp_path / "relay"), "CREDENTIALS_DIRECTORY": str(tmp_path)}
    config = Config.load(None, parents | {"WEBORDINARY_RELAY_HOST": "mail.example.com"})
    assert config.imap_password == "hunter2"
    workers = Config.load(None, parents | config.without_secrets().environment())
    assert (workers.imap_password, workers.relay_password_file) == ("", "")
