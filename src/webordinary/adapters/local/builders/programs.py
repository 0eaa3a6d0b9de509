"""Where the operator's programs are, and what of the machine they need to see."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from webordinary.adapters.local.builders.bench import NotBuilt


def find_program(name: str) -> str:
    """Its path; raises NotBuilt where it is not installed."""
    found = shutil.which(name)
    if found is None:
        raise NotBuilt(f"{name} is not installed on the machine that builds this site.", mendable=False)
    return os.path.realpath(found) if Path(found).is_symlink() and not _in_environment(found) else found


def home_of(program: str) -> tuple[Path, ...]:
    """The folders that a program outside of /usr lives in: a virtual environment, a version manager's folder."""
    place = Path(program)
    if place.is_relative_to("/usr") or place.is_relative_to("/bin"):
        return ()
    return (place.parent.parent,) if place.parent.name == "bin" else (place.parent,)


def _in_environment(program: str) -> bool:
    return (Path(program).parent.parent / "pyvenv.cfg").exists()
