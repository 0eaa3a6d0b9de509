from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from webordinary.adapters.files.releases import FolderReleases
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.mails import SqliteDirectory
from webordinary.entrypoints.cli import main
from webordinary.jobs.site_files import Stage
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def git(*args: object, cwd: Path) -> str:
    name = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    done = subprocess.run(["git", *name, *map(str, args)], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with a little of everything."""
    data = tmp_path / "data"
    for name, text in {
        "mail/ab/abc.eml": "Subject: hello\r\n\r\nhi",
        "blobs/cd/cdef": "photo",
        "outbox/new/1.eml": "reply",
        "sites/amelia/edit/releases/r1/index.html": "<h1>Amelia</h1>",
        "run/up.lock": "1",
        "workspaces/w1/scratch": "scratch",
        "webordinary.toml": "workers = 1\n",
    }.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(text)
    (data / "sites/amelia/edit/current").symlink_to("releases/r1")
    (data / "origins").mkdir()
    git("init", "-q", "--bare", "-b", "main", data / "origins/amelia.git", cwd=tmp_path)
    git("init", "-q", "--bare", "-b", "trunk", data / "origins/empty.git", cwd=tmp_path)
    work = tmp_path / "work"
    git("init", "-q", "-b", "main", work, cwd=tmp_path)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=work)
    git("push", "-q", data / "origins/amelia.git", "main", "main:refs/fence/amelia", cwd=work)
    database = Database(data / "webordinary.db")
    database.migrate()
    directory = SqliteDirectory(database)
    directory.add_project(Project("amelia", str(data / "origins/amelia.git")), NOON)
    directory.add_project(Project("far", "https://example.com/far.git"), NOON)
    directory.add_sender(Sender("scott@example.com", ProjectUser("amelia", "scott")), NOON)
    database.close()
    return data


def files_of(folder: Path) -> dict[str, str]:
    found = (
        f for f in folder.rglob("*") if f.is_file() and "origins" not in f.parts and f.suffix in (".eml", "", ".html")
    )
    return {str(f.relative_to(folder)): f.read_text() for f in found if "webordinary.db" not in f.name}


def test_what_was_backed_up_comes_back_elsewhere(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup, restored = tmp_path / "b.tar.gz", tmp_path / "deep" / "restored"
    assert main(["backup", str(backup), "--data", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == backup.stat().st_size
    assert main(["restore", str(backup), "--data", str(restored)]) == 0
    assert "webordinary up --data" in capsys.readouterr().out

    expected = {name: text for name, text in files_of(data).items() if not name.startswith(("run", "workspaces"))}
    assert files_of(restored) == expected
    assert (restored / "sites/amelia/edit/current").readlink() == Path("releases/r1")
    assert not (restored / "run").exists()
    old, new = data / "origins/amelia.git", restored / "origins/amelia.git"
    assert git("for-each-ref", cwd=new) == git("for-each-ref", cwd=old) != ""
    assert (new / "config").read_text() == (old / "config").read_text()
    assert git("symbolic-ref", "HEAD", cwd=restored / "origins/empty.git") == "refs/heads/trunk"
    database = Database(restored / "webordinary.db")
    repos = {project.project_id: project.repo for project in SqliteDirectory(database).projects()}
    database.close()
    assert repos == {"amelia": str(new), "far": "https://example.com/far.git"}


def test_releases_that_share_files_come_back_whole(data: Path, tmp_path: Path) -> None:
    releases = data / "sites" / "amelia" / "edit" / "releases"
    (releases / "r2").mkdir()
    for page in (releases / "r1").glob("*.html"):
        os.link(page, releases / "r2" / page.name)
    backup, restored = tmp_path / "b.tar.gz", tmp_path / "restored"
    assert main(["backup", str(backup), "--data", str(data)]) == 0
    assert main(["restore", str(backup), "--data", str(restored)]) == 0
    again = restored / "sites" / "amelia" / "edit" / "releases"
    pages = [page.name for page in (releases / "r1").glob("*.html")]
    assert pages
    for name in pages:
        assert (again / "r2" / name).read_bytes() == (releases / "r1" / name).read_bytes()


def test_releases_keep_their_order(data: Path, tmp_path: Path) -> None:
    releases = data / "sites" / "amelia" / "edit" / "releases"
    for name, at in (("r1", 3_000_000.25), ("r2", 1_000_000.5), ("r3", 2_000_000.0)):
        (releases / name).mkdir(exist_ok=True)
        os.utime(releases / name, (at, at))
    assert main(["backup", str(tmp_path / "b.tar.gz"), "--data", str(data)]) == 0
    assert main(["restore", str(tmp_path / "b.tar.gz"), "--data", str(tmp_path / "restored")]) == 0
    listed = FolderReleases(tmp_path / "restored" / "sites").list("amelia", Stage.EDIT)
    assert [release.name for release in listed] == ["r1", "r3", "r2"]


def test_a_backup_is_readable_by_its_owner_alone_and_leaves_nothing_else_behind(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    assert main(["backup", str(folder / "b.tar.gz"), "--data", str(data)]) == 0
    assert [file.name for file in folder.iterdir()] == ["b.tar.gz"]
    assert (folder / "b.tar.gz").stat().st_mode & 0o077 == 0


def test_a_backup_made_while_others_write_is_whole(data: Path, tmp_path: Path) -> None:
    stop, wrote = threading.Event(), threading.Event()
    insert = "INSERT INTO hints (key, waiting_since, sent_at) VALUES (?, 1, 1)"

    def write() -> None:
        with closing(sqlite3.connect(data / "webordinary.db", timeout=60)) as conn:
            conn.execute("PRAGMA synchronous = OFF")  # more often than any disk could bear
            conn.executemany(insert, [(f"c{number:08000}",) for number in range(2000)])
            number = 0
            while not stop.wait(0.001):
                number += 1
                conn.executemany(insert, [(f"a{number}",), (f"b{number}",)])
                conn.commit()
                wrote.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert wrote.wait(60)
    try:
        assert main(["backup", str(tmp_path / "b.tar.gz"), "--data", str(data)]) == 0
    finally:
        stop.set()
        writer.join()
    assert main(["restore", str(tmp_path / "b.tar.gz"), "--data", str(tmp_path / "new")]) == 0
    database = Database(tmp_path / "new" / "webordinary.db")
    with database.read() as conn:
        pairs = dict(conn.execute("SELECT substr(key, 1, 1), count(*) FROM hints GROUP BY 1").fetchall())
    database.close()
    assert pairs["a"] == pairs["b"] > 0


def test_a_file_that_is_there_is_replaced_only_when_told(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b.tar.gz").write_text("precious")
    command = ["backup", str(tmp_path / "b.tar.gz"), "--data", str(data)]
    assert main(command) == 1
    assert "there already; choose another name, or replace that file with --force" in capsys.readouterr().err
    assert (tmp_path / "b.tar.gz").read_text() == "precious"
    assert main([*command, "--force"]) == 0
    assert tarfile.is_tarfile(tmp_path / "b.tar.gz")


def test_a_folder_that_is_not_empty_is_not_touched(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["backup", str(tmp_path / "b.tar.gz"), "--data", str(data)])
    before = files_of(data)
    assert main(["restore", str(tmp_path / "b.tar.gz"), "--data", str(data)]) == 1
    assert "is not empty; name a new folder with --data" in capsys.readouterr().err
    assert files_of(data) == before


def test_an_empty_folder_is_taken(data: Path, tmp_path: Path) -> None:
    main(["backup", str(tmp_path / "b.tar.gz"), "--data", str(data)])
    (tmp_path / "empty").mkdir()
    assert main(["restore", str(tmp_path / "b.tar.gz"), "--data", str(tmp_path / "empty")]) == 0


def packed(*entries: tuple[str, bytes | str], files: int | None = None) -> bytes:
    """A tar.gz with a good manifest, these files and a seal; a str makes a link to it."""
    seal = json.dumps({"files": len(entries) if files is None else files}).encode()
    manifest = {"format": 1, "schema_version": 1, "made_at": NOON.isoformat(), "data": "/elsewhere"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in (("manifest.json", json.dumps(manifest).encode()), *entries, ("complete.json", seal)):
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                tar.addfile(entry)
            else:
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def newer(folder: Path) -> bytes:
    database = Database(folder / "newer.db")
    database.migrate()
    with database.write() as conn:
        conn.execute("PRAGMA user_version = 9999")
    database.close()
    return packed(("webordinary.db", (folder / "newer.db").read_bytes()))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (lambda _: b"", "damaged or not a backup"),
        (lambda _: b"this is no archive", "damaged or not a backup"),
        (lambda _: packed(("x", b"a" * 100_000))[:-20], "damaged"),
        (lambda _: packed(("x", b"a" * 100_000))[:-3], "damaged"),
        (lambda _: packed(("x", b"x"), files=2), "holds 1 files instead of 2"),
        (lambda _: packed(("x", b"x")), "holds no database"),
        (lambda _: packed(("../evil", b"x")), "leads out of the folder"),
        (lambda _: packed(("/etc/evil", b"x")), "leads out of the folder"),
        (lambda _: packed(("mail/link", "../../outside")), "leads out of the folder"),
        (lambda _: packed(("mail/link", "/etc")), "leads out of the folder"),
        (lambda _: packed(("mail", "sites"), ("mail/x", b"x")), "leads through a link"),
        (newer, "schema version 9999"),
    ],
)
def test_a_bad_backup_is_refused_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Callable[[Path], bytes], reason: str
) -> None:
    backup, place = tmp_path / "bad.tar.gz", tmp_path / "place"
    backup.write_bytes(content(tmp_path))
    place.mkdir()
    assert main(["restore", str(backup), "--data", str(place / "data")]) == 1
    assert reason in capsys.readouterr().err
    assert list(place.iterdir()) == []


def test_an_archive_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz") as tar:
        tar.add(__file__, "something")
    assert main(["restore", str(tmp_path / "other.tar.gz"), "--data", str(tmp_path / "new")]) == 1
    assert "not a backup of WebOrdinary" in capsys.readouterr().err
    assert main(["restore", str(tmp_path / "missing.tar.gz"), "--data", str(tmp_path / "new")]) == 1
    assert "is not there" in capsys.readouterr().err


def test_a_new_version_tries_its_upgrade_on_a_copy_and_leaves_the_folder_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first_day = (Path(__file__).parents[1] / "data/first_schema.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(tmp_path / "webordinary.db")) as old:
        old.executescript(first_day)
        old.execute("PRAGMA user_version = 4")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(["upgrade-check", "--data", str(tmp_path), "--json"]) == 0
    tried = json.loads(capsys.readouterr().out)
    assert (tried["schema_before"], tried["schema_after"] > 4) == (4, True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_older_version_refuses_the_folder_of_a_newer_one(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(data / "webordinary.db")) as newer:
        newer.execute("PRAGMA user_version = 900")
    assert main(["upgrade-check", "--data", str(data)]) == 1
    assert "schema version 900" in capsys.readouterr().err
