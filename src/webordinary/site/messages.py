"""Commit messages: what a change was asked for and by whom, and how to read that back."""

from __future__ import annotations

from dataclasses import dataclass

SUBJECT_LENGTH = 68
INSTRUCTION_LENGTH = 4_000
SUMMARY_LENGTH = 4_000
_QUOTE = "> "


@dataclass(frozen=True, slots=True)
class ChangeMessage:
    """Everything a commit tells. A commit with `saved_for` holds unfinished work and never reaches main."""

    instruction: str
    summary: str
    job_id: str
    thread_id: str
    user_id: str
    sender: str
    undoes: str = ""
    unfinished: bool = False

    def text(self) -> str:
        """The commit message; quoting keeps the customer's text from posing as a trailer."""
        paragraphs = [
            self._subject(),
            _plain(self.summary, SUMMARY_LENGTH),
            _quoted(self.instruction),
            self._trailers(),
        ]
        return "\n\n".join(p for p in paragraphs if p) + "\n"

    @property
    def author(self) -> tuple[str, str]:
        """Name and address that git records."""
        return self.user_id, _one_line(self.sender).replace("<", "").replace(">", "") or "unknown"

    def _subject(self) -> str:
        words = _one_line(self.instruction) or "A change"
        subject = words if len(words) <= SUBJECT_LENGTH else words[: SUBJECT_LENGTH - 1].rstrip() + "…"
        return f"Unfinished: {subject}" if self.unfinished else subject

    def _trailers(self) -> str:
        name, address = self.author
        lines = [
            f"{'Saved-For' if self.unfinished else 'Job-Id'}: {self.job_id}",
            f"Thread: {self.thread_id}",
            f"Customer: {name} <{address}>",
        ]
        if self.undoes:
            lines.append(f"Undoes: {self.undoes}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Note:
    """What our own commits say of themselves; all empty for anybody else's commit."""

    summary: str = ""
    job_id: str = ""
    saved_for: str = ""
    thread_id: str = ""
    undoes: str = ""
    title: str = ""
    rolled_back_to: str = ""
    """The commit whose content an operator brought back."""


def read_note(text: str) -> Note:
    """Read a commit message back. Only the last paragraph can hold trailers, and never the first."""
    paragraphs = [p for p in text.strip("\n").split("\n\n") if p.strip()]
    if len(paragraphs) < 2:
        return Note()
    trailers = dict(_trailer(line) for line in paragraphs[-1].splitlines())
    body = [p for p in paragraphs[1:-1] if not p.startswith(_QUOTE.strip())]
    return Note(
        summary="\n\n".join(body),
        job_id=trailers.get("Job-Id", ""),
        saved_for=trailers.get("Saved-For", ""),
        thread_id=trailers.get("Thread", ""),
        undoes=trailers.get("Undoes", ""),
        title=paragraphs[0].strip() if "Job-Id" in trailers else "",
        rolled_back_to=trailers.get("Rolled-Back-To", ""),
    )


def _trailer(line: str) -> tuple[str, str]:
    name, _, value = line.partition(": ")
    return name, value.strip()


def _plain(text: str, limit: int) -> str:
    lines = (" " + line if line.startswith(_QUOTE.strip()) else line for line in _lines(text, limit))
    return "\n".join(lines).strip("\n")


def _quoted(text: str) -> str:
    return "\n".join((_QUOTE + line).rstrip() for line in _lines(text, INSTRUCTION_LENGTH))


def _lines(text: str, limit: int) -> list[str]:
    printable = "".join(c for c in text[:limit] if c == "\n" or c.isprintable())
    return [line.rstrip() for line in printable.strip().split("\n")]


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
