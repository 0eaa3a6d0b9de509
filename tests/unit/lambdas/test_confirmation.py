"""A known sender whose mail SES could not prove is asked, and the yes goes through the lambdas to the site."""

from __future__ import annotations

from email import message_from_bytes
from email.utils import parseaddr

import pytest

from tests.unit.lambdas.harness import DONE, FIRST_MAIL, NOON, SCOTT, LambdaHarness, recorded
from webordinary.adapters.aws import names
from webordinary.adapters.aws.mail.emulated import Reception, as_received
from webordinary.mail.write import CustomerMail, write_mail

SECOND = "raw/p3vrnil0e2ic28trm7dfhrc2v0clambda4nbp0g2"
WISH = "Change the title to Spring Sale"
DOUBTS = pytest.mark.parametrize("found", [{"dmarc": "none"}, {"spam": "FAIL"}], ids=["no DMARC", "taken for spam"])


def comes_in(
    cloud: LambdaHarness, key: str, text: str, recipient: str, found: dict[str, str], sender: str = SCOTT
) -> None:
    """As SES stores it, with what it found."""
    ses_id = key.rpartition("/")[2]
    letter = CustomerMail(sender, recipient, "Spring sale", text, message_id=f"<{ses_id}@example.com>")
    cloud.inbox.objects[key] = as_received(write_mail(letter, NOON), Reception(sender, recipient, ses_id, **found))
    event = recorded("s3_put")
    event["Records"][0]["s3"]["object"]["key"] = key
    assert cloud.invoke(names.INTAKE, event) == {"taken": 1}
    cloud.engine.run_ready()


def asked(cloud: LambdaHarness) -> str:
    """The address of the one question that was sent."""
    [question] = cloud.post.sent
    assert question.recipient == SCOTT
    return parseaddr(message_from_bytes(question.raw)["Reply-To"])[1]


@DOUBTS
def test_a_known_sender_without_proof_is_asked_and_a_yes_does_the_mail(
    cloud: LambdaHarness, found: dict[str, str]
) -> None:
    comes_in(cloud, FIRST_MAIL, WISH, "edit@example.net", found)
    comes_in(cloud, SECOND, "Yes, I did.", asked(cloud), found)
    cloud.wait(minutes=1)
    cloud.invoke(names.RECONCILE, recorded("schedule"))  # only intake and reconciler may start executions
    cloud.engine.run_ready()
    cloud.work(DONE)
    assert b"Spring Sale" in cloud.post.sent[1].raw
    assert len(cloud.post.sent) == 2


@DOUBTS
def test_a_no_ends_it(cloud: LambdaHarness, found: dict[str, str]) -> None:
    comes_in(cloud, FIRST_MAIL, WISH, "edit@example.net", found)
    comes_in(cloud, SECOND, "No, I did not.", asked(cloud), found)
    assert cloud.pool.jobs.keys_to_look_at(None, 10) == []
    assert len(cloud.post.sent) == 1


@DOUBTS
def test_strangers_are_not_asked(cloud: LambdaHarness, found: dict[str, str]) -> None:
    comes_in(cloud, FIRST_MAIL, WISH, "edit@example.net", found, sender="eve@example.org")
    assert cloud.post.sent == []
