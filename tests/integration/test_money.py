"""What agents cost: all runs for one mail together, however they ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.site_house import SiteHouse, open_site_house
from webordinary.model.errors import Transient
from webordinary.model.hold import Hold
from webordinary.model.jobs import Outcome, Requeue, Why
from webordinary.site.task import AgentLimits, AgentResult, AgentTask

pytestmark = pytest.mark.needs("git")


class Spendthrift:
    """Pays and fails."""

    def __init__(self) -> None:
        self.left: list[float] = []

    def run(self, task: AgentTask, hold: Hold) -> AgentResult:
        self.left.append(task.limits.left_usd)
        task.spent(2.0)
        raise Transient("the model is away")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SiteHouse]:
    with open_site_house(tmp_path / "data") as house:
        yield house


def test_the_cap_on_one_mail_holds_for_all_its_starts(site: SiteHouse) -> None:
    agent, claims, now = Spendthrift(), site.services.pool.claims, site.services.clock.now
    site.kit = replace(site.kit, agents={"auto": agent}, limits=AgentLimits(cost_usd=3.0))
    started = site.begin("change the homepage title to Sale")
    work, hold = site.work(), site.hold(started)
    for _ in range(2):
        with pytest.raises(Transient):
            work.perform(started, hold)
        claims.end_and_take_next(started, Requeue(Why.RETRY), now(), more=False)
        again = claims.start_next(started.claim, now())
        assert again
        started = replace(started, job=again)
    settled = work.perform(started, hold)
    assert settled.outcome is Outcome.FAILED
    assert "more work than one mail may cost ($3.00)" in settled.result.summary
    assert settled.result.cost_usd == 4.0
    assert agent.left == [3.0, 1.0]
