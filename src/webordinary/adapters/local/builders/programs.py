"""Where the operator's programs are, and what of the machine they need to see."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from webordinary.adapters.local.builders.bench import NotBuilt

_SEEN_BY_ALL = ("/usr", "/bin", "/sbin", "/lib")


def find_program(name: str) -> str:
    """Its path; raises NotBuilt where it is not installed."""
    found = shutil.which(name)
    if found is None:
        raise NotBuilt(f"{name} is not installed on the machine that builds this site.", mendable=False)
    return os.path.abspath(found)  # noqa: PTH100  links stay: a virtual environment is known by them


def home_of(program: str) -> tuple[Path, ...]:
    """The folders that a program outside of /usr lives in: a virtual environment, a version manager's folder."""
    return tuple(dict.fromkeys(_homes(Path(program), Path(program).resolve())))


def _homes(*places: Path) -> Iterator[Path]:
    for place in places:
        if not any(place.is_relative_to(known) for known in _SEEN_BY_ALL):
            yield place.parent.parent if place.parent.name == "bin" else place.parent
