"""One git call: by list, never by shell, deaf to hooks, prompts and anybody's own configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from webordinary.adapters.local.processes import WORKER_MARK, Finished, run
from webordinary.model.errors import Permanent, Transient

LOCAL_SECONDS = 60.0
REMOTE_SECONDS = 300.0
_ERROR_CHARACTERS = 600
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "core.autocrlf": "false",
    "gc.auto": "0",  # workspaces share the mirror's objects: nothing may prune them
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
    "protocol.version": "2",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "fetch.writeCommitGraph": "false",
}
_PASSED_ON = ("PATH", "HOME", "SSH_AUTH_SOCK", "TMPDIR")


class GitFailed(Transient):
    """Git said no; the message holds its words."""

    def __init__(self, args: tuple[str, ...], finished: Finished) -> None:
        words = finished.err.decode(errors="replace").strip()[-_ERROR_CHARACTERS:]
        super().__init__(f"git {' '.join(args)[:120]} ended with {finished.code}: {words or 'no words'}")
        self.words = words


@dataclass(frozen=True, slots=True)
class Git:
    """Git on one repository, for one worker; its folder lies apart from the tree that agents touch."""

    git_dir: Path
    worker: str
    tree: Path | None = None
    extra_env: Mapping[str, str] = field(default_factory=dict)
    """Who commits, or how to get into the origin."""

    def __call__(self, *args: str, stdin: bytes = b"", seconds: float = LOCAL_SECONDS) -> str:
        """Run it and return what it prints; raise GitFailed unless it ends well."""
        finished = self.attempt(*args, stdin=stdin, seconds=seconds)
        if finished.code != 0:
            raise GitFailed(args, finished)
        return finished.out.decode(errors="surrogateescape")

    def attempt(self, *args: str, stdin: bytes = b"", seconds: float = LOCAL_SECONDS) -> Finished:
        """Run it and let the caller judge."""
        where = ["git", f"--git-dir={self.git_dir}"]
        if self.tree is not None:
            where.append(f"--work-tree={self.tree}")
        try:
            finished = run(
                [*where, *args],
                cwd=self.tree or self.git_dir.parent,
                stdin=stdin,
                env=self._env(),
                seconds=seconds,
            )
        except FileNotFoundError as problem:
            if self.git_dir.parent.exists() and (self.tree is None or self.tree.exists()):
                raise Permanent("git is not installed: install it, then start the worker again") from problem
            raise Transient(f"{self.git_dir.parent} is gone; it will be made again") from problem
        if finished.timed_out or finished.overflowed:
            raise GitFailed(args, finished)
        return finished

    def _env(self) -> dict[str, str]:
        env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        env |= {
            WORKER_MARK: self.worker,
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_EDITOR": "true",
            "GIT_AUTHOR_NAME": "WebOrdinary",
            "GIT_AUTHOR_EMAIL": "webordinary@localhost",
            "GIT_COMMITTER_NAME": "WebOrdinary",
            "GIT_COMMITTER_EMAIL": "webordinary@localhost",
            "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        }
        for number, (name, value) in enumerate(_SETTINGS.items()):
            env |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return {**env, **self.extra_env}
