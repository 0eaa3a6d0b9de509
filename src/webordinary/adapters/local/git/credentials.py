"""Credentials: what lets us into a project's origin. Git alone is told where they lie; nobody is told what they say."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from webordinary.adapters.durable import sync_folder
from webordinary.adapters.local.processes import run
from webordinary.model.errors import Permanent

MAX_BYTES = 20_000
DEFAULT_USER = "x-access-token"
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


class Kind(StrEnum):
    """What a project has."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105  the word, not a secret
    KEY = "ssh key"


class Credentials:
    """One folder a project below DATA/secrets, for this user's eyes only."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def kind(self, project_id: str) -> Kind:
        """Which kind of credential there is."""
        home = self._home(project_id)
        if home is not None and (home / _TOKEN).exists():
            return Kind.TOKEN
        return Kind.KEY if home is not None and (home / _KEY).exists() else Kind.NONE

    def env(self, project_id: str) -> Mapping[str, str]:
        """What git needs to know to get into the project's origin: names of files, no secret."""
        home = self._home(project_id)
        if home is None:
            return {}
        match self.kind(project_id):
            case Kind.TOKEN:
                return {"GIT_ASKPASS": str(home / _ASKPASS)}
            case Kind.KEY:
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
        files = _token_files(repo, content) if urlsplit(repo).scheme in ("http", "https") else _key_files(repo, content)
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
            draft.rename(home)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync_folder(home.parent)

    def _home(self, project_id: str) -> Path | None:
        return self._folder / project_id if self._folder else None


def refuse_secret_in(repo: str) -> None:
    """Raise Permanent if an address holds a password: it would show in lists, logs and process tables."""
    if "://" in repo and urlsplit(repo).password:
        raise Permanent(
            "the address of the repository holds a password: leave it out, put it into a file of its own and "
            "name that with --credential FILE"
        )


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
    """A key that asks for a passphrase would fail at night, when nobody is there to type it."""
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
