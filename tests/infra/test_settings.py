"""What an operator may say, and what he is told when it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.infra.templates import ready

if TYPE_CHECKING:
    from infra.settings import Settings


def settings_class() -> type[Settings]:
    """Its module imports the CDK, which starts Node."""
    ready()
    from infra.settings import Settings

    return Settings


def test_a_domain_is_enough() -> None:
    settings = settings_class().read({"domain": "example.org"}.get)
    assert settings.mailbox == "edit@mail.example.org"  # never the domain itself, whose mail is read elsewhere
    assert settings.mail_domain == "mail.example.org"
    assert settings.capacity == "ec2"


def test_words_of_the_command_line_become_values() -> None:
    said = {"instance_types": "m7g.large, m8g.large", "spot": "true", "keep": "false", "max_workers": "3"}
    settings = settings_class().read(said.get)
    assert settings.instance_types == ("m7g.large", "m8g.large")
    assert settings.spot
    assert not settings.keep
    assert settings.max_workers == 3


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("capacity", "lambda", "take ec2 or fargate"),
        ("nat", "none", "take gateway or instance"),
        ("identity", "new", "take made or existing"),
        ("operator", "me@mail.example.com", "Take an address of another domain"),
        ("spot", "perhaps", "take true or false"),
        ("domain", "example.com'", "is no domain"),
        ("certificate", "arn:aws:acm:eu-west-1:1:certificate/x", "us-east-1"),
        ("retention_days", "13", "take 14 or more"),
        ("reconcilers", "6", "take 1 to 5"),
        ("bedrock_model", "claude", "take an id"),
        ("bedrock_model", "arn:aws:bedrock:eu-west-1:1:application-inference-profile/x", "take an id"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_ones(name: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        settings_class().read({name: value}.get)


def test_there_is_one_way_to_the_model() -> None:
    both = {"agent_secret": "webordinary/agent-key", "bedrock_model": "eu.anthropic.claude-sonnet"}
    with pytest.raises(ValueError, match="take one of them"):
        settings_class().read(both.get)


def test_every_setting_has_its_row_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "aws.md").read_text()
    table = page.partition("## Settings")[2].partition("\n## ")[0]
    for name in settings_class().__slots__:
        assert f"`{name}`" in table, name
