"""Which files of a Python or Node installation a program needs; never the whole prefix, which may be a home folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_PYTHON_PARTS = ("bin/python3*", "lib*/python3*", "lib*/libpython3*.so*")
_SETTINGS = "pyvenv.cfg"


def virtual_environment_of(program: Path) -> Path | None:
    """The virtual environment in whose `bin` a program lies."""
    return next((prefix for prefix in _prefixes(program) if (prefix / _SETTINGS).is_file()), None)


def node_prefix_of(program: Path) -> Path | None:
    """The prefix of the Node installation in whose `bin` or global packages a program lies."""
    packages = (folder.parent.parent for folder in program.parents if folder.parts[-2:] == ("lib", "node_modules"))
    known = (*_prefixes(program), *packages)
    return next((prefix for prefix in known if (prefix / "lib/node_modules/npm").is_dir()), None)


def python_prefix_of(program: Path) -> Path | None:
    """The prefix of the Python installation in whose `bin` a program lies."""
    return next((prefix for prefix in _prefixes(program) if any(prefix.glob("lib/python3*/os.py"))), None)


def _prefixes(program: Path) -> tuple[Path, ...]:
    return (program.parent.parent,) if program.parent.name == "bin" else ()


def virtual_environment_files(folder: Path) -> Iterator[Path]:
    """The environment itself, and the Python installation that it was made from."""
    yield folder
    for line in (folder / _SETTINGS).read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home" and Path(value.strip()).is_absolute():
            yield from python_files(Path(value.strip()).parent)


def node_files(prefix: Path) -> Iterator[Path]:
    """The interpreter and all global packages. `etc/npmrc`, which may hold a token, is not among them."""
    yield prefix / "lib/node_modules"
    if (prefix / "bin/node").exists():
        yield prefix / "bin/node"


def python_files(prefix: Path) -> Iterator[Path]:
    """The interpreter, its standard library and what was installed into it; nothing of the machine's own Python."""
    if not prefix.resolve().is_relative_to("/usr"):
        for part in _PYTHON_PARTS:
            yield from sorted(prefix.glob(part))
