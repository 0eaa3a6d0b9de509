"""A site in a folder of its repository: only that folder is shown, changed, taken back and rolled back."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.amelia import Amelia
from tests.integration.test_cli_project import add, repo
from tests.unit.jobs.fixtures import OTHER_THREAD
from webordinary.adapters.git.revert import GitSourceRollback
from webordinary.entrypoints.cli import main
from webordinary.jobs.site_files import Stage
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import InvalidName, Permanent
from webordinary.model.jobs import JobOutcome
from webordinary.model.mail import Command
from webordinary.model.projects import site_folder

pytestmark = pytest.mark.needs("git")
__all__ = ["repo"]
IDENTITY = ("-c", "user.name=dev", "-c", "user.email=dev@example.com")


class Workshop(Amelia):
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


def test_a_site_is_added_with_its_folder_and_no_two_sites_share_a_repository(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare, data = tmp_path / "bare.git", tmp_path / "data"
    (repo / "apps").mkdir()
    (repo / "index.html").rename(repo / "apps" / "index.html")
    subprocess.run(["git", "-C", repo, "add", "-A"], check=True)
    subprocess.run(["git", "-C", repo, *IDENTITY, "commit", "-q", "-m", "moved"], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", repo, bare], check=True)
    flags = ["--repo", str(bare), "--user", "ann", "--sender", "ann@example.com", "--data", str(data)]
    assert main(["project", "add", "kiln", *flags, "--folder", "app"]) == 0
    assert "There is no folder app in the site's repository" in capsys.readouterr().out
    assert main(["project", "add", "kiln", *flags, "--folder", "/apps/"]) == 0
    assert "kiln#ann is ready" in capsys.readouterr().out
    assert (data / "sites/kiln/edit/current/index.html").read_text() == "<title>Kiln</title>"
    assert main(["project", "show", "kiln", "--data", str(data)]) == 0
    assert "apps" in capsys.readouterr().out
    assert main(["project", "add", "kiln", *flags, "--folder", "other"]) == 1
    assert "remove it, then add it with its folder" in capsys.readouterr().err
    assert add(data, bare, name="oven") == 1
    assert "is the repository of kiln: each site needs one of its own" in capsys.readouterr().err


@pytest.mark.parametrize("odd", ["../x", "a/../../b", ".git", "a/.Git/b", "x" * 300, "a\nb"])
def test_a_folder_leads_nowhere_else(odd: str) -> None:
    with pytest.raises(InvalidName):
        site_folder(odd)
    assert [site_folder(text) for text in ("", "/", ".", "apps/web/", "./apps//web")] == ["", "", "", *["apps/web"] * 2]
