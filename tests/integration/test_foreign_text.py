"""Text that is not UTF-8, from wherever it comes: refused in words or made clean, and nobody else notices."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.integration.site_house import SiteHouse, open_site_house
from tests.integration.test_cli_project import add
from tests.integration.test_site_job import Amelia
from webordinary.model.events import Event
from webordinary.model.hold import Hold
from webordinary.model.jobs import Outcome
from webordinary.site.agents.builtin import BuiltinAgent
from webordinary.site.kit import SiteKit
from webordinary.site.task import AgentResult, AgentTask, Answered, Asked, Changed

pytestmark = pytest.mark.needs("git")
TITLE = "change the homepage title to Spring Sale"
CAFE = b"caf\xe9.html"
DONE = Changed("Done.")


@dataclass
class Doing:
    """An agent that does one thing to the workspace, whatever it is asked."""

    do: Callable[[Path], object]
    result: AgentResult = DONE

    def run(self, task: AgentTask, hold: Hold) -> AgentResult:
        task.tell("looks at caf\udce9.html")
        self.do(task.workspace)
        return self.result


def _writes(name: bytes, content: bytes) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(content)

    return write


def _kit(amelia: Amelia, agent: Doing) -> SiteKit:
    return replace(amelia.kit(), agents={"builtin": agent})


def _commit_by_hand(repository: Path, name: bytes, content: bytes, scratch: Path) -> None:
    clone = scratch / "clone"
    person = ["-c", "user.name=P", "-c", "user.email=p@example.com"]
    subprocess.run(["git", "clone", "-q", str(repository), str(clone)], check=True)
    _writes(name, content)(clone)
    for args in (["add", "."], ["commit", "-qm", "By hand"], ["push", "-q", "origin", "HEAD:main"]):
        subprocess.run(["git", "-C", str(clone), *person, *args], check=True, capture_output=True)


def test_a_file_whose_name_is_not_utf_8_is_refused_in_words(tmp_path: Path) -> None:
    amelia = Amelia(tmp_path)
    settled = amelia.send("add a page", "job-1", kit=_kit(amelia, Doing(_writes(CAFE, b"Coffee"))))
    assert settled.outcome is Outcome.FAILED
    assert "no address could lead to caf?.html: its name is not written in UTF-8" in settled.result.summary
    assert amelia.send(TITLE, "job-2").outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        (b".gitattributes", b"* working-tree-encoding=UTF-16\n", "names an encoding that some of the files do not"),
        (b".gitattributes", b"*.html working-tree-encoding=UTF-16LE-BOM\n", "names an encoding that some of the"),
    ],
)
def test_attributes_that_git_cannot_follow_are_refused_in_words(
    tmp_path: Path, name: bytes, content: bytes, why: str
) -> None:
    amelia = Amelia(tmp_path)

    def write(folder: Path) -> None:
        _writes(name, content)(folder)
        (folder / "new.html").write_bytes(b"odd")

    settled = amelia.send("add it", "job-1", kit=_kit(amelia, Doing(write)))
    assert settled.outcome is Outcome.FAILED
    assert why in settled.result.summary
    assert amelia.send(TITLE, "job-2").outcome is Outcome.SUCCEEDED


def test_a_repository_without_commits_inside_the_site_is_refused_in_words(tmp_path: Path) -> None:
    amelia = Amelia(tmp_path)
    agent = Doing(lambda folder: subprocess.run(["git", "init", "-q", str(folder / "blog")], check=True))
    settled = amelia.send("add a blog", "job-1", kit=_kit(amelia, agent))
    assert settled.outcome is Outcome.FAILED
    assert "there is a repository inside the site" in settled.result.summary
    assert amelia.send(TITLE, "job-2").outcome is Outcome.SUCCEEDED


def test_a_name_of_old_that_is_not_utf_8_harms_nobody_and_can_be_taken_away(tmp_path: Path) -> None:
    amelia = Amelia(tmp_path)
    _commit_by_hand(amelia.origin, CAFE, b"<title>Coffee</title>", tmp_path)
    settled = amelia.send(TITLE, "job-1")
    assert settled.outcome is Outcome.SUCCEEDED
    assert settled.result.changed_files == ("index.html",)
    assert "Spring Sale" in amelia.page()
    removing = Doing(lambda folder: Path(os.fsdecode(os.fsencode(folder) + b"/" + CAFE)).unlink())
    settled = amelia.send("take the coffee page away", "job-2", kit=_kit(amelia, removing))
    assert settled.outcome is Outcome.SUCCEEDED
    assert settled.result.changed_files == ("caf?.html",)


@pytest.mark.parametrize(
    "result", [Changed("\ud800 caf\udce9"), Answered("\ud800 caf\udce9"), Asked("\ud800 caf\udce9")]
)
def test_what_an_agent_says_is_clean_before_anybody_stores_it(tmp_path: Path, result: AgentResult) -> None:
    with open_site_house(tmp_path) as house:
        house.kit = replace(house.kit, agents={"auto": Doing(_writes(b"a.html", b"A"), result)})
        job = house.mail("what is new?")
        assert job.outcome is Outcome.SUCCEEDED
        assert job.result
        assert job.result.summary.endswith("? caf?")
        house.services.events.close()
        words = [event.data["words"] for event in _told(house) if event.kind == "AgentProgress"]
        assert words == ["looks at caf?.html"]


def test_a_question_about_a_page_in_another_encoding_reaches_its_customer(tmp_path: Path) -> None:
    page = "<title>Käse</title><h2>Würste</h2><ul><li>Käse</li></ul><h2>Brötchen</h2><ul><li>Brot</li></ul>"
    with open_site_house(tmp_path) as house:
        origin = tmp_path / "origins" / "amelia.git"
        _commit_by_hand(origin, b"index.html", page.encode("latin-1"), tmp_path / "scratch")
        house.kit = replace(house.kit, agents={"auto": BuiltinAgent()})
        job = house.mail("add “Wurst” to the list")
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


def _told(house: SiteHouse) -> list[Event]:
    return [logged.event for logged in house.services.event_log.after(0, 1000)]
