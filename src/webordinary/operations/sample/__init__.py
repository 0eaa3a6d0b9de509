"""The sample: Amelia's hand-made pottery, a small plain site, and a photo to write a mail with."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

from webordinary.adapters.durable import make_folder, move_durably
from webordinary.adapters.git.command import Git, harden_origin

PROJECT_ID = "amelia"
USER_ID = "scott"
SENDER = "scott@example.com"
PHOTO_NAME = "spring-table.jpg"
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Amelia",
    "GIT_AUTHOR_EMAIL": "hello@amelia.example",
    "GIT_COMMITTER_NAME": "Amelia",
    "GIT_COMMITTER_EMAIL": "hello@amelia.example",
}


def ensure_sample_origin(path: Path) -> Path:
    """The sample's bare repository, made on first use; an existing one is left as it is."""
    if not path.exists():
        make_folder(path.parent)
        fresh = path.with_name(f".{path.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        make_origin(fresh, _files("amelia"))
        move_durably(fresh, path)
    return path


def make_origin(path: Path, files: dict[str, bytes]) -> None:
    """A new bare repository whose main holds these files."""
    tree = path.with_name(f"{path.name}.tree")
    for name, content in files.items():
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    Git(path, "sample")("init", "--quiet", "--bare", "--template=", "--initial-branch=main")
    git = Git(path, "sample", tree, _IDENTITY)
    harden_origin(path)
    git("add", "--all", "--force")
    git("commit", "--quiet", "--no-verify", "-m", "The first pots are on the shelf")
    shutil.rmtree(tree)


def sample_photo() -> bytes:
    """A JPEG of a laid table, for the example mail with a photo."""
    return (resources.files(__package__) / PHOTO_NAME).read_bytes()


def _files(folder: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    pending = [(resources.files(__package__) / folder, "")]
    while pending:
        place, prefix = pending.pop()
        for entry in place.iterdir():
            if entry.is_dir():
                pending.append((entry, f"{prefix}{entry.name}/"))
            else:
                found[prefix + entry.name] = entry.read_bytes()
    return found
