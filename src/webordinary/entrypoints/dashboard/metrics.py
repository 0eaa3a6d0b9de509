"""`GET /metrics`: levels and counts in the text format that Prometheus reads (version 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from webordinary.model.snapshot import Levels
from webordinary.pool.metrics import BUCKETS, Histogram, MetricsState

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "webordinary_"

# name, help, then the events that count for it, each with its labels
COUNTERS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("mails_received_total", "Mails accepted.", {"MailReceived": ""}),
    (
        "mails_refused_total",
        "Mails refused or held.",
        {"MailRefused": 'verdict="refused"', "MailHeld": 'verdict="held"'},
    ),
    ("jobs_queued_total", "Times that a job was queued.", {"JobQueued": ""}),
    (
        "claim_attempts_total",
        "Attempts to claim a key; a lost race is normal.",
        {"ClaimTaken": 'result="success"', "ClaimTakenOver": 'result="success"', "ClaimRaceLost": 'result="failure"'},
    ),
    ("takeovers_total", "Keys taken over from a lost worker.", {"ClaimTakenOver": ""}),
    ("yields_total", "Claims given up for another key.", {"ClaimYielded": ""}),
    ("releases_total", "Claims released because they were idle or the worker stopped.", {"ClaimReleased": ""}),
    ("renewal_failures_total", "Leases that could not be renewed.", {"ClaimRenewalFailed": ""}),
    ("claims_lost_total", "Claims that ended under a running job.", {"ClaimLost": ""}),
    ("interrupts_total", "Jobs interrupted by another thread's mail.", {"JobInterrupted": ""}),
    ("breaker_opened_total", "Times that a worker paused because of repeated errors.", {"BreakerOpened": ""}),
    ("dead_letters_total", "Items given up.", {"DeadLettered": ""}),
    ("redrives_total", "Dead letters redriven.", {"DeadLetterRedriven": ""}),
    ("replies_sent_total", "Replies sent.", {"ReplySent": ""}),
    ("workers_started_total", "Workers started.", {"WorkerStarted": ""}),
    ("workers_died_total", "Workers that ended without signing off.", {"WorkerDied": ""}),
)
HISTOGRAMS = (
    ("time_to_claim", "Seconds from queued to claimed, for jobs that found their key unclaimed.", ""),
    ("idle_before_release", "Seconds that a claim was idle before it was released or yielded.", ""),
    ("job_latency", "Seconds from queued to settled.", "outcome"),
)


def exposition(levels: Levels, tally: MetricsState | None, now: datetime) -> str:
    """Everything there is to measure; CloudWatch may have the counts instead."""
    counted = [*_counters(tally), *_histograms(tally)] if tally else ["# CloudWatch counts what happened"]
    lines = [*_levels(levels, now), *counted]
    return "\n".join(lines) + "\n"


def _levels(levels: Levels, now: datetime) -> Iterator[str]:
    yield from _gauge("unclaimed_depth", "Keys in the unclaimed queue.", levels.unclaimed.depth)
    age = _age(levels.unclaimed.oldest_since, now)
    yield from _gauge("unclaimed_oldest_age_seconds", "Age of the oldest of them.", age)
    yield from _head("jobs", "Open jobs.", "gauge")
    for state, count in levels.jobs.items():
        yield f'{PREFIX}jobs{{state="{state}"}} {count}'
    yield from _gauge("queued_oldest_age_seconds", "Age of the oldest queued job.", _age(levels.oldest_queued_at, now))
    yield from _gauge("claims_held", "Claims held.", levels.claims_held)
    yield from _gauge("workers_alive", "Workers whose process lives.", levels.workers_alive)
    yield from _gauge("mails_in_flight", "Mails not finished yet.", levels.mails_in_flight)
    yield from _gauge("replies_unsent", "Replies that wait to be delivered.", levels.replies_unsent)
    yield from _gauge("replies_given_up", "Replies that could not be delivered.", levels.replies_given_up)
    yield from _gauge("dead_letters", "Dead letters neither redriven nor dropped.", levels.dead_letters)


def _counters(tally: MetricsState) -> Iterator[str]:
    for name, about, kinds in COUNTERS:
        yield from _head(name, about, "counter")
        counts: dict[str, int] = {}
        for kind, labels in kinds.items():
            counts[labels] = counts.get(labels, 0) + tally.kinds[kind]
        for labels, count in counts.items():
            yield f"{PREFIX}{name}{{{labels}}} {count}" if labels else f"{PREFIX}{name} {count}"


def _histograms(tally: MetricsState) -> Iterator[str]:
    for name, about, label in HISTOGRAMS:
        full = f"{name}_seconds"
        yield from _head(full, about, "histogram")
        measured = tally.histograms.get(name, {})
        for value, histogram in measured.items() if measured or label else [("", Histogram())]:
            yield from _buckets(full, f'{label}="{_escaped(value)}"' if label else "", histogram)


def _buckets(name: str, labels: str, histogram: Histogram) -> Iterator[str]:
    below, comma = 0, "," if labels else ""
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), histogram.buckets, strict=True):
        below += count
        yield f'{PREFIX}{name}_bucket{{{labels}{comma}le="{bound}"}} {below}'
    suffix = f"{{{labels}}}" if labels else ""
    yield f"{PREFIX}{name}_sum{suffix} {round(histogram.total_seconds, 6)}"
    yield f"{PREFIX}{name}_count{suffix} {below}"


def _gauge(name: str, about: str, value: float | None) -> Iterator[str]:
    if value is not None:
        yield from _head(name, about, "gauge")
        yield f"{PREFIX}{name} {value}"


def _head(name: str, about: str, kind: str) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {about}"
    yield f"# TYPE {PREFIX}{name} {kind}"


def _age(since: datetime | None, now: datetime) -> float:
    return round(max(0.0, (now - since).total_seconds()), 3) if since else 0


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
