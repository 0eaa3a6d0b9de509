"""Credentials of a project's origin. Only git learns where they are; no log or error shows them."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from webordinary.adapters.durable import move_durably
from webordinary.adapters.git.command import REMOTE_SECONDS, Git, machine_fault_in
from webordinary.adapters.processes import run
from webordinary.model.errors import Permanent, Transient
from webordinary.model.projects import Project

MAX_BYTES = 20_000
DEFAULT_USER = "x-access-token"
_USERS = frozenset({"", "git", DEFAULT_USER, "x-token-auth", "x-bitbucket-api-token-auth", "oauth2", "gitlab-ci-token"})
"""What hosts want as the user name beside a token; the same for everybody."""
_TOKEN, _KEY, _ASKPASS, _KNOWN_HOSTS = "token", "key", "askpass", "known_hosts"
_CHECK_SECONDS = 10.0

# Git asks "Username for 'https://host': " and "Password for 'https://user@host': ". Another host, after a redirect
# say, gets no answer. The token goes from its file into git's pipe: it is in no argument and no environment.
_ANSWERS = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
read -r host < host
case "$1" in
"Username for "*"//$host': ") exec cat user ;;
"Password for "*"@$host': ") exec cat token ;;
esac
exit 1
"""


class CredentialKind(StrEnum):
    """The kind of a project's credential."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105  the word, not a secret
    KEY = "ssh key"


class Credentials:
    """One folder a project below DATA/secrets, for this user's eyes only."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def kind(self, project_id: str) -> CredentialKind:
        """Which kind of credential there is."""
        home = self._home(project_id)
        if home is not None and (home / _TOKEN).exists():
            return CredentialKind.TOKEN
        return CredentialKind.KEY if home is not None and (home / _KEY).exists() else CredentialKind.NONE

    def env(self, project_id: str) -> Mapping[str, str]:
        """What git needs to know to get into the project's origin: names of files, no secret."""
        home = self._home(project_id)
        if home is None:
            return {}
        match self.kind(project_id):
            case CredentialKind.TOKEN:
                return {"GIT_ASKPASS": str(home / _ASKPASS)}
            case CredentialKind.KEY:
                return {"GIT_SSH_COMMAND": shlex.join(_ssh(home)), "SSH_AUTH_SOCK": ""}
            case _:
                return {}

    @contextmanager
    def on_trial(self, project_id: str, repo: str, content: bytes) -> Iterator[None]:
        """Keep a credential if the block ends well; otherwise what was there before is back."""
        home = self._home(project_id)
        assert home is not None, "a folder for secrets is needed to keep one"
        before = home.with_name(f".{project_id}.{secrets.token_hex(4)}")
        self._keep(project_id, repo, content, before)
        try:
            yield
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            if before.exists():
                before.rename(home)
            raise
        shutil.rmtree(before, ignore_errors=True)

    def forget(self, project_id: str) -> bool:
        """Remove a project's credential; False if there was none."""
        home = self._home(project_id)
        if home is None or not home.exists():
            return False
        shutil.rmtree(home)
        return True

    def _keep(self, project_id: str, repo: str, content: bytes, before: Path) -> None:
        home = self._home(project_id)
        assert home is not None
        files = _token_files(repo, content) if _is_http(urlsplit(repo)) else _key_files(repo, content)
        home.parent.mkdir(parents=True, exist_ok=True)
        home.parent.chmod(0o700)
        draft = home.with_name(f".{project_id}.{secrets.token_hex(4)}")
        draft.mkdir(0o700)
        try:
            for name, text in files.items():
                _write_private(draft / name, text, 0o700 if name == _ASKPASS else 0o600)
            if _KEY in files:
                _check_key(draft / _KEY)
            if home.exists():
                home.rename(before)
            move_durably(draft, home)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def _home(self, project_id: str) -> Path | None:
        return self._folder / project_id if self._folder else None


def refuse_secret_in(repo: str) -> None:
    """Raise Permanent if an address may hold a secret: it would show in lists, logs and process tables.

    Over http a token can stand for the user name or in the query as well, so only names that are no secrets pass.
    """
    url = urlsplit(repo) if "://" in repo else urlsplit("")
    if "::" in repo.partition("/")[0]:
        raise Permanent("the address of the repository names a helper of git: write it without what stands before ::")
    if url.password or (_is_http(url) and (url.username or "") not in _USERS):
        raise Permanent(
            "the address of the repository holds a user name or a password: leave it out, put `user:token`, or the "
            "token alone, into a file of its own and name that with --credential FILE"
        )
    if _is_http(url) and (url.query or url.fragment):
        raise Permanent(
            "the address of the repository goes on after a ? or a #: leave that out; a token belongs into a file of "
            "its own, named with --credential FILE"
        )


def _is_http(url: SplitResult) -> bool:
    return url.scheme in ("http", "https")


def _token_files(repo: str, content: bytes) -> dict[str, str]:
    url = urlsplit(repo)
    lines = _text(content).split("\n")
    user, _, token = lines[0].partition(":") if ":" in lines[0] else ("", "", lines[0])
    if len(lines) != 1 or not token or not token.isprintable():
        raise Permanent(
            "for an https address the credential is one line: a token, or user:token; write only that into the file"
        )
    host = url.netloc.rpartition("@")[2]
    return {
        "host": f"{host}\n",
        "user": f"{user or url.username or DEFAULT_USER}\n",
        _TOKEN: f"{token}\n",
        _ASKPASS: _ANSWERS,
    }


def _key_files(repo: str, content: bytes) -> dict[str, str]:
    if Path(repo).is_absolute():
        raise Permanent(f"{repo} is on this machine and needs no credential")
    text = _text(content)
    if "PRIVATE KEY-----" not in text.partition("\n")[0]:
        raise Permanent("for an ssh address the credential is a private key, as ssh-keygen writes it: name that file")
    return {_KEY: f"{text}\n"}


def _text(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise Permanent(f"the credential has {len(content):,} bytes, and at most {MAX_BYTES:,} make sense")
    try:
        return content.decode("utf-8").replace("\r\n", "\n").strip()
    except UnicodeDecodeError as problem:
        raise Permanent("the credential is not text: is it the right file?") from problem


def _ssh(home: Path) -> list[str]:
    """Only this key, no settings of the user, and this project's own list of hosts."""
    options = {
        "BatchMode": "yes",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "StrictHostKeyChecking": "accept-new",
        "UserKnownHostsFile": f'"{home / _KNOWN_HOSTS}"',  # quoted for ssh, which splits at blanks
        "GlobalKnownHostsFile": os.devnull,
    }
    settings = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    return ["ssh", "-F", os.devnull, "-i", str(home / _KEY), *settings]


def _check_key(key: Path) -> None:
    """A key with a passphrase cannot be used: no person is there to type it."""
    if shutil.which("ssh-keygen") is None:
        return
    args = ["ssh-keygen", "-y", "-P", "", "-f", str(key)]
    finished = run(args, cwd=key.parent, env={"PATH": os.environ.get("PATH", "")}, seconds=_CHECK_SECONDS)
    if finished.code != 0:
        raise Permanent("the ssh key has a passphrase or is damaged: make one without, for this site alone")


def _write_private(path: Path, text: str, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


_WORDS = 300
_ALWAYS_SAID = "fatal: Could not read from remote repository."
"""What git ends with whatever happened, and some advice after it."""
_NO_ENTRY = (
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "Permission denied (",
    "The requested URL returned error: 401",
    "The requested URL returned error: 403",
    "Invalid username or password",
    "Invalid username or token",
    "Host key verification failed",
)


class AccessRefused(Permanent):
    """The origin does not take the project's credential, or wants one."""

    def __init__(self, project: Project, words: str) -> None:
        super().__init__(
            f"{project.project_id}: its repository {project.repo} does not let us in ({_short(words)}); "
            f"give it the right credential with `webordinary project credential {project.project_id} FILE`"
        )


def check_access(project: Project, words: str) -> None:
    """Raise AccessRefused if that is what git's words say."""
    if any(refusal in words for refusal in _NO_ENTRY):
        raise AccessRefused(project, words)


def reach(git: Git, project: Project) -> None:
    """Raise AccessRefused if the origin keeps us out, Transient unless it answers."""
    finished = git.attempt("ls-remote", "--quiet", "--", project.repo, "HEAD", seconds=REMOTE_SECONDS)
    if finished.code != 0:
        words = finished.err.decode(errors="replace").strip()
        check_access(project, words)
        message = f"{project.project_id}: its repository {project.repo} does not answer ({_short(words)})"
        raise Transient(message) from machine_fault_in(words)


def check_writable(git: Git, project: Project, branch: str) -> None:
    """Raise AccessRefused or Permanent unless the origin would take a push; nothing is pushed."""
    ref = f"refs/heads/{branch}"
    args = ("push", "--dry-run", "--quiet", "--no-verify", "--", project.repo, f"{ref}:{ref}")
    finished = git.attempt(*args, seconds=REMOTE_SECONDS)
    words = finished.err.decode(errors="replace").strip()
    if finished.code != 0 and "[rejected]" not in words:  # it moved on meanwhile: it would have taken the push
        check_access(project, words)
        raise Permanent(f"{project.project_id}: its repository {project.repo} takes no push ({_short(words)})")


def _short(words: str) -> str:
    """On one line, as it stands in a sentence."""
    message = words.partition(_ALWAYS_SAID)[0].strip() or words
    return " ".join(message.split())[-_WORDS:]
