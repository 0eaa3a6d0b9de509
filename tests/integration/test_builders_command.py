"""A program of the operator's builds the site: bounded, jailed, and only plain files come out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.targets import ATTACKS, SECRET, Attack, AttackTargets, house
from tests.integration.builder_fixtures import Yard, source, yard
from webordinary.adapters.builders import BuildEnv, Dependencies, builders
from webordinary.adapters.builders.outside import OutputLimits
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox, SandboxedPrograms
from webordinary.compose.sandbox import builders_of
from webordinary.config import Config
from webordinary.jobs.source import BuildFailed, Built
from webordinary.model.errors import Interrupted

pytestmark = pytest.mark.needs("bwrap")
PAGE = 'mkdir -p "$SITE_OUTPUT/deep" && cp page.txt "$SITE_OUTPUT/index.html" && '


@pytest.fixture
def defended() -> Iterator[AttackTargets]:
    with house() as made:
        yield made


def shell(folder: Path, script: str, **more: object) -> tuple[Yard, Built | BuildFailed]:
    place = yard(folder, ("sh", "-c", script), **more)  # type: ignore[arg-type]
    return place, place.build(source(folder / "tree", {"page.txt": "hello"}), "command")


def test_what_the_command_writes_is_the_site_and_what_it_says_is_kept(tmp_path: Path) -> None:
    place, built = shell(tmp_path, PAGE + "echo well done; echo but >&2")
    assert isinstance(built, Built)
    assert (built.builder, built.files) == ("command", 1)
    assert (place.site / "index.html").read_text() == "hello"
    assert "well done\n\nbut" in built.log
    assert str(tmp_path) not in built.log


@pytest.mark.parametrize("name", ["dist", "build", "out", "public", "_site"])
def test_a_folder_with_a_usual_name_will_do(tmp_path: Path, name: str) -> None:
    place, built = shell(tmp_path, f"mkdir {name} && cp page.txt {name}/index.html")
    assert isinstance(built, Built)
    assert (place.site / "index.html").read_text() == "hello"


def test_a_failing_command_leaves_its_words_and_the_working_site(tmp_path: Path) -> None:
    place, _ = shell(tmp_path, PAGE + "true")
    broken = yard(tmp_path / "two", ("sh", "-c", "echo the oven is cold >&2; exit 3"))
    broken.releases = place.releases
    failed = broken.build(source(tmp_path / "tree", {"page.txt": "new"}), "command")
    assert isinstance(failed, BuildFailed)
    assert failed.mendable
    assert "the oven is cold" in failed.log
    assert "sh ended with 3" in failed.log
    assert (place.site / "index.html").read_text() == "hello"


@pytest.mark.parametrize(
    ("script", "word"),
    [
        (PAGE + 'ln -s /etc/passwd "$SITE_OUTPUT/deep/passwd"', "deep/passwd"),
        (PAGE + 'ln -s / "$SITE_OUTPUT/deep/root"', "deep/root"),
        ("rmdir $SITE_OUTPUT; ln -s /etc $SITE_OUTPUT", "left no index.html"),
        ("ln -s /etc dist", "left no index.html"),
        (PAGE + 'mkfifo "$SITE_OUTPUT/pipe"', "stopped"),
        (
            PAGE
            + 'cd "$SITE_OUTPUT"; for n in 1 2 3 4; do d=$(printf "%0240d" 0); mkdir $d; cd $d; done; touch a.html',
            "a path of more than 900 bytes",
        ),
        ("true", "left no index.html"),
        ('touch "$SITE_OUTPUT/other.html"', "left no index.html"),
    ],
    ids=[
        "a link to a file",
        "a link to a folder",
        "the output is a link",
        "dist is a link",
        "a pipe",
        "a long path",
        "nothing",
        "odd",
    ],
)
def test_a_result_that_cannot_be_published_is_refused_in_words(tmp_path: Path, script: str, word: str) -> None:
    place, failed = shell(tmp_path, script)
    assert isinstance(failed, BuildFailed)
    assert word in failed.reason
    assert place.all() == ()


def test_hidden_files_are_left_out(tmp_path: Path) -> None:
    script = (
        PAGE + 'cd "$SITE_OUTPUT" && mkdir .well-known .webordinary && touch .env .webordinary/manifest.json a.html'
    )
    place, built = shell(tmp_path, script + " && echo ok > .well-known/security.txt")
    assert isinstance(built, Built)
    assert built.files == 3
    assert not (place.site / ".env").exists()
    assert (place.site / ".well-known" / "security.txt").exists()


def test_a_build_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    _, failed = shell(tmp_path, "sleep 60", seconds=0.5)
    assert isinstance(failed, BuildFailed)
    assert "took longer" in failed.reason


def test_a_site_with_too_many_files_or_bytes_is_refused(tmp_path: Path) -> None:
    _, many = shell(tmp_path, PAGE + 'touch "$SITE_OUTPUT"/a "$SITE_OUTPUT"/b', output=OutputLimits(files=2))
    assert isinstance(many, BuildFailed)
    assert "too much" in many.reason
    _, large = shell(tmp_path / "2", PAGE + 'echo 123456 > "$SITE_OUTPUT"/a', output=OutputLimits(bytes=8))
    assert isinstance(large, BuildFailed)


def test_an_interrupted_job_ends_its_build(tmp_path: Path) -> None:
    place = yard(tmp_path, ("sh", "-c", "sleep 60"))
    place.token.ended = Interrupted("another mail")
    with pytest.raises(Interrupted):
        place.build(source(tmp_path / "tree", {"page.txt": "hello"}), "command")


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_an_attack_through_the_build_fails(
    attack: Attack, defended: AttackTargets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    (tmp_path / "tree").mkdir()
    defended.arm(tmp_path / "tree")
    loot = 'cp page.txt "$SITE_OUTPUT/index.html"; "$@"; code=$?; cp loot.json "$SITE_OUTPUT/"; exit $code'
    place = yard(tmp_path, ("sh", "-c", loot, "sh", *defended.argv(attack)))
    built = place.build(source(tmp_path / "tree", {"page.txt": "hello"}), "command")
    if attack.ended or attack.refused:
        assert isinstance(built, BuildFailed)
    defended.check(attack, place.site if isinstance(built, Built) else tmp_path)


def test_without_a_jail_it_is_refused_and_no_agent_could_mend_that(tmp_path: Path) -> None:
    shop = BuildEnv(
        SandboxedPrograms(BubblewrapSandbox("w-1", tmp_path / "j")),
        tmp_path / "scratch",
        lambda: "bubblewrap (bwrap) is not installed",
    )
    place = replace(yard(tmp_path), builders=builders(shop, Dependencies(tmp_path / "cache"), ("true",)))
    refused = place.build(source(tmp_path / "tree", {"page.txt": "hello"}), "command")
    assert isinstance(refused, BuildFailed)
    assert not refused.mendable
    assert "bwrap" in refused.log


def test_a_program_that_is_not_installed_is_named(tmp_path: Path) -> None:
    place = yard(tmp_path, ("no-such-program",))
    refused = place.build(source(tmp_path / "tree", {"page.txt": "hello"}), "command")
    assert isinstance(refused, BuildFailed)
    assert not refused.mendable
    assert "no-such-program" in refused.reason


def test_what_a_killed_worker_left_of_a_build_is_removed_by_the_next_worker_in_its_home(tmp_path: Path) -> None:
    left = tmp_path / ".builds" / "build-abc" / "node_modules"
    left.mkdir(parents=True)
    jail = BubblewrapSandbox("w-2", tmp_path / ".jail")
    builders_of(Config(data=tmp_path / "data"), jail, tmp_path)
    assert not left.parent.exists()
