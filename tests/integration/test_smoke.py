"""`webordinary aws smoke` ends with the reason where no answer comes; in a data folder that takes mails as SES does."""
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.harness.embedded import SCOTT, EmbeddedHarness, open_harness
from webordinary.mail.intake import accept
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Delivery, TransportKind
from webordinary.operations.smoke import SmokeTest, smoke
from webordinary.workflow.start import start


class SmokeServices:
    """The data folder's ports; a mail that is sent comes in from a server of which nothing is known."""

    def __init__(self, harness: EmbeddedHarness) -> None:
        self._harness = harness
        self.config = replace(harness.services.config, aws_endpoint="http://127.0.0.1:1")

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - ports
        return getattr(self._harness.services, name)

    def send_mail(self, raw: bytes, mail_from: str, recipient: str) -> None:
        services = self._harness.services
        told = Delivery(TransportKind.SMTP, "192.0.2.1", mail_from, (recipient,), services.clock.now())
        for mail in accept(raw, told, mails=services.raw_mails, events=services.events):
            start(mail.email_id, self._harness.engine, services.raw_mails)
        self._harness.engine.run_ready()

    def smoke(self, sender: str, seconds: float, wait: Callable[[], None] = lambda: None) -> SmokeTest:
        return smoke(cast("Any", self), sender, "What is the title?", seconds, lambda words: None, wait)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[SmokeServices]:
    """Nobody's word is taken for who wrote a mail."""
    with open_harness(tmp_path, trusted_peers=()) as harness:
        yield SmokeServices(harness)


@pytest.fixture
def believed(tmp_path: Path) -> Iterator[SmokeServices]:
    with open_harness(tmp_path, trusted_peers=("192.0.2.1",)) as harness:
        yield SmokeServices(harness)


def test_a_mail_that_is_held_ends_it_at_once_with_the_next_command(asked: SmokeServices) -> None:
    with pytest.raises(Permanent, match=r"was taken but is held.*; see `webordinary mails show"):
        asked.smoke(SCOTT, 60)


def test_an_address_without_a_site_is_told_before_a_mail_is_sent(asked: SmokeServices) -> None:
    with pytest.raises(Permanent, match="may change no site: add it"):
        asked.smoke("eve@evil.example", 60)
    assert not asked.overview.recent_mails(None, 10)


def test_a_mail_without_an_answer_in_time_sends_to_the_doctor(believed: SmokeServices) -> None:
    with pytest.raises(Transient, match=r"was taken but not answered within 0.* doctor"):
        believed.smoke(SCOTT, 0.5)
