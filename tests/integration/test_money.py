"""What agents cost: all runs for one mail together, however they ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.site import SiteHarness, open_site_harness
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.jobs.ports import AgentLimits, AgentResult, AgentTask
from webordinary.model.claims import CancelToken
from webordinary.model.errors import NotNow, Transient
from webordinary.model.jobs import DeferReason, JobOutcome, Requeue, RequeueReason

pytestmark = pytest.mark.needs("git")


class Spendthrift:
    """Pays and fails."""

    def __init__(self) -> None:
        self.left: list[float] = []

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        self.left.append(task.limits.left_usd)
        task.spent(2.0)
        raise Transient("the model is away")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SiteHarness]:
    with open_site_harness(tmp_path / "data") as harness:
        yield harness


def test_the_cap_on_one_mail_holds_for_all_its_starts(site: SiteHarness) -> None:
    agent, claims, now = Spendthrift(), site.services.pool.claims, site.services.clock.now
    site.deps = replace(site.deps, agents={"auto": agent}, limits=AgentLimits(cost_usd=3.0))
    started = site.begin("change the homepage title to Sale")
    work, token = site.work(), site.token(started)
    for _ in range(2):
        with pytest.raises(Transient):
            work.perform(started, token)
        claims.end_and_take_next(started, Requeue(RequeueReason.RETRY), now(), more=False)
        again = claims.start_next(started.claim, now())
        assert again
        started = again
    settled = work.perform(started, token)
    assert settled.outcome is JobOutcome.FAILED
    assert "more work than one mail may cost ($3.00)" in settled.result.summary
    assert settled.result.cost_usd == 4.0
    assert agent.left == [3.0, 1.0]


def test_a_day_without_a_setting_of_its_own_costs_at_most_20_dollars(site: SiteHarness) -> None:
    site.deps = replace(site.deps, agents={"auto": Spendthrift()})
    started, now = site.begin("change the homepage title to Sale"), site.services.clock.now()
    site.services.ledger.spend(started.job, 20.0, now)
    with pytest.raises(NotNow) as held:
        site.work().perform(started, site.token(started))
    assert held.value.held is DeferReason.BUDGET


def test_an_agent_that_costs_nothing_works_though_the_day_is_paid_for(site: SiteHarness) -> None:
    started, now = site.begin("change the homepage title to Sale"), site.services.clock.now()
    site.services.ledger.spend(started.job, 20.0, now)
    site.deps = replace(site.deps, agents={"auto": BuiltinAgent()}, limits=AgentLimits(cost_usd=100.0))
    assert site.work().perform(started, site.token(started)).outcome is JobOutcome.SUCCEEDED
