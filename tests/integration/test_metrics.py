"""`/metrics` of a real `up`: counters that go on over a restart."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable

from tests.acceptance.waiting import Customer, wait_for_reply, wait_until
from tests.conftest import Up
from tests.unit.dashboard.test_metrics import read


def scrape(up: Up) -> dict[str, float]:
    with urllib.request.urlopen(f"{up.page}metrics", timeout=30) as answer:
        return read(answer.read().decode())


def test_a_mail_leaves_its_traces_and_a_restart_forgets_none(start_up: Callable[..., Up]) -> None:
    up = start_up("--workers", "1")
    wait_until(up.data, lambda: scrape(up)["webordinary_workers_alive"] == 1, "the worker")
    wait_for_reply(up, Customer().write(up, "Change the homepage title to Spring Sale"))
    done = 'webordinary_job_latency_seconds_count{outcome="succeeded"}'
    wait_until(up.data, lambda: scrape(up).get(done) == 1 and scrape(up)["webordinary_mails_in_flight"] == 0, "the end")
    samples = scrape(up)
    assert samples['webordinary_claim_attempts_total{result="success"}'] == 1
    assert samples["webordinary_time_to_claim_seconds_count"] == 1
    assert (samples["webordinary_claims_held"], samples["webordinary_dead_letters"]) == (1, 0)
    assert up.stop() == 0
    again = start_up("--workers", "0", data=up.data)
    after = scrape(again)
    assert after["webordinary_workers_alive"] == 0
    for name in ("webordinary_mails_received_total", "webordinary_replies_sent_total", done):
        assert after[name] == 1, name
    assert after["webordinary_releases_total"] == 1, "told while it stopped, counted after"
    assert again.stop() == 0
