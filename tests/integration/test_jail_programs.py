"""The operator's programs in a jail: each way to install one shows that program and nothing else of the home folder."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks.targets import SECRET, working_jail
from tests.integration.builder_fixtures import source, yard
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox
from webordinary.config import Config, ConfigError
from webordinary.jobs.sandbox_policy import SandboxPolicy
from webordinary.jobs.source import BuildFailed, Built
from webordinary.model.errors import Permanent

pytestmark = pytest.mark.needs("bwrap")
KEYS = (".ssh/id_ed25519", "webordinary/data/secrets/vic/token", ".local/share/keyrings/login", "etc/npmrc")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of an operator who keeps keys and programs in it."""
    folder = tmp_path / "op"
    for name in KEYS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(SECRET)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def tool(path: Path, home: Path, interpreter: str = "/bin/sh") -> Path:
    """A program that publishes all keys that it can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = " ".join(f"'{home / name}'" for name in KEYS)
    path.write_text(f'#!{interpreter}\n{{ cat {keys}; echo built; }} > "$SITE_OUTPUT/index.html"\n')
    path.chmod(0o755)
    return path


def in_bin(home: Path) -> Path:
    return tool(home / "bin" / "tool", home)


def in_local_bin(home: Path) -> Path:
    return tool(home / ".local" / "bin" / "tool", home)


def behind_two_links(home: Path) -> Path:
    tool(home / "apps" / "tool-1.2" / "run", home)
    (home / "apps" / "current").symlink_to("tool-1.2")
    (home / "bin").mkdir()
    (home / "bin" / "tool").symlink_to("../apps/current/run")
    return home / "bin" / "tool"


def by_pipx(home: Path) -> Path:
    environment = home / ".local" / "pipx" / "venvs" / "tool"
    tool(environment / "bin" / "tool", home)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "tool").symlink_to(environment / "bin" / "tool")
    return home / ".local" / "bin" / "tool"


def by_uv(home: Path) -> Path:
    """Its interpreter lies in a folder that is known by a link, beside the environment."""
    python = home / ".local" / "share" / "uv" / "python"
    (python / "cpython-3.12.1" / "bin").mkdir(parents=True)
    shutil.copy("/bin/sh", python / "cpython-3.12.1" / "bin" / "python3.12")
    (python / "cpython-3.12").symlink_to("cpython-3.12.1")
    environment = home / ".local" / "share" / "uv" / "tools" / "tool"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(python / "cpython-3.12" / "bin" / "python3.12")
    (environment / "pyvenv.cfg").write_text(f"uv = 0.5\nhome = {python / 'cpython-3.12' / 'bin'}\n")
    tool(environment / "bin" / "tool", home, str(environment / "bin" / "python"))
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "tool").symlink_to(environment / "bin" / "tool")
    return home / ".local" / "bin" / "tool"


def by_npm_with_the_home_as_prefix(home: Path) -> Path:
    return node_program(home, home)


def by_nvm(home: Path) -> Path:
    return node_program(home / ".nvm" / "versions" / "node" / "v20.1.0", home)


def node_program(prefix: Path, home: Path) -> Path:
    (prefix / "lib" / "node_modules" / "npm").mkdir(parents=True)
    (prefix / "bin").mkdir()
    shutil.copy("/bin/sh", prefix / "bin" / "node")
    tool(prefix / "lib" / "node_modules" / "tool" / "cli.js", home, "/usr/bin/env node")
    (prefix / "bin" / "tool").symlink_to("../lib/node_modules/tool/cli.js")
    return prefix / "bin" / "tool"


@pytest.mark.parametrize(
    "installed", [in_bin, in_local_bin, behind_two_links, by_pipx, by_uv, by_npm_with_the_home_as_prefix, by_nvm]
)
def test_a_build_program_in_the_home_folder_runs_and_shows_no_key(
    installed: Callable[[Path], Path], home: Path, tmp_path: Path
) -> None:
    place = yard(tmp_path, (str(installed(home)),))
    built = place.build(source(tmp_path / "tree", {"page.txt": "hello"}), "command")
    assert isinstance(built, Built), built
    assert (place.site / "index.html").read_text() == "built\n"


def test_an_environment_that_is_the_home_folder_itself_is_refused_in_words(home: Path, tmp_path: Path) -> None:
    (home / "pyvenv.cfg").write_text("home = /usr/bin\n")
    place = yard(tmp_path, (str(in_bin(home)),))
    refused = place.build(source(tmp_path / "tree", {"page.txt": "hello"}), "command")
    assert isinstance(refused, BuildFailed)
    assert not refused.mendable
    assert "jail_readable" in refused.reason


def test_a_shim_of_a_version_manager_is_refused_in_words(home: Path, tmp_path: Path) -> None:
    place = yard(tmp_path, (str(tool(home / ".pyenv" / "shims" / "tool", home)),))
    refused = place.build(source(tmp_path / "tree", {"page.txt": "hello"}), "command")
    assert isinstance(refused, BuildFailed)
    assert not refused.mendable
    assert "shim" in refused.reason


@pytest.mark.parametrize("place", ["", "..", ".ssh", "data", "data/secrets", "link", "other"])
def test_settings_that_would_show_a_private_folder_are_refused(place: str, home: Path) -> None:
    data = home / "data"
    (data / "secrets").mkdir(parents=True)
    (home / "other" / ".gnupg").mkdir(parents=True)
    (home / "link").symlink_to(home)
    with pytest.raises(ConfigError, match="jail_readable"):
        Config(data=data, jail_readable=(str(home / place),))


def test_settings_may_show_a_folder_of_programs_in_the_home(home: Path) -> None:
    (home / "apps").mkdir()
    assert Config(data=home / "data", jail_readable=(str(home / "apps"),)).jail_readable


def test_a_cell_shows_neither_the_home_nor_the_data_folder(home: Path, tmp_path: Path) -> None:
    working_jail(tmp_path / "scratch")
    data = tmp_path / "srv" / "data"
    data.mkdir(parents=True)
    jail = BubblewrapSandbox("w-1", tmp_path / "scratch", private=[data])
    for folder in (home, data, data.parent):
        with (
            pytest.raises(Permanent, match="jail_readable"),
            jail.open(tmp_path, {}, SandboxPolicy(readable=(folder,))),
        ):
            pass


def test_the_launchers_own_python_shows_nothing_else_of_its_prefix(tmp_path: Path) -> None:
    """Python may be installed with a home folder as its prefix."""
    jail = working_jail(tmp_path / "scratch")
    with jail.open(tmp_path, {}) as sandboxed:
        assert f" --ro-bind {sys.base_prefix} " not in " ".join(sandboxed.argv(["true"]))
