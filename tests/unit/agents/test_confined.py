"""Files of one folder and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from webordinary.adapters.agents import workspace
from webordinary.adapters.agents.workspace import Outside


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("celadon")
    site = tmp_path / "site"
    site.mkdir()
    (site / "link").symlink_to(tmp_path / "secret")
    (site / "door").symlink_to(tmp_path)
    return site


def test_a_file_is_written_with_its_folders_and_read_again(site: Path) -> None:
    workspace.write(site, "images/spring/cup.jpg", b"cup")
    workspace.write(site, str(site / "images" / "spring" / "cup.jpg"), b"c")
    assert workspace.read(site, "images/spring/cup.jpg") == b"c"


ELSEWHERE = ["../secret", "a/../../secret", "/etc/passwd", "", ".", ".git/config", ".claude/x", "a\0b"]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_what_lies_elsewhere_is_outside(site: Path, path: str) -> None:
    for reach in (workspace.read, lambda root, name: workspace.write(root, name, b"x")):
        with pytest.raises(Outside):
            reach(site, path)


@pytest.mark.parametrize("path", ["link", "door/secret"])
def test_links_are_not_followed(site: Path, path: str) -> None:
    for reach in (workspace.read, lambda root, name: workspace.write(root, name, b"x")):
        with pytest.raises(OSError, match=r"link|directory"):
            reach(site, path)
    assert (site.parent / "secret").read_text() == "celadon"


def test_too_much_is_refused(site: Path) -> None:
    with pytest.raises(Outside, match="more than"):
        workspace.write(site, "big", b"x" * (workspace.MOST_BYTES + 1))
    with pytest.raises(Outside, match="plain file"):
        workspace.read(Path("/dev"), "zero")
