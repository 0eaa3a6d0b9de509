"""What `up` tells its user when all is ready: what to open and what to try."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection
from pathlib import Path

from webordinary.app.backends import AWS
from webordinary.config import Config
from webordinary.entrypoints.running import Endpoints

SAMPLE = "amelia"


def greeting(config: Config, ends: Endpoints, projects: Collection[str], command: str) -> str:
    """A screen for people, and a last line for scripts."""
    lines = ["", f"WebOrdinary runs; its data is in {config.data}", "", f"  Page    {ends.page}"]
    if SAMPLE in projects:
        lines += [
            f"  Sample  http://edit.{SAMPLE}.{config.domain}:{config.port}/",
            f"          or through {ends.preview} if your browser does not find that name",
            "",
            *_try(config, ends, command),
        ]
    elif not projects:
        lines += [
            "",
            "  Next    add a site; it asks for what it needs:",
            f"          {command} project add --data {config.data}",
        ]
    lines += ["", "  Stop    Ctrl-C; started again, it goes on where it was", "", ready_line(ends)]
    return "\n".join(lines)


def _try(config: Config, ends: Endpoints, command: str) -> list[str]:
    first = f"  Try     open the page and write as a customer; or send a mail to {config.mailbox}"
    if config.backend == AWS:
        return [first if config.aws_endpoint else f"  Try     send a mail to {config.mailbox}"]
    return [
        f"{first}:",
        f"          swaks --server {ends.smtp} --from scott@example.com --to {config.mailbox} \\",
        "            --header 'Subject: Spring' --body 'Set the title to Spring Sale'",
        f"          {command} send mail.eml --data {config.data}",
    ]


def ready_line(ends: Endpoints) -> str:
    """The line that scripts wait for."""
    return f"ready {ends.page} smtp {ends.smtp} preview {ends.preview}"


def command_name() -> str:
    """How to call us again: by name where the shell finds it, else by path."""
    if shutil.which("webordinary"):
        return "webordinary"
    script = Path(sys.executable).with_name("webordinary")
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)
