"""Data folders of earlier versions, as `webordinary backup` kept them: each later version opens them and goes on.

`0.1.0.tar.gz` is the sample site after five mails (a title, publish, a heading, one that no agent understood, one of a
stranger), with a viewer, a standing wish, a cap and a password for the edit site. A version that changes how data is
stored adds a file of its own before that change; none is ever made anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Up
from tests.harness.chaos import until

KEPT = sorted((Path(__file__).parents[1] / "data" / "kept").glob("*.tar.gz"))


def told(*words: str | Path) -> str:
    command = [sys.executable, "-m", "webordinary", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def states(data: Path) -> dict[str, str]:
    """Each mail's state, by its subject."""
    listed = json.loads(told("mails", "list", "--data", data, "--json"))
    return {mail["subject"] or mail["sender"]: mail["state"] for mail in listed}


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.name)
def test_a_data_folder_of_an_earlier_version_is_opened_and_gone_on_with(
    kept: Path, tmp_path: Path, start_up: Callable[..., Up]
) -> None:
    data = tmp_path / "data"
    told("restore", kept, "--data", data)
    told("upgrade-check", "--data", data)
    up = start_up("--no-sample", data=data, env={"WEBORDINARY_PICTURES": "off"})
    assert states(data) == {
        "Title": "done", "Re: Title": "done", "Heading": "done", "Warmer": "not-understood",
        "other@example.com": "refused",
    }  # fmt: skip
    project = json.loads(told("project", "show", "amelia", "--data", data, "--json"))
    assert (project["wishes"], project["daily_cap_usd"], project["edit_password"]) == (["British spelling"], 5.0, True)
    token = json.loads(told("user", "token", "vera", "--label", "test", "--data", data, "--json"))["token"]
    for path in ("", "mails?q=heading", "attention", "sites", "pool?span=30d", "login"):
        asked = urllib.request.Request(f"{up.page}{path}", headers={"Authorization": f"Bearer {token}"})
        urllib.request.urlopen(asked, timeout=60).close()

    undo = tmp_path / "undo.eml"
    undo.write_text(
        "From: scott@example.com\nTo: edit@localhost\nSubject: Re: Heading\nMessage-ID: <6@example.com>\n"
        "In-Reply-To: <3@example.com>\nReferences: <3@example.com>\n\nundo\n"
    )
    told("send", undo, "--data", data)
    until(lambda: states(data).get("Re: Heading") == "done", "the undo in a conversation of before")
    shown = data / "sites" / "amelia" / "edit" / "current"
    assert "Who we are" not in (shown / "about.html").read_text()
    told("release", "rollback", "amelia", "--data", data)
    assert "Who we are" in (shown / "about.html").read_text()
    assert up.stop() == 0
