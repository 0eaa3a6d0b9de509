"""Any agent that speaks the protocol: a small real one of our own, well-behaved and otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.extras import needs_extra
from tests.fakes.cancel_token import FakeCancelToken
from tests.harness.chaos import until
from webordinary.adapters.agents import acp_agent as driver
from webordinary.adapters.agents.acp_agent import AcpAgent, AcpSettings
from webordinary.adapters.agents.session_store import SessionStore
from webordinary.adapters.files.stores import FolderSessionFiles
from webordinary.adapters.sandbox.bubblewrap import python
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox, UnconfinedSandbox
from webordinary.jobs.ports import (
    AgentLimits,
    AgentResult,
    AgentTask,
    Answered,
    Asked,
    AttachedFile,
    Changed,
    NotUnderstood,
)
from webordinary.model.errors import Interrupted, JobTimedOut, Permanent, Transient
from webordinary.model.mail import Attachment, AttachmentKind
from webordinary.operations.sample import sample_photo

needs_extra("acp", "acp")
pytestmark = pytest.mark.needs("bwrap")
PROGRAM = Path(__file__).with_name("acp_agent.py")
Ask = Callable[..., AgentResult]


class AcpSite:
    """A site and an agent for it, in a jail or not."""

    def __init__(self, folder: Path, jailed: bool) -> None:
        self.folder, self.jailed = folder, jailed
        self.site = folder / "site"
        self.site.mkdir()
        self.page = self.site / "index.html"
        self.page.write_text("<h1>Pots</h1>\n")
        self.told: list[str] = []
        self.spent: list[float] = []

    def ask(
        self, wish: str, *flags: str, token: FakeCancelToken | None = None, files: tuple[AttachedFile, ...] = (),
        limits: AgentLimits | None = None, worker: str = "w-1", grace: float = 60.0,
    ) -> AgentResult:  # fmt: skip
        jail = BubblewrapSandbox(worker, self.folder / worker / "jail", readable=[PROGRAM])
        homes = SessionStore(FolderSessionFiles(self.folder / "kept"), self.folder / worker / "agents")
        settings = AcpSettings([python(), str(PROGRAM), *flags], sandboxed=self.jailed, grace_seconds=grace)
        task = AgentTask(
            wish, self.site, files, limits=limits or AgentLimits(), project_id="amelia", thread_id="a" * 16,
            tell=self.told.append, spent=self.spent.append,
        )  # fmt: skip
        return AcpAgent(jail if self.jailed else UnconfinedSandbox(worker), homes, settings).run(
            task, token or FakeCancelToken()
        )


@pytest.fixture(params=["jailed", "open"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> AcpSite:
    return AcpSite(tmp_path, request.param == "jailed")


@pytest.fixture
def jailed(tmp_path: Path) -> AcpSite:
    return AcpSite(tmp_path, True)


def test_it_edits_through_us_and_says_what_it_did(world: AcpSite) -> None:
    result = world.ask("edit")
    assert isinstance(result, Changed)
    assert result.summary == "The title is Sale now."
    assert result.cost_usd == 0.25
    assert world.spent == [0.25]
    assert world.page.read_text() == "<h1>Sale</h1>\n"
    assert world.told == ["edit", "writes index.html"]


def test_a_question_goes_back_to_the_customer(jailed: AcpSite) -> None:
    result = jailed.ask("ask")
    assert isinstance(result, Asked)
    assert result.question == "Which title?"


def test_a_reply_goes_on_with_the_session_on_another_worker(jailed: AcpSite) -> None:
    first = jailed.ask("edit")
    second = jailed.ask("reply", worker="w-2")
    assert isinstance(second, Answered)
    assert second.text == "You asked before: edit"
    assert second.session == first.session
    assert second.cost_usd == 0.0
    assert jailed.ask("edit").cost_usd == pytest.approx(0.5), "its share of what the session cost in all"


def test_pictures_are_seen_and_can_be_taken(jailed: AcpSite) -> None:
    blob = jailed.folder / "blob"
    blob.write_bytes(sample_photo())
    attachment = Attachment("cup.jpg", "image/jpeg", AttachmentKind.IMAGE, 1, "0" * 64)
    result = jailed.ask("see", files=(AttachedFile(attachment, blob),))
    assert isinstance(result, Changed), "a file differs, though nothing was said about that"
    assert result.summary == "I saw image/jpeg"
    assert (jailed.site / "photo.jpg").read_bytes() == sample_photo()


class WhenReady(threading.Thread):
    """Ends the hold once the agent says, by a file, that it works."""

    def __init__(self, ready: Path, token: FakeCancelToken) -> None:
        super().__init__()
        self._ready, self._hold = ready, token

    def run(self) -> None:
        until(self._ready.exists, "the agent to work", 120)
        self._hold.end(Interrupted("a newer mail"))


def running(word: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if word.encode() in (entry / "environ").read_bytes():
                    return True
            except OSError:
                continue
    return False


def test_an_interrupt_is_told_by_the_protocol_and_the_session_goes_on(world: AcpSite) -> None:
    token = FakeCancelToken()
    interrupter = WhenReady(world.site / "ready", token)
    interrupter.start()
    with pytest.raises(Interrupted):
        world.ask("wait", token=token)
    interrupter.join()
    result = world.ask("reply", worker="w-2")
    assert isinstance(result, Answered)
    assert result.text == "You asked before: wait"
    assert not running(str(world.folder))


def test_one_that_does_not_listen_is_killed(world: AcpSite) -> None:
    token = FakeCancelToken()
    interrupter = WhenReady(world.site / "ready", token)
    interrupter.start()
    with pytest.raises(Interrupted):
        world.ask("hang", token=token, grace=0.3)
    interrupter.join()
    assert not running(str(world.folder))


def test_out_of_time_it_is_ended(jailed: AcpSite) -> None:
    with pytest.raises(JobTimedOut):
        jailed.ask("hang", limits=AgentLimits(seconds=1.0), grace=0.2)
    with pytest.raises(JobTimedOut):
        jailed.ask("wait", limits=AgentLimits(seconds=1.0))


def test_mischief_gets_nowhere(world: AcpSite) -> None:
    (world.site / ".git").mkdir()
    outside = world.folder / "outside.txt"
    outside.write_text("as it was")
    result = world.ask("mischief")
    assert isinstance(result, Answered)
    assert result.text == "[]"
    assert outside.read_text() == "as it was"


@pytest.mark.parametrize("wish", ["flood", "shout"])
def test_one_that_talks_without_end_is_ended(jailed: AcpSite, wish: str) -> None:
    with pytest.raises(Permanent, match=r"without end|more than"):
        jailed.ask(wish)


def test_a_crash_is_tried_again_with_its_last_words(jailed: AcpSite) -> None:
    with pytest.raises(Transient, match="no kiln today"):
        jailed.ask("crash")


def test_what_a_crashed_run_cost_is_written_down(jailed: AcpSite) -> None:
    with pytest.raises(Transient):
        jailed.ask("spend_and_crash")
    assert jailed.spent == [0.5]


def test_a_bill_of_an_acp_agent_that_makes_no_sense_counts_as_nothing(jailed: AcpSite) -> None:
    result = jailed.ask("overcharge")
    assert isinstance(result, Answered), "its work is not called off for it"
    assert jailed.spent == [0.25]
    assert "counts as 0" in jailed.told[0]


def test_what_earlier_runs_for_the_mail_cost_counts(jailed: AcpSite) -> None:
    capped = jailed.ask("spend", limits=AgentLimits(cost_usd=60.0, spent_usd=20.0))
    assert isinstance(capped, NotUnderstood)
    assert "may cost ($60.00)" in capped.text


def test_caps_on_cost_and_steps_call_it_off(jailed: AcpSite) -> None:
    costly = jailed.ask("spend", limits=AgentLimits(cost_usd=5.0))
    assert isinstance(costly, NotUnderstood)
    assert "may cost ($5.00)" in costly.text
    assert costly.cost_usd == 50.0
    long = jailed.ask("toil", limits=AgentLimits(turns=10))
    assert isinstance(long, NotUnderstood)
    assert "10 steps" in long.text


def test_what_the_operator_must_mend_is_said(jailed: AcpSite) -> None:
    with pytest.raises(Permanent, match="logged in"):
        jailed.ask("edit", "--locked")
    with pytest.raises(Permanent, match="version 99"):
        jailed.ask("edit", "--future")
    with pytest.raises(Permanent, match="agent_command"):
        AcpAgent(
            UnconfinedSandbox("w-1"),
            SessionStore(FolderSessionFiles(jailed.folder / "k"), jailed.folder / "s"),
            AcpSettings([]),
        )
    assert driver.MISSING.endswith("'webordinary[acp]'")
