from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.embedded import open_harness
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli import main
from webordinary.model.errors import Permanent
from webordinary.model.jobs import JobOutcome, JobResult, Settlement
from webordinary.model.names import ProjectUser
from webordinary.operations.mails import entitle


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    work = tmp_path / "site"
    subprocess.run(["git", "init", "-q", "-b", "main", work], check=True)
    (work / "index.html").write_text("<title>Kiln</title>")
    subprocess.run(["git", "add", "."], cwd=work, check=True)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *identity, "commit", "-q", "-m", "first"], cwd=work, check=True)
    return work


def add(data: Path, repo: Path | str, name: str = "kiln", user: str = "ann", sender: str = "Ann@Example.com") -> int:
    flags = ["--repo", str(repo), "--user", user, "--sender", sender, "--data", str(data)]
    return main(["project", "add", name, *flags])


def test_a_site_that_was_added_is_listed_and_shown(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    assert add(data, repo) == 0
    assert "kiln#ann is ready: mail from ann@example.com to edit@localhost changes it" in capsys.readouterr().out
    assert main(["project", "list", "--data", str(data)]) == 0
    assert "ann@example.com" in capsys.readouterr().out
    assert main(["project", "show", "kiln", "--data", str(data), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    [ann] = shown["senders"]
    assert ann == {"address": "ann@example.com", "user": "ann", "role": "both", "mailbox": "edit@localhost"}


def test_a_site_without_a_page_is_added_and_said_to_show_nothing(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "index.html").rename(repo / "notes.sh")
    subprocess.run(["git", "add", "-A"], cwd=repo, check=True)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *identity, "commit", "-q", "-m", "no page"], cwd=repo, check=True)
    assert add(tmp_path / "data", repo) == 0
    said = capsys.readouterr().out
    assert "is ready" not in said
    assert "nothing is shown there yet: " in said
    assert main(["project", "show", "kiln", "--data", str(tmp_path / "data")]) == 0
    log = capsys.readouterr().out.partition("Its last build")[2].splitlines()[1:]
    assert len(log) == len(set(log)) > 0


def test_an_empty_repository_is_shown_after_its_first_push_whatever_its_branch(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    origin, data = tmp_path / "new.git", tmp_path / "data"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "master", origin], check=True)
    assert add(data, origin) == 0
    assert "push a first page" in capsys.readouterr().out
    assert main(["release", "rebuild", "kiln", "--data", str(data)]) == 1
    subprocess.run(["git", "push", "-q", origin, "main"], cwd=repo, check=True)
    assert main(["release", "rebuild", "kiln", "--data", str(data)]) == 0
    [page] = data.glob("sites/kiln/edit/releases/*/index.html")
    assert page.read_text() == "<title>Kiln</title>"


@pytest.mark.may_skip(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_folder_of_another_user_is_refused_with_what_to_do(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (repo, *repo.rglob("*")):
        os.chown(path, 65534, 65534)
    assert add(tmp_path / "data", repo) == 1
    assert "belongs to another user" in capsys.readouterr().err


def test_a_folder_that_could_not_be_added_is_read_anew(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh, data = tmp_path / "fresh", tmp_path / "data"
    subprocess.run(["git", "init", "-q", "-b", "main", fresh], check=True)
    assert add(data, fresh) == 1
    assert "commit a first page" in capsys.readouterr().err
    subprocess.run(["git", "pull", "-q", repo, "main"], cwd=fresh, check=True)
    subprocess.run(["git", "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module"], cwd=fresh, check=True)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *identity, "commit", "-q", "-m", "a submodule"], cwd=fresh, check=True)
    assert add(data, fresh) == 1
    subprocess.run(["git", "reset", "-q", "--hard", "HEAD~1"], cwd=fresh, check=True)
    assert add(data, fresh) == 0


def test_a_person_with_two_sites_is_shown_with_the_address_of_each(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    for name, sender in (("kiln", "ann@example.com"), ("kiln", "bob@example.com"), ("oven", "ann@example.com")):
        assert add(data, repo, name, sender.partition("@")[0], sender) == 0
    capsys.readouterr()
    assert main(["project", "show", "kiln", "--data", str(data)]) == 0
    people = capsys.readouterr().out.partition("May change it:")[2].splitlines()
    assert [line.split() for line in people if "@" in line] == [
        ["ann@example.com", "ann", "both", "edit+kiln@localhost"],
        ["bob@example.com", "bob", "both", "edit@localhost"],
    ]
    main(["project", "show", "kiln", "--data", str(data), "--json"])
    shown = json.loads(capsys.readouterr().out)["senders"]
    assert [person["mailbox"] for person in shown] == ["edit+kiln@localhost", "edit@localhost"]


def test_adding_it_again_changes_nothing(tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    assert [add(data, repo), add(data, repo)] == [0, 0]
    capsys.readouterr()
    main(["project", "list", "--data", str(data), "--json"])
    [project] = json.loads(capsys.readouterr().out)
    assert len(project["senders"]) == 1


def test_a_site_of_a_name_that_was_removed_says_that_it_goes_on_with_the_repository_of_before(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, again = tmp_path / "data", "its repository of before is used again"
    add(data, repo)
    assert again not in capsys.readouterr().out
    assert main(["project", "remove", "kiln", "--yes", "--data", str(data)]) == 0
    assert add(data, repo) == 0
    assert again in capsys.readouterr().out
    assert add(data, repo) == 0
    assert again not in capsys.readouterr().out


def test_a_removed_sites_repository_does_not_stand_for_another_one_that_is_named(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, bakery = tmp_path / "data", tmp_path / "bakery"
    add(data, repo)
    assert main(["project", "remove", "kiln", "--yes", "--data", str(data)]) == 0
    bakery.mkdir()
    (bakery / "index.html").write_text("<title>Bakery</title>")
    assert add(data, bakery) == 1
    kept = data / "origins" / "kiln.git"
    assert f"say --repo {kept} to go on with it, or move it away to begin anew" in capsys.readouterr().err
    main(["project", "list", "--data", str(data), "--json"])
    assert json.loads(capsys.readouterr().out) == []
    assert add(data, kept) == 0
    assert main(["project", "remove", "kiln", "--yes", "--data", str(data)]) == 0
    kept.rename(tmp_path / "away")
    assert add(data, bakery) == 0
    assert "Bakery" in (data / "sites/kiln/edit/current/index.html").read_text()


def test_a_mistyped_folder_is_refused_with_the_folders_that_are_there(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(12):
        (repo / "apps" / f"shop{number:02}").mkdir(parents=True)
        (repo / "apps" / f"shop{number:02}" / "index.html").write_text("<title>Shop</title>")
    subprocess.run(["git", "add", "-A"], cwd=repo, check=True)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *identity, "commit", "-q", "-m", "shops"], cwd=repo, check=True)
    flags = ["--repo", str(repo), "--user", "ann", "--sender", "ann@example.com", "--data", str(tmp_path / "data")]
    assert main(["project", "add", "kiln", *flags, "--folder", "apps/nope"]) == 1
    said = capsys.readouterr().err
    assert "has no folder apps/nope (in apps): there are apps/shop00, apps/shop01" in said
    assert ("apps/shop09, …" in said, "shop10" in said) == (True, False)
    assert not (tmp_path / "data" / "origins" / "kiln.git").exists()
    assert main(["project", "add", "kiln", *flags, "--folder", "apps/shop10"]) == 0


def test_a_site_is_shown_at_the_port_of_the_running_up_else_at_the_configured_one(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "webordinary.toml").write_text("port = 8090\n")
    add(data, repo)
    assert "http://edit.kiln.localhost:8090/ while `up` runs" in capsys.readouterr().out
    with running.lock_data_folder(data):
        running.write_endpoints(data, running.Endpoints(1, "127.0.0.1", 4321, 4322, 4323))
        add(data, repo)
    assert "http://edit.kiln.localhost:4321/" in capsys.readouterr().out


def test_two_people_may_change_one_site(tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    add(data, repo)
    assert add(data, repo, user="bob", sender="bob@example.com") == 0
    capsys.readouterr()
    main(["project", "show", "kiln", "--data", str(data), "--json"])
    assert [s["user"] for s in json.loads(capsys.readouterr().out)["senders"]] == ["ann", "bob"]


def test_one_more_person_on_a_site_needs_no_repository(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    add(data, repo)
    people = ["--user", "bob", "--sender", "bob@example.com", "--data", str(data)]
    assert main(["project", "add", "kiln", *people]) == 0
    capsys.readouterr()
    main(["project", "list", "--data", str(data), "--json"])
    [project] = json.loads(capsys.readouterr().out)
    assert [sender["user"] for sender in project["senders"]] == ["ann", "bob"]
    assert main(["project", "add", "another", *people]) == 2
    assert "--repo is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": "Kiln!"}, "project name 'Kiln!': use 1 to 32 of a-z, 0-9 and -"),
        ({"user": "ann-b"}, "user name 'ann-b': use 1 to 24 of a-z and 0-9"),
        ({"sender": "ann"}, "'ann' is not a mail address; write --sender name@example.com"),
        ({"repo": "/nowhere/at/all"}, "/nowhere/at/all"),
    ],
)
def test_what_cannot_be_is_refused_in_words_and_nothing_is_added(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str], wrong: dict[str, Any], message: str
) -> None:
    data = tmp_path / "data"
    assert add(data, **({"repo": repo} | wrong)) in (1, 2)
    assert message in capsys.readouterr().err
    if data.exists():
        main(["project", "list", "--data", str(data), "--json"])
        assert json.loads(capsys.readouterr().out) == []


def test_without_a_terminal_what_is_missing_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "webordinary", "project", "add", "kiln", "--data", str(tmp_path / "data")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--repo is missing" in done.stderr


def test_on_a_terminal_what_is_missing_is_asked_for(tmp_path: Path, repo: Path) -> None:
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "webordinary", "project", "add", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    os.write(keyboard, f"kiln\n{repo}\n\nann\nann@example.com\n".encode())
    out, _ = process.communicate(timeout=60)
    os.close(keyboard)
    os.close(terminal)
    assert "Name of the site" in out
    assert "Please write something" in out
    assert "kiln#ann is ready" in out


def test_an_unknown_site_is_told(tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(tmp_path / "data", repo)
    assert main(["project", "show", "nobody", "--data", str(tmp_path / "data")]) == 1
    assert "there is no site 'nobody'; see `webordinary project list`" in capsys.readouterr().err


def test_a_site_can_be_given_another_agent(tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    add(data, repo)
    people = ["--user", "ann", "--sender", "ann@example.com", "--data", str(data)]
    assert main(["project", "add", "kiln", "--repo", str(repo), *people, "--agent", "claude"]) == 0
    add(data, repo)
    capsys.readouterr()
    main(["project", "show", "kiln", "--data", str(data), "--json"])
    assert json.loads(capsys.readouterr().out)["agent"] == "claude"


def test_a_site_that_is_removed_leaves_its_repository_behind(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    add(data, repo)
    assert (data / "sites" / "kiln").is_dir()
    command = [sys.executable, "-m", "webordinary", "project", "remove", "kiln", "--data", str(data)]
    silent = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (silent.returncode, "say --yes" in silent.stderr) == (2, True)
    capsys.readouterr()
    assert main(["project", "remove", "kiln", "--yes", "--data", str(data)]) == 0
    origin = data / "origins" / "kiln.git"
    assert f"its repository {origin} stays as it is" in capsys.readouterr().out
    assert origin.is_dir()
    assert not (data / "sites" / "kiln").exists()
    main(["project", "list", "--data", str(data), "--json"])
    assert json.loads(capsys.readouterr().out) == []
    assert main(["project", "remove", "kiln", "--yes", "--data", str(data)]) == 1
    assert add(data, repo) == 0


def test_a_site_with_open_jobs_is_removed_only_by_force(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    with open_harness(data) as harness:
        harness.receive()
    assert main(["project", "remove", "amelia", "--yes", "--data", str(data)]) == 1
    assert "amelia has open jobs (amelia#scott)" in capsys.readouterr().err
    assert main(["project", "remove", "amelia", "--yes", "--force", "--data", str(data)]) == 0


def test_a_removed_sites_idle_claims_are_released_at_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with open_harness(data) as harness:
        harness.receive()
        begun = harness.start_job()
        ended = Settlement(JobOutcome.SUCCEEDED, JobResult("Done."))
        claims, now = harness.services.pool.claims, harness.services.clock.now()
        claims.end_and_take_next(begun, ended, now, more=False)
        assert claims.look(begun.claim.key)
        assert main(["project", "remove", "amelia", "--yes", "--data", str(data)]) == 0
        assert claims.look(begun.claim.key) is None
        assert claims.renew([begun.claim], now) == set(), "its worker loses it, and renews it no more"


def test_nobody_gets_the_short_name_of_another_person_and_a_new_one_is_said(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    assert add(data, repo, user="ann", sender="ann@example.com") == 0
    assert add(data, repo, user="carla", sender="carla@example.com") == 0
    assert add(data, repo, user="carla", sender="ann@example.com") == 1
    assert "ann@example.com is ann on kiln, and carla is carla@example.com" in capsys.readouterr().err
    assert add(data, repo, user="anna", sender="ann@example.com") == 0
    assert "ann@example.com was ann there: it is anna from now on" in capsys.readouterr().out
    with open_embedded(Config(data=data)) as services:
        for name, words in (("carla", "take another name"), ("zoe", "may change kiln already, as anna")):
            with pytest.raises(Permanent, match=words):
                entitle(services, "ann@example.com", ProjectUser("kiln", name), "olga")
        entitle(services, "ann@work.example", ProjectUser("kiln", "anna"), "olga")
        assert [str(one.key) for one in services.directory.entries("ann@example.com")] == ["kiln#anna"]


def test_a_site_that_nobody_may_publish_is_warned_of(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, warning = tmp_path / "data", "no person may publish kiln now"
    add(data, repo)
    for role, warned in (("editor", True), ("publisher", False)):
        capsys.readouterr()
        assert main(["project", "role", "kiln", "ann@example.com", role, "--data", str(data)]) == 0
        assert (warning in capsys.readouterr().out) is warned, role


def test_what_a_site_may_cost_and_what_a_mail_without_words_asks_for_can_be_set(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    add(data, repo)
    instruction = "Add the photos to the gallery"
    change = ["project", "set", "kiln", "--data", str(data)]
    assert main([*change, "--daily-cap", "2.5", "--default-instruction", instruction]) == 0
    capsys.readouterr()
    assert main([*change, "--wishes", "British spelling", "--wishes", "never touch prices"]) == 0
    assert main([*change, "--wishes", "x" * 501]) == 2
    capsys.readouterr()
    role = ["project", "role", "kiln", "--data", str(data)]
    assert main([*role, "stranger@example.com", "editor"]) == 1
    assert main([*role, "ann@example.com", "publisher"]) == 0
    assert main([*change, "--approver", "stranger@example.com"]) == 1
    assert "may not publish kiln; add that person first" in capsys.readouterr().err
    assert main([*change, "--approver", "ann@example.com"]) == 0
    assert main([*change, "--time-zone", "Europe/Atlantis"]) == 1
    assert "'Europe/Atlantis' is no time zone known here: write it like Europe/Berlin" in capsys.readouterr().err
    assert main([*change, "--time-zone", "Europe/Berlin"]) == 0
    capsys.readouterr()
    assert main([*change, "--daily-cap", "3", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["daily_cap_usd"], shown["default_instruction"]) == (3.0, instruction)
    assert main(["project", "show", "kiln", "--data", str(data)]) == 0
    told = capsys.readouterr().out
    assert "$3 a day" in told
    assert "publisher" in told
    assert re.search(r"who publishes for editors +ann@example.com", told)
    assert "British spelling; never touch prices" in told
    assert re.search(r"dates in mails are of +Europe/Berlin", told)
    assert instruction in told


@pytest.mark.parametrize(
    ("flags", "words"),
    [([], "nothing to set"), (["--daily-cap", "-1"], "a number from 0"), (["--daily-cap", "nan"], "a number from 0")],
)
def test_what_cannot_be_set_is_refused_with_words(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str], flags: list[str], words: str
) -> None:
    data = tmp_path / "data"
    add(data, repo)
    try:
        code = main(["project", "set", "kiln", *flags, "--data", str(data)])
    except SystemExit as refused:
        code = int(refused.code or 0)
    assert (code, words in capsys.readouterr().err) == (2, True)
