"""What `up` tells its user when all is ready: what to open and what to try."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from webordinary.adapters.aws import names
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
    lines += ["", "  Stop    Ctrl-C; started again, it goes on where it was", "", ready_line(config, ends)]
    return "\n".join(lines)


def _try(config: Config, ends: Endpoints, command: str) -> list[str]:
    first = "  Try     open the page and write as a customer; or"
    if config.backend == AWS and not config.aws_endpoint:
        return [f"  Try     send a mail to {config.mailbox}"]
    if config.backend == AWS:
        return [
            f"{first} put a mail where SES would, in the bucket {bucket_of(config)}:",
            f"          {_as_there(config)}{command} send mail.eml --from scott@example.com",
        ]
    return [
        f"{first} send a mail to {config.mailbox}:",
        f"          swaks --server {ends.smtp} --from scott@example.com --to {config.mailbox} \\",
        "            --header 'Subject: Spring' --body 'Set the title to Spring Sale'",
        f"          {command} send mail.eml --data {config.data}",
    ]


def _as_there(config: Config) -> str:
    """How another shell comes to the same emulator."""
    file = config.data / "emulator" / "environment"
    return f". {shlex.quote(str(file))} && " if file.is_file() else ""


def ready_line(config: Config, ends: Endpoints) -> str:
    """The line that scripts wait for."""
    intake = f"mail {config.mailbox} bucket {bucket_of(config)}" if config.backend == AWS else f"smtp {ends.smtp}"
    return f"ready {ends.page} {intake} preview {ends.preview}"


def ready_plain(config: Config, ends: Endpoints) -> dict[str, object]:
    """The same as JSON; on AWS nobody listens for SMTP."""
    known = {"ready": True, **asdict(ends), "page": ends.page, "preview": ends.preview}
    if config.backend != AWS:
        return known
    del known["smtp_port"]
    return known | {"mailbox": config.mailbox, "bucket": bucket_of(config)}


def bucket_of(config: Config) -> str:
    """Where SES puts the mails that it receives for us."""
    return names.raw_bucket(config.aws_account)


def command_name() -> str:
    """How to call us again: by name where the shell finds it, else by path."""
    if shutil.which("webordinary"):
        return "webordinary"
    script = Path(sys.executable).with_name("webordinary")
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)
