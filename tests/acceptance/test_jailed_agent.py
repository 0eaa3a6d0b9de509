"""An outside agent behind the whole system: it edits from within its jail, or not at all."""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.waiting import Customer, get, text_of, wait_for_reply
from tests.attacks.targets import working_jail
from tests.conftest import Up
from webordinary.mail.write import OutgoingFile
from webordinary.operations import sample

pytestmark = pytest.mark.needs("git", "bwrap")
AGENT = """
set -e
find / -name webordinary.db 2>/dev/null > seen.html || true
cp "$WEBORDINARY_ATTACHMENTS" photo.jpg
instruction=$(cat)
echo "<h1>$instruction</h1>" > index.html
echo '{"changed": "The page says it now."}'
"""


def command(script: str) -> str:
    return shlex.join(["sh", "-c", script])


def test_a_command_agent_edits_the_site_from_within_its_jail(start_up: Callable[..., Up], tmp_path: Path) -> None:
    working_jail(tmp_path / "scratch")
    up = start_up("--agent", "command", "--agent-command", command(AGENT), env={"ANTHROPIC_API_KEY": "sk-real"})
    photo = OutgoingFile(sample.PHOTO_NAME, "image/jpeg", sample.sample_photo())
    reply = wait_for_reply(up, Customer().write(up, "Open on Sunday", files=(photo,)))
    assert "The page says it now." in text_of(reply)
    assert "<h1>Open on Sunday" in get(up)
    shown = next((up.data / "sites" / "amelia" / "edit" / "releases").glob("*/seen.html"))
    assert shown.read_text() == "", "the data folder must not be there"
    assert up.stop() == 0


def test_without_a_working_jail_the_outside_agent_is_refused_and_the_customer_is_told(
    start_up: Callable[..., Up], tmp_path: Path
) -> None:
    path = {"PATH": str(_programs_without_bwrap(tmp_path / "bin"))}
    up = start_up("--agent", "command", "--agent-command", command("touch began"), env=path)
    before = get(up)
    wait_for_reply(up, Customer().write(up, "Open on Sunday"))
    assert get(up) == before
    assert "none works here: bubblewrap (bwrap) is not installed" in _dead_letters(up.data)
    assert up.stop() == 0


def test_an_operator_may_allow_agents_without_a_jail_in_so_many_words(
    start_up: Callable[..., Up], tmp_path: Path
) -> None:
    path = {"PATH": str(_programs_without_bwrap(tmp_path / "bin"))}
    script = 'echo "<h1>$(cat)</h1>" > index.html; echo Done.'
    up = start_up("--agent", "command", "--agent-command", command(script), "--allow-unjailed-agents", "true", env=path)
    wait_for_reply(up, Customer().write(up, "Open on Sunday"))
    assert "<h1>Open on Sunday" in get(up)
    assert up.stop() == 0


def _programs_without_bwrap(folder: Path) -> Path:
    folder.mkdir()
    for name in ("git", "sh", "cat", "env", "touch", "chmod", "rm"):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


def _dead_letters(data: Path) -> str:
    with closing(sqlite3.connect(data / "webordinary.db")) as db:
        return json.dumps(db.execute("SELECT reason FROM dead_letters").fetchall())
