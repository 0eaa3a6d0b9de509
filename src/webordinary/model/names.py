"""Names of projects, users, threads and mails, and the rules that keep queue and branch names unambiguous."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from webordinary.model.errors import InvalidName

_PROJECT_ID = re.compile(r"[a-z0-9-]{1,32}")
_PREVIEW = re.compile(r"t-[0-9a-f]{16}--")
"""On AWS the preview of a conversation of `kiln` is called `t-0123456789abcdef--kiln`."""
_USER_ID = re.compile(r"[a-z0-9]{1,24}")
_REDRIVEN = re.compile(r"-r\d{1,9}$")


@dataclass(frozen=True, order=True)
class ProjectUser:
    """The pair that is claimed; `amelia#scott` in text."""

    project_id: str
    user_id: str

    def __post_init__(self) -> None:
        if not _PROJECT_ID.fullmatch(self.project_id):
            raise InvalidName(f"project name {self.project_id!r}: use 1 to 32 of a-z, 0-9 and -")
        if _PREVIEW.match(self.project_id):
            raise InvalidName(f"project name {self.project_id!r}: previews of conversations are called so")
        if not _USER_ID.fullmatch(self.user_id):
            raise InvalidName(f"user name {self.user_id!r}: use 1 to 24 of a-z and 0-9")

    @classmethod
    @lru_cache(maxsize=4096)  # the same few keys are read over and over
    def parse(cls, text: str) -> ProjectUser:
        """Read `amelia#scott`."""
        project_id, _, user_id = text.partition("#")
        return cls(project_id, user_id)

    @cached_property
    def text(self) -> str:
        """`amelia#scott`, as stores have it."""
        return f"{self.project_id}#{self.user_id}"

    def __str__(self) -> str:
        return self.text


def may_name_a_project(text: str) -> bool:
    """Whether there could be a project of this name."""
    return _PROJECT_ID.fullmatch(text) is not None and not _PREVIEW.match(text)


def email_id_of(message_id: str, sender: str, recipient: str, body: bytes | memoryview) -> str:
    """Name one accepted mail; the same mail delivered again gets the same name."""
    digest = hashlib.sha256()
    for part in (message_id.encode(), sender.encode(), recipient.encode(), body):
        digest.update(len(part).to_bytes(8, "big"))  # lengths keep ("ab", "c") apart from ("a", "bc")
        digest.update(part)
    return digest.hexdigest()


def thread_id_of(root_message_id: str) -> str:
    """Name a mail conversation after the Message-ID that began it."""
    return hashlib.sha256(root_message_id.encode()).hexdigest()[:16]


def branch_of(thread_id: str) -> str:
    """The git branch that holds a thread's work."""
    return f"thread-{thread_id}"


def job_id_of(email_id: str, redrive: int = 0) -> str:
    """The job that a mail becomes; the same on every retry of the step that records it, new at each redrive."""
    return f"job-{email_id[:20]}" + (f"-r{redrive}" if redrive else "")


def first_job_of(job_id: str) -> str:
    """The job that a mail became at first: commits name it, so that a redrive finds what was done already."""
    return _REDRIVEN.sub("", job_id)
