"""A site in a folder of its repository: only that folder is shown, changed, taken back and rolled back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.sample_project import SampleProject
from tests.integration.test_cli_project import add, repo
from tests.unit.jobs.fixtures import OTHER_THREAD
from webordinary.adapters.agents.builtin.agent import BuiltinAgent
from webordinary.adapters.git.origins import GitSourceRollback
from webordinary.adapters.git.repository import QUICK_SECONDS
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.entrypoints.cli import main
from webordinary.jobs.ports import AgentResult, AgentTask, Changed
from webordinary.jobs.run import JobDeps
from webordinary.jobs.site_files import Stage
from webordinary.model.claims import CancelToken, ProjectLease
from webordinary.model.errors import InvalidName, Permanent
from webordinary.model.jobs import JobOutcome, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, site_folder

pytestmark = pytest.mark.needs("git")
__all__ = ["repo"]
IDENTITY = ("-c", "user.name=dev", "-c", "user.email=dev@example.com")


class Workshop(SampleProject):
    """Amelia's site in `apps/web` of a repository that has other things, too."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.copy = folder / "developer"
        subprocess.run(["git", "clone", "-q", self.origin, self.copy], check=True)
        (self.copy / "apps" / "web").mkdir(parents=True)
        for path in sorted(self.copy.glob("[!.]*")):
            if path.name != "apps":
                path.rename(self.copy / "apps" / "web" / path.name)
        self.push("notes.txt", "first")
        self.project = replace(self.project, folder="apps/web")

    def push(self, name: str, text: str) -> None:
        """A developer's commit."""
        subprocess.run(["git", "-C", self.copy, "pull", "-q"], check=True)
        (self.copy / name).write_text(text)
        subprocess.run(["git", "-C", self.copy, "add", "-A"], check=True)
        subprocess.run(["git", "-C", self.copy, *IDENTITY, "commit", "-q", "-m", "by hand"], check=True)
        subprocess.run(["git", "-C", self.copy, "push", "-q"], check=True)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_a_mail_changes_the_sites_folder_and_nothing_beside_it_is_shown(workshop: Workshop) -> None:
    settled = workshop.send("change the homepage title to Spring Sale", "job-1")
    assert settled.outcome is JobOutcome.SUCCEEDED, settled.result
    assert settled.result.changed_files == ("index.html",)
    assert workshop.git("show", "--format=", "--name-only", "main") == "apps/web/index.html"
    assert "<h1>Spring Sale</h1>" in workshop.page()
    shown = workshop.releases.current("amelia", Stage.EDIT)
    assert shown
    assert not (shown / "notes.txt").exists()
    assert not (shown / "apps").exists()
    assert workshop.send("publish", "job-2", command=Command.PUBLISH).outcome is JobOutcome.SUCCEEDED
    assert "<h1>Spring Sale</h1>" in workshop.page(stage=Stage.PUBLIC)
    workshop.check()


def test_a_change_in_a_folder_is_undone_by_the_address_of_its_page(workshop: Workshop) -> None:
    workshop.send("change the homepage title to Spring Sale", "job-1")
    workshop.send('set the heading on the about page to "Who we are"', "job-2")
    settled = workshop.send("undo /about.html", "job-3", command=Command.UNDO, named="/about.html")
    assert settled.outcome is JobOutcome.SUCCEEDED, settled.result
    assert "Who we are" not in workshop.page("about.html")
    assert "<h1>Spring Sale</h1>" in workshop.page()


def test_going_back_leaves_what_developers_did_beside_the_site(workshop: Workshop) -> None:
    first = workshop.send("change the homepage title to Spring Sale", "job-1").result.commit
    assert first
    workshop.send("change the homepage title to Autumn", "job-2", thread=OTHER_THREAD)
    workshop.push("notes.txt", "second")
    rollback, lease = (
        GitSourceRollback(workshop.folder / "mirrors", "operator"),
        ProjectLease("amelia", "operator", 10**12),
    )
    assert rollback.restore(workshop.project, Stage.EDIT, first, lease)
    assert "Spring Sale" in workshop.git("show", "main:apps/web/index.html")
    assert workshop.git("show", "main:notes.txt") == "second"
    assert rollback.restore(workshop.project, Stage.EDIT, first, lease) is None, "again is harmless"


def test_an_agent_is_not_let_out_by_a_folder_that_became_a_link(workshop: Workshop) -> None:
    (workshop.copy / "apps" / "web").rename(workshop.copy / "apps" / "old")
    (workshop.copy / "apps" / "web").symlink_to(workshop.folder)
    workshop.push("notes.txt", "linked")
    with pytest.raises(Permanent, match="no folder apps/web"):
        workshop.send("change the homepage title to Spring Sale", "job-1")


ANN = ProjectUser("shop", "ann")
SHOP_THREAD = "5" * 16


class Neighbours(Workshop):
    """Beside Amelia's site, the one of Ann's shop in `apps/shop` of the same repository."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        shop = self.copy / "apps" / "shop"
        shop.mkdir()
        (shop / "index.html").write_text("<title>Shop</title>\n<h1>Shop</h1>\n<p>Open from 10 to 6.</p>\n")
        self.push("apps/shop/about.html", "<title>About</title>\n<h1>About</h1>\n")
        self.shop = Project("shop", str(self.origin), folder="apps/shop")

    def deps(self, worker: str = "w-1", quick_seconds: float = QUICK_SECONDS) -> JobDeps:
        both = {"amelia": self.project, "shop": self.shop}
        return replace(super().deps(worker, quick_seconds), project_of=both.__getitem__)

    def in_shop(self, text: str, job_id: str, command: Command = Command.EDIT, thread: str = SHOP_THREAD) -> Settlement:
        return self.send(text, job_id, command=command, key=ANN, thread=thread, worker="w-2", fence=20)

    def shop_page(self, stage: Stage = Stage.EDIT) -> str:
        current = self.releases.current("shop", stage)
        assert current
        return (current / "index.html").read_text()


@pytest.fixture
def neighbours(tmp_path: Path) -> Neighbours:
    return Neighbours(tmp_path)


def test_two_sites_of_one_repository_are_published_apart_and_neither_hears_of_the_other(neighbours: Neighbours) -> None:
    neighbours.send("change the homepage title to Spring Sale", "job-1")
    shop = neighbours.in_shop('set the heading on the home page to "Tea and cups"', "job-2")
    assert shop.outcome is JobOutcome.SUCCEEDED, shop.result
    published = neighbours.in_shop("publish all", "job-3", Command.PUBLISH)
    assert published.outcome is JobOutcome.SUCCEEDED, published.result
    assert "Tea and cups" in neighbours.shop_page(Stage.PUBLIC)
    assert neighbours.releases.current("amelia", Stage.PUBLIC) is None
    for told in (shop, published):
        assert "Spring" not in repr(told.result)
    neighbours.in_shop('set the heading on the home page to "Plates"', "job-4", thread="6" * 16)
    own = neighbours.send("publish", "job-5", command=Command.PUBLISH)
    assert "Spring Sale" in neighbours.page(stage=Stage.PUBLIC)
    assert "Plates" not in repr(own.result)
    assert "Tea and cups" in neighbours.shop_page(Stage.PUBLIC)
    heads = neighbours.git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/live*").split()
    assert heads == ["live-amelia", "live-shop"]


def test_going_back_on_one_site_of_a_repository_takes_nothing_from_the_other(neighbours: Neighbours) -> None:
    first = neighbours.in_shop('set the heading on the home page to "Tea and cups"', "job-1").result.commit
    assert first
    neighbours.send("change the homepage title to Spring Sale", "job-2")
    neighbours.in_shop('set the heading on the home page to "Plates"', "job-3", thread="6" * 16)
    rollback = GitSourceRollback(neighbours.folder / "mirrors", "operator")
    lease = ProjectLease("shop", "operator", 10**12)
    assert rollback.restore(neighbours.shop, Stage.EDIT, first, lease)
    assert "Spring Sale" in neighbours.git("show", "main:apps/web/index.html")
    assert "Tea and cups" in neighbours.git("show", "main:apps/shop/index.html")
    undone = neighbours.send("undo", "job-4", command=Command.UNDO)
    assert undone.outcome is JobOutcome.SUCCEEDED, undone.result
    assert "Spring Sale" not in neighbours.page()
    assert neighbours.send("undo", "job-5", command=Command.UNDO).result.commit is None, "that was the only one"


def test_a_job_puts_its_change_on_top_of_what_the_other_site_pushed_meanwhile(neighbours: Neighbours) -> None:
    class Slowly(BuiltinAgent):
        def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
            done = super().run(task, token)
            neighbours.in_shop('set the heading on the home page to "Tea and cups"', "job-2")
            return done

    deps = replace(neighbours.deps(), agents={"builtin": Slowly()})
    settled = neighbours.send("change the homepage title to Spring Sale", "job-1", deps=deps)
    assert settled.outcome is JobOutcome.SUCCEEDED, settled.result
    assert neighbours.jobs_on_main() == ["job-1", "job-2"]
    assert "Spring Sale" in neighbours.git("show", "main:apps/web/index.html")
    assert "Tea and cups" in neighbours.git("show", "main:apps/shop/index.html")
    assert "Spring Sale" in neighbours.page()


STORY = "<title>Our story</title>\n<h1>Our story</h1>\n" + "".join(f"<p>Part {part}.</p>\n" for part in range(20))


class Does(BuiltinAgent):
    """An agent that does something with the page `story.html`."""

    def __init__(self, deed: Callable[[Path], object]) -> None:
        self._deed = deed

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        self._deed(task.workspace / "story.html")
        return Changed("Done.")


def _remove_and_copy(neighbours: Neighbours, like: str) -> None:
    """A colleague removes the story of Amelia's site; the shop gets one that is much like it."""
    remove = replace(neighbours.deps("w-3"), agents={"builtin": Does(Path.unlink)})
    bob = ProjectUser("amelia", "bob")
    neighbours.send("remove", "job-r", deps=remove, thread=OTHER_THREAD, key=bob, worker="w-3", fence=30)
    write = replace(neighbours.deps("w-2"), agents={"builtin": Does(lambda page: page.write_text(like))})
    neighbours.send("copy", "job-c", deps=write, thread=SHOP_THREAD, key=ANN, worker="w-2", fence=20)


def test_what_git_takes_for_a_rename_brings_no_change_of_a_site_into_its_neighbour(neighbours: Neighbours) -> None:
    def does(deed: Callable[[Path], object]) -> JobDeps:
        return replace(neighbours.deps(), agents={"builtin": Does(deed)})

    def change_slowly(page: Path) -> None:
        page.write_text(STORY.replace("Part 3", "Part three"))
        if not neighbours.git("ls-tree", "main", "apps/shop/story.html"):
            _remove_and_copy(neighbours, like)

    like = STORY.replace("Our story", "The shop")
    neighbours.send("tell the story", "job-1", deps=does(lambda page: page.write_text(STORY)))
    neighbours.send("change it", "job-2", deps=does(change_slowly))
    assert neighbours.git("show", "main:apps/shop/story.html") == like.strip()
    assert "Part three" in neighbours.page("story.html")


def test_an_undo_reaches_no_page_of_a_neighbour_that_is_like_a_page_of_before(neighbours: Neighbours) -> None:
    def does(content: str) -> JobDeps:
        return replace(neighbours.deps(), agents={"builtin": Does(lambda page: page.write_text(content))})

    like = STORY.replace("Our story", "The shop").replace("Part 3", "Part three")
    neighbours.send("tell the story", "job-1", deps=does(STORY))
    neighbours.send("change it", "job-2", deps=does(STORY.replace("Part 3", "Part three")))
    _remove_and_copy(neighbours, like)
    undone = neighbours.send("undo", "job-3", command=Command.UNDO)
    assert undone.result.commit is None, undone.result
    assert neighbours.git("show", "main:apps/shop/story.html") == like.strip()


def test_a_publication_of_one_site_does_not_end_in_a_page_of_a_neighbour(neighbours: Neighbours) -> None:
    def does(content: str) -> JobDeps:
        return replace(neighbours.deps(), agents={"builtin": Does(lambda page: page.write_text(content))})

    neighbours.push("apps/shop/story.html", STORY.replace("Our story", "The shop"))
    neighbours.send("change the homepage title to Spring Sale", "job-1")
    neighbours.send("publish", "job-2", command=Command.PUBLISH)
    (neighbours.copy / "apps" / "shop" / "story.html").unlink()
    neighbours.push("notes.txt", "second")
    neighbours.send("tell the story", "job-3", deps=does(STORY), thread=OTHER_THREAD)
    neighbours.send("change it", "job-4", deps=does(STORY.replace("Part 3", "Part three")), thread="7" * 16)
    told = neighbours.send("publish", "job-5", command=Command.PUBLISH, thread="7" * 16)
    assert told.result.question, "the page itself is not public yet"
    assert "Part three" not in neighbours.git("show", "live-amelia:apps/shop/story.html")


def test_a_site_is_added_with_its_folder_and_sites_of_a_repository_lie_apart(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare, data = tmp_path / "bare.git", tmp_path / "data"
    (repo / "apps").mkdir()
    (repo / "index.html").rename(repo / "apps" / "index.html")
    subprocess.run(["git", "-C", repo, "add", "-A"], check=True)
    subprocess.run(["git", "-C", repo, *IDENTITY, "commit", "-q", "-m", "moved"], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", repo, bare], check=True)
    flags = ["--repo", str(bare), "--user", "ann", "--sender", "ann@example.com", "--data", str(data)]
    assert main(["project", "add", "kiln", *flags, "--folder", "app"]) == 1
    assert "has no folder app: there are apps" in capsys.readouterr().err
    assert main(["project", "list", "--data", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [], "nothing is kept of a mistyped folder"
    assert main(["project", "add", "kiln", *flags, "--folder", "/apps/"]) == 0
    assert "kiln#ann is ready" in capsys.readouterr().out
    assert (data / "sites/kiln/edit/current/index.html").read_text() == "<title>Kiln</title>"
    assert main(["project", "show", "kiln", "--data", str(data)]) == 0
    assert "apps" in capsys.readouterr().out
    assert main(["project", "add", "kiln", *flags, "--folder", "other"]) == 1
    assert "remove it, then add it with its folder" in capsys.readouterr().err
    assert add(data, bare, name="oven") == 1
    assert "is the repository of kiln, which lies in its folder apps" in capsys.readouterr().err
    (repo / "oven").mkdir()
    (repo / "oven" / "index.html").write_text("<title>Oven</title>")
    subprocess.run(["git", "-C", repo, "add", "-A"], check=True)
    subprocess.run(["git", "-C", repo, *IDENTITY, "commit", "-q", "-m", "another site"], check=True)
    subprocess.run(["git", "-C", repo, "push", "-q", bare, "HEAD"], check=True)
    flags[1] = str(tmp_path / "also.git")
    (tmp_path / "also.git").symlink_to(bare)
    for folder, code in (("apps/web", 1), ("", 1), ("oven", 0)):
        assert main(["project", "add", "oven", *flags, "--folder", folder]) == code, folder
    assert (data / "sites/oven/edit/current/index.html").read_text() == "<title>Oven</title>"
    with open_embedded(Config(data=data)) as services:  # as versions before this rule had it
        services.directory.add_project(Project("copy", str(bare)), services.clock.now())
    flags[3:6] = ["bob", "--sender", "bob@example.com"]
    assert main(["project", "add", "kiln", *flags]) == 0, "one more person"


@pytest.mark.parametrize(
    "address",
    ["git@git.example:ann/site", "ssh://git@git.example:22/ann/site.git/", "https://git@Git.example/Ann/site"],
)
def test_a_repository_of_another_site_is_known_however_its_address_is_written(
    tmp_path: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_embedded(Config(data=tmp_path)) as services:
        other = Project("kiln", "https://git.example/ann/site.git")
        services.directory.add_project(other, services.clock.now())
    assert add(tmp_path, address, name="oven") == 1
    assert "is the repository of kiln" in capsys.readouterr().err


@pytest.mark.parametrize("odd", ["../x", "a/../../b", ".git", "a/.Git/b", "x" * 300, "a\nb"])
def test_a_folder_leads_nowhere_else(odd: str) -> None:
    with pytest.raises(InvalidName):
        site_folder(odd)
    assert [site_folder(text) for text in ("", "/", ".", "apps/web/", "./apps//web")] == ["", "", "", *["apps/web"] * 2]
