"""What cannot be part of a site: links, submodules, huge files, files that lie elsewhere (Git LFS)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from webordinary.adapters.local.git.command import Git
from webordinary.model.errors import Permanent
from webordinary.model.text import clean, is_text
from webordinary.site.sources import Unfit

LARGEST_FILE_BYTES = 50_000_000
"""Hosts of repositories refuse more than 50 or 100 MB, and history keeps every version for ever."""
SYMBOLIC_LINK, SUBMODULE = "120000", "160000"
_ATTRIBUTES = ".gitattributes"
_ATTRIBUTES_BYTES = 100_000
_LFS = "filter=lfs"
_GIT_REFUSES = {
    "failed to encode": f"a {_ATTRIBUTES} names an encoding that some of the files do not have",
    "BOM is ": f"a {_ATTRIBUTES} names an encoding that some of the files do not have",
    '"): Permission denied': "some of the files cannot be read",
    "does not have a commit checked out": "there is a repository inside the site",
}
"""What git says of a tree that it cannot take in, however often it is asked, and what is wrong with that tree."""


def unfit(tree: Path, changed: Mapping[str, str]) -> Unfit | None:
    """Why a change of these files, by name and mode, cannot be recorded; None if it can."""
    for name, mode in changed.items():
        if mode in (SYMBOLIC_LINK, SUBMODULE):
            kind = "link" if mode == SYMBOLIC_LINK else "repository of its own"
            return Unfit(f"links cannot be published, nor repositories inside the site, and {name} is a {kind}.")
        if mode == "000000":
            continue  # removed
        if not is_text(name):
            return Unfit(f"no address could lead to {clean(name)}: its name is not written in UTF-8.")
        size = (tree / name).lstat().st_size
        if size > LARGEST_FILE_BYTES:
            return Unfit(
                f"{name} has {size / 1e6:,.0f} MB, and files over {LARGEST_FILE_BYTES / 1e6:.0f} MB cannot be part of "
                "the site. A smaller version, or a link to a place made for large files, would do."
            )
    if lfs := _uses_lfs(tree, changed):
        return Unfit(f"{lfs} asks for Git LFS, which cannot be published from here.")
    return None


def not_taken_in(words: str) -> Unfit | None:
    """Why git could not take the files in, if that is because of what they are; None if it is worth another try."""
    for said, reason in _GIT_REFUSES.items():
        if said in words:
            return Unfit(f"{reason}.")
    return None


def check_tree(tree: Path, modes: Mapping[str, str]) -> None:
    """Raise Permanent if somebody brought main into a state that cannot be built."""
    for name, mode in modes.items():
        if mode == SUBMODULE:
            raise Permanent(f"{name} is a submodule: put its files into the site's own repository")
    if lfs := _uses_lfs(tree, modes):
        raise Permanent(_lfs_words(lfs))


def check_sources(git: Git, commit: str) -> tuple[str, ...]:
    """Raise Permanent, in words, if a repository cannot be served: said at onboarding, not at the first mail.

    Returns, for people, the files that can be served but not shown.
    """
    unshown = []
    for entry in git("ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
        meta, _, name = entry.partition("\t")
        if meta.startswith(SUBMODULE):
            raise Permanent(f"{name} is a submodule: put its files into the site's own repository, then add it again")
        if not is_text(name):
            unshown.append(clean(name))
    found = git.attempt("grep", "--name-only", "-F", _LFS, commit, "--", f":(glob)**/{_ATTRIBUTES}")
    if found.code == 0:
        raise Permanent(_lfs_words(found.out.decode(errors="replace").split("\n")[0].partition(":")[2]))
    return tuple(unshown)


def _uses_lfs(tree: Path, names: Iterable[str]) -> str:
    for name in names:
        path = tree / name
        if name.rpartition("/")[2] == _ATTRIBUTES and path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if _LFS.encode() in file.read(_ATTRIBUTES_BYTES):
                    return name
    return ""


def _lfs_words(name: str) -> str:
    return (
        f"{name} sends files to Git LFS, so the repository holds only pointers to them: take that line out and put the "
        "files themselves into the repository (`git lfs migrate export`)"
    )
