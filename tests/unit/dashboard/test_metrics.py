"""The text that Prometheus reads."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

from starlette.testclient import TestClient

from tests.unit.dashboard.tables import NOON, DashboardTables, lively
from webordinary.adapters.sqlite.events import SqliteLevels, SqliteMetrics
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.model.jobs import JobState
from webordinary.model.snapshot import Levels, UnclaimedQueue
from webordinary.pool.metrics import CountedEvent, MetricsRecorder, MetricsState, exposition

LEVELS = Levels(
    UnclaimedQueue(2, NOON - timedelta(seconds=8)),
    claims_held=3,
    workers_alive=1,
    jobs={JobState.PREPARING: 0, JobState.QUEUED: 4, JobState.RUNNING: 1},
    oldest_queued_at=None,
    mails_in_flight=5,
    replies_unsent=0,
    replies_given_up=0,
    dead_letters=1,
)
METRIC = re.compile(r"webordinary_[a-z_]+")
SAMPLE = re.compile(r'([a-z_]+)(\{[a-z]+="[^"\n]*"(?:,[a-z]+="[^"\n]*")*\})? (-?\d+(?:\.\d+)?(?:e-?\d+)?)')


def read(text: str) -> dict[str, float]:
    """Read the format strictly: every sample after its HELP and TYPE, every family once, no line unknown."""
    samples: dict[str, float] = {}
    families: dict[str, str] = {}
    family = ""
    for line in text.removesuffix("\n").split("\n"):
        if found := re.fullmatch(r"# HELP ([a-z_]+) \S.*", line):
            family = found[1]
            assert family not in families
        elif found := re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge|histogram)", line):
            assert found[1] == family
            families[family] = found[2]
        else:
            found = SAMPLE.fullmatch(line)
            assert found, line
            parts = ("_bucket", "_sum", "_count") if families[family] == "histogram" else ("",)
            assert found[1] in {family + part for part in parts}
            assert (families[family] == "counter") == family.endswith("_total")
            assert found[1] + (found[2] or "") not in samples
            samples[found[1] + (found[2] or "")] = float(found[3])
    return samples


def test_levels_counts_and_histograms_are_told_in_the_text_format() -> None:
    tally = MetricsState()
    for seq, (kind, data) in enumerate(
        [
            ("ClaimTaken", '{"waited_ms": 30}'),
            ("ClaimTakenOver", '{"waited_ms": 70000}'),
            ("ClaimRaceLost", "{}"),
            ("JobSettled", '{"outcome": "dead", "latency_ms": 1}'),
        ],
        start=1,
    ):
        tally.count(CountedEvent(seq, kind, data))
    samples = read(exposition(LEVELS, tally, NOON))
    assert samples["webordinary_unclaimed_depth"] == 2
    assert samples["webordinary_unclaimed_oldest_age_seconds"] == 8
    assert samples['webordinary_jobs{state="queued"}'] == 4
    assert samples["webordinary_dead_letters"] == 1
    assert samples['webordinary_claim_attempts_total{result="success"}'] == 2
    assert samples['webordinary_claim_attempts_total{result="failure"}'] == 1
    assert samples["webordinary_takeovers_total"] == 1
    assert samples['webordinary_time_to_claim_seconds_bucket{le="0.05"}'] == 1
    assert samples['webordinary_time_to_claim_seconds_bucket{le="60.0"}'] == 1
    assert samples['webordinary_time_to_claim_seconds_bucket{le="+Inf"}'] == 2
    assert samples["webordinary_time_to_claim_seconds_sum"] == 70.03
    assert samples["webordinary_time_to_claim_seconds_count"] == 2
    assert samples['webordinary_job_latency_seconds_count{outcome="dead"}'] == 1


def test_before_anything_happened_counters_are_there_and_zero() -> None:
    samples = read(exposition(LEVELS, MetricsState(), NOON))
    assert samples["webordinary_interrupts_total"] == 0
    assert samples["webordinary_idle_before_release_seconds_count"] == 0


def test_the_page_serves_what_the_database_holds(world: DashboardTables) -> None:
    lively(world)
    levels, meter = SqliteLevels(world.database), MetricsRecorder(SqliteMetrics(world.database))
    dashboard = world.dashboard(metrics=lambda: exposition(levels.look(2), meter.read(), world.now))
    with TestClient(create_app(dashboard), base_url="http://127.0.0.1:8080") as page:
        answer = page.get("/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        samples = read(answer.text)
        assert samples["webordinary_mails_in_flight"] == 2
        assert samples["webordinary_mails_received_total"] == 6
        assert samples['webordinary_jobs{state="running"}'] == 1
        assert samples["webordinary_claims_held"] == 1
        assert page.post("/metrics").status_code in (403, 405)
        assert page.get("/metrics", headers={"Host": "evil.example"}).status_code == 421
        assert page.get("/metrics", headers={"Host": "edit.amelia.localhost"}).status_code == 404


def test_every_metric_of_the_grafana_board_is_served_and_no_panel_overlaps_another() -> None:
    board = json.loads((Path(__file__).parents[3] / "examples/server/grafana.json").read_text())
    tally = MetricsState()
    tally.count(CountedEvent(1, "JobSettled", '{"outcome": "succeeded", "latency_ms": 1}'))
    served = {name.partition("{")[0] for name in read(exposition(LEVELS, tally, NOON))}
    asked = {name for panel in board["panels"] for one in panel["targets"] for name in METRIC.findall(one["expr"])}
    assert asked <= served
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in board["panels"])
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
