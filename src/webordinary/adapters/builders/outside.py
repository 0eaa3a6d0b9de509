"""OutsideBuilder: a site whose own programs build it; `BuildSteps` for each kind of source."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from webordinary.adapters.builders.plain import OutputSync
from webordinary.adapters.processes import (
    node_files,
    node_prefix_of,
    python_files,
    python_prefix_of,
    virtual_environment_files,
    virtual_environment_of,
)
from webordinary.jobs.ports import ProgramRunner
from webordinary.jobs.sandbox_policy import NO_ACCESS, SandboxPolicy, private_part
from webordinary.jobs.site_files import is_hidden, keep_manifest
from webordinary.jobs.source import BuildFailed, Built, SourceTree
from webordinary.model.claims import CancelToken
from webordinary.model.errors import JobTimedOut, Permanent
from webordinary.model.text import clean

STEP_CHARACTERS = 60_000
LOG_CHARACTERS = 200_000
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PLAIN_OUTPUT = {"CI": "1", "NO_COLOR": "1", "FORCE_COLOR": "0", "TERM": "dumb"}


class NotBuilt(Exception):
    """No site came out, and why; `mendable` if another state of its source could be built here."""

    def __init__(self, reason: str, *, mendable: bool = True) -> None:
        super().__init__(reason)
        self.reason, self.mendable = clean(reason), mendable


@dataclass(slots=True)
class BuildDir:
    """One build under way."""

    path: Path
    tree: SourceTree
    programs: ProgramRunner
    seconds: float
    output: list[str] = field(default_factory=list)

    def run(
        self,
        args: Sequence[str],
        token: CancelToken,
        *,
        env: Mapping[str, str] | None = None,
        policy: SandboxPolicy = NO_ACCESS,
        cwd: Path | None = None,
    ) -> None:
        """Run one program to its good end; raises NotBuilt when it ends badly, too late, or wants too much."""
        name = Path(args[0]).name
        shown = " ".join([name, *args[1:]])
        try:
            code, out, err = self.programs.run(
                args, cwd or self.path, b"", {**_PLAIN_OUTPUT, **(env or {})}, self.seconds, token, policy
            )
        except (JobTimedOut, Permanent) as problem:
            token.check()  # the job's own end goes before the program's
            self._say(shown, str(problem))
            raise NotBuilt(_words(name, problem, self.seconds)) from problem
        self._say(shown, (out + b"\n" + err).decode(errors="replace"))
        if code != 0:
            self.output.append(f"{name} ended with {code}\n")
            raise NotBuilt(f"{name} ended with an error.")

    @property
    def log(self) -> str:
        """All that was said, bounded; the end matters most."""
        return "".join(self.output)[-LOG_CHARACTERS:]

    def _say(self, shown: str, text: str) -> None:
        plain = clean(_COLOURS.sub("", text).replace("\r", "\n")).replace(os.fspath(self.path), ".").strip()
        self.output.append(f"$ {shown.replace(os.fspath(self.path), '.')}\n{plain[-STEP_CHARACTERS:]}\n")


def _words(name: str, problem: Exception, seconds: float) -> str:
    if isinstance(problem, JobTimedOut):
        return f"{name} took longer than {seconds:.0f} seconds and was stopped."
    return f"{name} was stopped: it wanted more than it may have."


@contextmanager
def open_build_dir(scratch: Path, tree: SourceTree, programs: ProgramRunner, seconds: float) -> Iterator[BuildDir]:
    """A copy of the tracked files to build in, gone when the block ends: builds leave nothing in a workspace."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=scratch, ignore_cleanup_errors=True) as name:
        path = Path(name).resolve()
        _copy_tree(tree, path)
        yield BuildDir(path, tree, programs, seconds)


def _copy_tree(tree: SourceTree, into: Path) -> None:
    made = {into}
    for name in tree.files:
        source, target = tree.path / name, into / name
        if source.is_symlink() or not source.is_file():
            raise NotBuilt(f"{name} is a link or not a file, and links cannot be published.")
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        shutil.copyfile(source, target)
        target.chmod(source.stat().st_mode & 0o755)


CANDIDATES = ("dist", "build", "out", "public", "_site", "site")
_CHECK_EACH = 200
MAX_PATH_BYTES = 900
"""Of one file below the site: object stores take little more, and all paths of a site are in the worker's memory."""


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """How large a site may be."""

    files: int = 50_000
    bytes: int = 2_000_000_000


def find_output(build_dir: Path, tracked: Container[str]) -> Path:
    """The folder with the home page: the first known name that is no source itself."""
    for name in CANDIDATES:
        folder = build_dir / name
        if f"{name}/index.html" not in tracked and _is_inside(folder, build_dir) and (folder / "index.html").is_file():
            return folder
    where = ", ".join(f"{name}/" for name in CANDIDATES[:-1]) + f" or {CANDIDATES[-1]}/"
    raise NotBuilt(f"The build ended well, but left no index.html in {where}.")


def copy_output(output: Path, into: Path, previous: Path | None, limits: OutputLimits, token: CancelToken) -> int:
    """Fill the release with the output; what did not change is shared with the last one. How many files it has."""
    found = dict(_output_files(output, limits))
    if "index.html" not in found:
        raise NotBuilt("The build ended well, but left no index.html, so there would be no home page to show.")
    output_sync = OutputSync(into, previous, found)
    for count, (path, origin) in enumerate(sorted(found.items())):
        if count % _CHECK_EACH == 0:
            token.check()
        output_sync.copied(path, origin)
    keep_manifest(into, output_sync.manifest)
    return len(found)


def _output_files(output: Path, limits: OutputLimits) -> Iterator[tuple[str, str]]:
    root = f"{os.fspath(output)}/"
    unread, count, size = [root], 0, 0
    while unread:
        with os.scandir(unread.pop()) as entries:
            for entry in entries:
                path = entry.path.removeprefix(root)
                if is_hidden(path):
                    continue
                if len(os.fsencode(path)) > MAX_PATH_BYTES:
                    raise NotBuilt(f"The build left a file with a path of more than {MAX_PATH_BYTES} bytes.")
                if entry.is_dir(follow_symlinks=False):
                    unread.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    raise NotBuilt(f"The build left {path}, which is a link or no file: that cannot be published.")
                else:
                    count, size = count + 1, size + entry.stat(follow_symlinks=False).st_size
                    yield path, entry.path
                if count > limits.files or size > limits.bytes:
                    most = f"{limits.files:,} files or {limits.bytes // 1_000_000:,} MB"
                    raise NotBuilt(f"The build left more than {most}: that is too much for one site.")


def _is_inside(folder: Path, build_dir: Path) -> bool:
    """A real folder inside the build directory, not a link to somewhere else."""
    return folder.is_dir() and folder.resolve() == build_dir.resolve() / folder.relative_to(build_dir)


BUILD_SECONDS = 600.0


class BuildSteps(Protocol):
    """How one kind of source is built."""

    @property
    def name(self) -> str:
        """The name in the setting `builder`."""

    def fits(self, tree: SourceTree) -> bool:
        """Whether this looks like such a source."""

    def make(self, build_dir: BuildDir, token: CancelToken) -> Path:
        """Build in `build_dir` and return the folder with the site's files; raises NotBuilt."""


@dataclass(frozen=True, slots=True)
class BuildEnv:
    """What all recipes share. `refusal` tells why no outside program may run here; empty when one may."""

    programs: ProgramRunner
    scratch: Path
    refusal: Callable[[], str] = str
    seconds: float = BUILD_SECONDS
    limits: OutputLimits = field(default_factory=OutputLimits)


def _folder_of_site(tree: SourceTree) -> SourceTree:
    return tree.site


class OutsideBuilder:
    """A builder that runs `BuildSteps` in the sandbox; only the site and the log remain of it."""

    def __init__(
        self, steps: BuildSteps, build_env: BuildEnv, source: Callable[[SourceTree], SourceTree] = _folder_of_site
    ) -> None:
        self._steps, self._build_env, self._source = steps, build_env, source
        self.fits = steps.fits

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        """Build in a directory of its own, then copy the output into the release."""
        build_env = self._build_env
        if refusal := build_env.refusal():
            words = f"This site is built by {self._steps.name}, and no such program may run here; the operator knows."
            return BuildFailed(words, refusal, mendable=False)
        try:
            with open_build_dir(
                build_env.scratch, self._source(tree), build_env.programs, build_env.seconds
            ) as build_dir:
                return self._build(build_dir, into, previous, token)
        except NotBuilt as problem:
            return BuildFailed(problem.reason, mendable=problem.mendable)

    def _build(self, build_dir: BuildDir, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        try:
            output = self._steps.make(build_dir, token)
            if not _is_inside(output, build_dir.path):  # we read it outside of the sandbox: a link leads anywhere
                raise NotBuilt("The build left a link in place of its output.")
            files = copy_output(output, into, previous, self._build_env.limits, token)
        except NotBuilt as problem:
            build_dir.output.append(f"{problem.reason}\n")
            return BuildFailed(problem.reason, build_dir.log, problem.mendable)
        return Built(files, self._steps.name, build_dir.log)


_SEEN_BY_ALL = ("/usr", "/bin", "/sbin", "/lib")
_SEARCHED = "/usr/local/bin:/usr/bin:/bin"
_LINKS = 40
"""As many as the kernel follows."""


def find_program(name: str) -> str:
    """The path to start; raises NotBuilt where the program is not installed, or is a shim of a version manager."""
    found = shutil.which(name)
    if found is None:
        raise NotBuilt(f"{name} is not installed on the machine that builds this site.", mendable=False)
    program = _to_start(Path(os.path.abspath(found)))  # noqa: PTH100  links stay: see _to_start
    if program.parent.name == "shims":
        raise NotBuilt(
            f"{name} is a shim of a version manager, which does not work in a sandbox. Put the folder of the program "
            "itself first in PATH.", mendable=False,
        )  # fmt: skip
    return str(program)


def files_of(*programs: str) -> tuple[Path, ...]:
    """What programs outside of /usr need to see: their virtual environment or installation, else their one file.

    Raises NotBuilt where that would show a folder with private files.
    """
    shown = tuple(dict.fromkeys(path for program in programs for path in _files(Path(program))))
    for path in shown:
        if private := private_part(path):
            raise NotBuilt(
                f"{path} cannot be shown in a sandbox, as {private} is in it. Install the program elsewhere, or name "
                "only the folders that it needs in jail_readable.", mendable=False,
            )  # fmt: skip
    return shown


def search_path(*programs: str) -> dict[str, str]:
    """PATH inside a sandbox, so that scripts find their interpreter beside them."""
    own = dict.fromkeys(str(_interpreters(Path(program))) for program in programs if not _is_seen_by_all(Path(program)))
    return {"PATH": ":".join([*own, _SEARCHED])}


def _interpreters(program: Path) -> Path:
    prefix = node_prefix_of(program)
    return prefix / "bin" if prefix else program.parent


def _to_start(program: Path) -> Path:
    """The file behind the links, but in a virtual environment: that is known by the links in it."""
    if _is_seen_by_all(program):
        return program
    return next((hop for hop in _hops(program) if virtual_environment_of(hop)), program.resolve())


def _files(program: Path) -> Iterator[Path]:
    for hop in _hops(program):
        if _is_seen_by_all(hop):
            continue
        if environment := virtual_environment_of(hop):
            yield from virtual_environment_files(environment)
        elif prefix := node_prefix_of(hop):
            yield from node_files(prefix)
        elif prefix := python_prefix_of(hop):
            yield from python_files(prefix)
        if not virtual_environment_of(hop):
            yield hop


def _hops(program: Path) -> Iterator[Path]:
    """A program and each link on the way to its file."""
    for _ in range(_LINKS):
        yield program
        if not program.is_symlink():
            return
        program = Path(os.path.normpath(program.parent.resolve() / program.readlink()))


def _is_seen_by_all(path: Path) -> bool:
    return any(path.is_relative_to(known) for known in _SEEN_BY_ALL)
