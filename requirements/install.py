"""Install lock files with pip and print the progress: `python requirements/install.py TITLE LOCK... [-- OPTION...]`.

Runs under the interpreter of the virtual environment that receives the packages. pip prints a line for each package,
and some machines' settings of pip add warnings to each; this prints one line that counts, and all of it if pip fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

PIP = ("pip", "--disable-pip-version-check", "install", "--no-deps", "--require-hashes", "--progress-bar", "off")
FOUND = ("Collecting ", "Requirement already satisfied: ")
LAST_LINES = 60
STEP = 20
"""A log that is no terminal gets one line for so many packages."""


def main(title: str, *rest: str) -> int:
    """Run pip; return its exit code."""
    cut = rest.index("--") if "--" in rest else len(rest)
    locks, options = rest[:cut], rest[cut + 1 :]
    total = sum(len(re.findall(r"^\S+==", Path(lock).read_text(), re.MULTILINE)) for lock in locks)
    show(f"{title}: {total} packages")
    command = [sys.executable, "-m", *PIP, *options, *(word for lock in locks for word in ("-r", lock))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        assert pip.stdout
        said: deque[str] = deque(maxlen=LAST_LINES)
        for status in progress(pip.stdout, total, said):
            show(f"{title}: {status}")
    show(f"{title}: {'pip failed' if pip.returncode else 'installed'}", end="\n")
    if pip.returncode:
        sys.stderr.writelines(said)
    return pip.returncode


def progress(lines: Iterable[str], total: int, said: deque[str]) -> Iterator[str]:
    """What to print as pip goes on; keeps its last lines in `said`."""
    step, fetched = (1 if sys.stdout.isatty() else STEP), 0
    for line in lines:
        said.append(line)
        if line.startswith(FOUND):
            fetched += 1
            if fetched % step == 0:
                yield f"{fetched} of {total} packages fetched"
        elif line.startswith("Installing collected packages"):
            yield "unpacking"


def show(text: str, end: str = "") -> None:
    """On a terminal each line takes the place of the one before."""
    if sys.stdout.isatty():
        sys.stdout.write(f"\r{text}\x1b[K{end}")
    else:
        sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
