"""A site in a folder, and the mails that its owner writes to the built-in agent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.jobs.ports import AgentResult, AgentTask, AttachedFile
from webordinary.model.mail import Attachment, AttachmentKind


class SiteFolder:
    """The files of a site, as they were and as the agent left them. All mails are of one thread."""

    def __init__(self, folder: Path, site: Mapping[str, str]) -> None:
        self.folder, self.before, self.session = folder / "site", dict(site), ""
        for parent in {(self.folder / name).parent for name in site}:
            parent.mkdir(parents=True, exist_ok=True)
        self.restore({})
        self.photo = folder / "photo.jpg"
        self.photo.write_bytes(b"\xff\xd8\xff photo")

    def restore(self, files: Mapping[str, str]) -> None:
        """Write the site as it was in the beginning over these files of the folder, and begin a new thread."""
        self.session = ""
        for name in files.keys() - self.before.keys():
            (self.folder / name).unlink()
        for name, text in self.before.items():
            if files.get(name) != text:
                (self.folder / name).write_bytes(text.encode())

    def write(self, mail: str, *photos: str, subject: str = "") -> AgentResult:
        """Send a mail with photos of these names."""
        files = tuple(
            AttachedFile(Attachment(name, "image/jpeg", AttachmentKind.IMAGE, 9, "0" * 64), self.photo)
            for name in photos
        )
        task = AgentTask(mail, self.folder, files, session=self.session, subject=subject)
        result = BuiltinAgent().run(task, FakeCancelToken())
        self.session = result.session or self.session
        return result

    def files(self) -> dict[str, str]:
        """The site as it is."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes().decode("utf-8", "replace")
            for path in self.folder.rglob("*")
            if path.is_file()
        }

    def changes(self) -> dict[str, str]:
        """The files that are not as they were."""
        return {name: text for name, text in self.files().items() if self.before.get(name) != text}

    def becomes(self, mail: str, file: str, old: str, new: str) -> None:
        """The mail changes this file, only here and only so; all others stay."""
        result = self.write(mail)
        assert self.before[file].count(old) == 1
        assert (type(result).__name__, self.changes()) == ("Changed", {file: self.before[file].replace(old, new)}), (
            result
        )
