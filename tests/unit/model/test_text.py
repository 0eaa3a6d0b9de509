"""Text for logs that many people read."""

from __future__ import annotations

import io
import json
import logging

import pytest

from webordinary.adapters.aws.events import EventLines, MaskingFilter
from webordinary.model.events import Event, EventKind
from webordinary.model.text import masked, without_secrets


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("scott@example.com wrote", "s…@example.com wrote"),
        ("From: Scott <scott.o'neil+x@example.com>", "From: Scott <s…@example.com>"),
        ("Jörg <jörg@bücher.example>; a@b.example,c@d.example", "Jörg <j…@bücher.example>; a…@b.example,c…@d.example"),
        ("192.0.2.17 is no trusted peer", "192.0.2.… is no trusted peer"),
        ("[2001:db8:aa::17]", "[2001:0db8:…]"),
        ("::1 and fe80::1%eth0", "0000:0000:… and fe80:0000:…%eth0"),
        ("at 12:30:45, version 3.13.15, 16:9", "at 12:30:45, version 3.13.15, 16:9"),
        ("no address here @ all", "no address here @ all"),
    ],
)
def test_addresses_of_people_and_hosts_are_masked(said: str, shown: str) -> None:
    assert masked(said) == shown
    assert masked({"data": [said, 7, None]}) == {"data": [shown, 7, None]}


def test_events_in_cloudwatch_name_nobody() -> None:
    out = io.StringIO()
    data = {"recipient": "edit+amelia@example.org", "peer": "192.0.2.17", "size": 7}
    EventLines("w1", out).emit(Event(EventKind.MAIL_RECEIVED, "e1", data=data))
    said = json.loads(out.getvalue())
    assert said["data"] == {"recipient": "e…@example.org", "peer": "192.0.2.…", "size": 7}
    assert said["email_id"] == "e1"


def test_a_job_that_waits_for_its_machine_is_counted_for_an_alarm() -> None:
    out = io.StringIO()
    for fault in (True, False):
        EventLines("w1", out).emit(Event(EventKind.JOB_WAITS, data={"reason": "No space left", "machine_fault": fault}))
    counted, other = map(json.loads, out.getvalue().splitlines())
    assert (counted["MachineFaults"], counted["JobWaits"], "MachineFaults" in other) == (1.0, 1.0, False)


def test_log_records_of_a_worker_on_aws_name_nobody() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(MaskingFilter())
    log = logging.Logger("test")
    log.addHandler(handler)
    try:
        raise ValueError("scott@example.com is unknown")
    except ValueError:
        log.exception("mail of %s from %s", "scott@example.com", "192.0.2.17")
    assert "mail of s…@example.com from 192.0.2.…" in out.getvalue()
    assert "ValueError: s…@example.com is unknown" in out.getvalue()
    assert "scott" not in out.getvalue()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("uses sk-ant-api03-abcdefgh1234", "uses …"),
        ("curl -H 'Authorization: Bearer abcd1234efgh'", "curl -H 'Authorization: Bearer …'"),
        ("clones https://scott:hunter2000@example.com/x", "clones https://scott:…@example.com/x"),
        ("serves http://localhost:4321/about and http://[::1]:8080/@x", None),
        ("API_KEY=0123456789 npm test", "API_KEY=… npm test"),
        ("reads keys.html and the token list", None),
    ],
)
def test_what_looks_like_a_secret_is_not_shown(said: str, shown: str | None) -> None:
    assert without_secrets(said) == (shown or said)
