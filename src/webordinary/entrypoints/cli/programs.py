"""Other people's programs, run as lists of words: found, run in front of the operator, and their failure told."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from webordinary.entrypoints.cli.exits import CommandFailed


def find_program(name: str, todo: str) -> str:
    """Where it is."""
    if found := shutil.which(name):
        return found
    raise CommandFailed(f"{name} is not installed", todo)


def run_program(command: Sequence[str], folder: Path, env: Mapping[str, str], given: str | None = None) -> None:
    """Run it where its words are seen; `given` is read by it from its standard input."""
    done = subprocess.run(command, cwd=folder, env=env, input=given, text=True, check=False)
    if done.returncode:
        raise CommandFailed(
            f"`{shlex.join(command)}` ended with code {done.returncode}", "its words stand above; mend that, try again"
        )
