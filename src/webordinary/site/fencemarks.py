"""Fence marks: what the fence refs on an origin point at.

A mark holds the fence and a counter, so that its ref moves in every push: servers check only refs that move.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from webordinary.model.names import ProjectUser

_TEXT = re.compile(r"fence (\d{1,20})\ncounter (\d{1,20})\n")


@dataclass(frozen=True, slots=True)
class FenceMark:
    """The highest fence that has spoken, and how often the mark has moved."""

    fence: int = 0
    counter: int = 0

    def moved(self, fence: int) -> FenceMark | None:
        """The next mark; None when a higher fence has spoken already."""
        return FenceMark(fence, self.counter + 1) if fence >= self.fence else None

    def text(self) -> str:
        """As stored in the origin."""
        return f"fence {self.fence}\ncounter {self.counter}\n"


def read_mark(text: str) -> FenceMark:
    """Read a stored mark. A foreign text counts as the lowest fence, so that moving on repairs it."""
    match = _TEXT.fullmatch(text)
    return FenceMark(int(match[1]), int(match[2])) if match else FenceMark()


def key_fence_ref(key: ProjectUser) -> str:
    """Moves with every write to a thread's branch."""
    return f"refs/fence/key/{key.project_id}/{key.user_id}"


def project_fence_ref(project_id: str) -> str:
    """Moves with every write to main. Apart from the keys' refs: git cannot hold a ref below another ref."""
    return f"refs/fence/project/{project_id}"
