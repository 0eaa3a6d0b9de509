"""Text that is not UTF-8, from wherever it comes: refused in words or made clean, and nobody else notices."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.harness.sample_project import SampleProject
from tests.harness.site import SiteHarness, open_site_harness
from tests.integration.test_cli_project import add
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.jobs.ports import AgentResult, AgentTask, Answered, Asked, Changed
from webordinary.jobs.run import JobDeps
from webordinary.jobs.site_files import Stage
from webordinary.model.claims import CancelToken
from webordinary.model.events import Event
from webordinary.model.jobs import JobOutcome

pytestmark = pytest.mark.needs("git")
TITLE = "change the homepage title to Spring Sale"
CAFE = b"caf\xe9.html"
DONE = Changed("Done.")


@dataclass
class Doing:
    """An agent that does one thing to the workspace, whatever it is asked."""

    do: Callable[[Path], object]
    result: AgentResult = DONE

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        task.tell("looks at caf\udce9.html")
        self.do(task.workspace)
        return self.result


def _writes(name: bytes, content: bytes) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(content)

    return write


def _kit(amelia: SampleProject, agent: Doing) -> JobDeps:
    return replace(amelia.deps(), agents={"builtin": agent})


def _commit_by_hand(repository: Path, name: bytes, content: bytes, scratch: Path) -> None:
    clone = scratch / "clone"
    person = ["-c", "user.name=P", "-c", "user.email=p@example.com"]
    subprocess.run(["git", "clone", "-q", str(repository), str(clone)], check=True)
    _writes(name, content)(clone)
    for args in (["add", "."], ["commit", "-qm", "By hand"], ["push", "-q", "origin", "HEAD:main"]):
        subprocess.run(["git", "-C", str(clone), *person, *args], check=True, capture_output=True)


def test_a_file_whose_name_is_not_utf_8_is_refused_in_words(tmp_path: Path) -> None:
    amelia = SampleProject(tmp_path)
    settled = amelia.send("add a page", "job-1", deps=_kit(amelia, Doing(_writes(CAFE, b"Coffee"))))
    assert settled.outcome is JobOutcome.FAILED
    assert "no address could lead to caf?.html: its name is not written in UTF-8" in settled.result.summary
    assert amelia.send(TITLE, "job-2").outcome is JobOutcome.SUCCEEDED


@pytest.mark.parametrize(
    "attributes",
    [
        b"* working-tree-encoding=UTF-16\n",
        b"*.html working-tree-encoding=UTF-16LE-BOM\n",
        b"[attr]odd text eol=crlf ident\n*.html odd\n",
        b"* text=auto eol=lf crlf=input\n",
    ],
)
def test_whatever_attributes_a_tree_has_files_are_stored_and_shown_byte_by_byte(
    tmp_path: Path, attributes: bytes
) -> None:
    amelia = SampleProject(tmp_path)
    page = b"one\r\ntwo\n$Id$ \xc3\xa9\xff\n"

    def write(folder: Path) -> None:
        (folder / ".gitattributes").write_bytes(attributes)
        (folder / "new.html").write_bytes(page)

    settled = amelia.send("add it", "job-1", deps=_kit(amelia, Doing(write)))
    assert settled.outcome is JobOutcome.SUCCEEDED
    stored = ["git", "-C", str(amelia.origin), "cat-file", "blob", "main:new.html"]
    assert subprocess.run(stored, check=True, capture_output=True).stdout == page
    assert amelia.send(TITLE, "job-2", deps=amelia.deps("w-2"), worker="w-2", fence=11).outcome is JobOutcome.SUCCEEDED
    shown = amelia.releases.current("amelia", Stage.EDIT)
    assert shown is not None
    assert (shown / "new.html").read_bytes() == page


def test_a_repository_that_an_agent_makes_inside_the_site_becomes_plain_files(tmp_path: Path) -> None:
    amelia = SampleProject(tmp_path)

    def blog(folder: Path) -> None:
        subprocess.run(["git", "init", "-q", str(folder / "blog")], check=True)
        (folder / "blog" / "index.html").write_text("Blog")

    settled = amelia.send("add a blog", "job-1", deps=_kit(amelia, Doing(blog)))
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.changed_files == ("blog/index.html",)


def test_a_name_that_git_does_not_store_is_refused_in_words(tmp_path: Path) -> None:
    amelia = SampleProject(tmp_path)
    agent = Doing(lambda folder: (folder / ".gitmodules").symlink_to("index.html"))
    settled = amelia.send("add it", "job-1", deps=_kit(amelia, agent))
    assert settled.outcome is JobOutcome.FAILED
    assert "some of the files have names that git does not take" in settled.result.summary
    assert amelia.send(TITLE, "job-2").outcome is JobOutcome.SUCCEEDED


def test_a_name_of_old_that_is_not_utf_8_harms_nobody_and_can_be_taken_away(tmp_path: Path) -> None:
    amelia = SampleProject(tmp_path)
    _commit_by_hand(amelia.origin, CAFE, b"<title>Coffee</title>", tmp_path)
    settled = amelia.send(TITLE, "job-1")
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.changed_files == ("index.html",)
    assert "Spring Sale" in amelia.page()
    removing = Doing(lambda folder: Path(os.fsdecode(os.fsencode(folder) + b"/" + CAFE)).unlink())
    settled = amelia.send("take the coffee page away", "job-2", deps=_kit(amelia, removing))
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.changed_files == ("caf?.html",)


@pytest.mark.parametrize(
    "result", [Changed("\ud800 caf\udce9"), Answered("\ud800 caf\udce9"), Asked("\ud800 caf\udce9")]
)
def test_what_an_agent_says_is_clean_before_anybody_stores_it(tmp_path: Path, result: AgentResult) -> None:
    with open_site_harness(tmp_path) as harness:
        harness.deps = replace(harness.deps, agents={"auto": Doing(_writes(b"a.html", b"A"), result)})
        job = harness.mail("what is new?")
        assert job.outcome is JobOutcome.SUCCEEDED
        assert job.result
        assert job.result.summary.endswith("? caf?")
        harness.services.events.close()
        words = [event.data["words"] for event in _told(harness) if event.kind == "AgentProgress"]
        assert words == ["looks at caf?.html"]


def test_a_question_about_a_page_in_another_encoding_reaches_its_customer(tmp_path: Path) -> None:
    page = "<title>Käse</title><h2>Würste</h2><ul><li>Käse</li></ul><h2>Brötchen</h2><ul><li>Brot</li></ul>"
    with open_site_harness(tmp_path) as harness:
        origin = tmp_path / "origins" / "amelia.git"
        _commit_by_hand(origin, b"index.html", page.encode("latin-1"), tmp_path / "scratch")
        harness.deps = replace(harness.deps, agents={"auto": BuiltinAgent()})
        job = harness.mail("add “Wurst” to the list")
        assert job.result
        assert "begins with “K" in job.result.summary


def test_a_site_with_a_name_that_is_not_utf_8_is_added_and_the_operator_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("<title>Kiln</title>")
    _writes(CAFE, b"Coffee")(folder)
    assert add(tmp_path / "data", folder) == 0
    said = capsys.readouterr()
    assert "kiln#ann is ready" in said.out
    assert "not shown, as no address leads to a name that is not UTF-8: caf?.html" in said.out


def _told(harness: SiteHarness) -> list[Event]:
    return [logged.event for logged in harness.services.event_log.after(0, 1000)]
