"""What an agent does, in a few words for the timeline: a bounded number of them, and none twice in a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

MOST_TOLD = 60
MOST_CHARACTERS = 160
_VERBS = {"Read": "reads", "Edit": "edits", "Write": "writes", "Glob": "looks for", "Grep": "searches for"}
_ABOUT = ("file_path", "path", "pattern")


class Narrator:
    """Between an agent and the timeline."""

    def __init__(self, tell: Callable[[str], None], workspace: Path) -> None:
        self._tell, self._workspace = tell, workspace
        self._count, self._last = 0, ""

    def say(self, words: str) -> None:
        """Pass it on, shortened, unless it was said just now or too much was said already."""
        words = " ".join(words.replace(f"{self._workspace}/", "").split())
        if not words or words == self._last or self._count > MOST_TOLD:
            return
        self._last, self._count = words, self._count + 1
        if self._count > MOST_TOLD:
            words = "goes on, with more steps than are told here"
        self._tell(words if len(words) <= MOST_CHARACTERS else f"{words[: MOST_CHARACTERS - 1]}…")

    def tool(self, name: str, args: Mapping[str, object]) -> None:
        """A tool is used: which, and on what."""
        about = next((str(args[key]) for key in _ABOUT if args.get(key)), "")
        verb = _VERBS.get(name, "runs a command" if name == "Bash" else f"uses {name.removeprefix('mcp__site__')}")
        self.say(f"{verb} {about}")
