"""Small real sites of each kind, and a customer who writes to the built-in agent about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.unit.jobs.world import TestHold
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.jobs.ports import AgentResult, AgentTask, AttachedFile
from webordinary.model.mail import Attachment, AttachmentKind

HUGO = {
    "hugo.toml": 'baseURL = "https://amelia.example/"\n[menus]\n  [[menus.main]]\n    name = "About"\n'
    '    pageRef = "/about"\n    weight = 10\n',
    "content/_index.md": '+++\ntitle = "Amelia\'s pots"\n+++\n\nThrown in *Kent*.\n',
    "content/about.md": "---\ntitle: About us\nurl: /who\nlayout: wide\n---\n\nOne potter. Open on\nMondays.\n\n"
    "- Mugs\n- Bowls\n\n```\nOpen on Mondays\n```\n",
    "content/pots/index.md": "---\ntitle: 'Amelia''s pots'\n---\n# Pots\n\n![The kiln](/images/kiln.svg \"Hot\")\n\n"
    "Stoneware for the kitchen table, thrown by hand in a small workshop by the river, in small batches.\n",
    "layouts/index.html": "<h1>{{ .Title }}</h1>",
    "static/style.css": ":root { --accent: #b5573a; }\nbody { background: white; color: #333 }\n",
    "node_modules/x/index.md": "# Open on Mondays\n",
}
MKDOCS = {
    "mkdocs.yml": "site_name: Amelia\nnav:\n  - Home: index.md\n  - About: about.md\ntheme: readthedocs\n",
    "docs/index.md": "# Amelia\r\n\r\nPots & more.\r\n\r\n1. Mugs\r\n2. Bowls\r\n",
    "docs/about.md": "# About\n\n!!! note\n    Closed in May.\n\n## Hours\n\n* Monday\n\n* Friday\n\n"
    "## Prices\n\n* Mug, 24 €\n",
}


class Site:
    """A site in a folder."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self.folder = folder / "site"
        self.before = dict(files)
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(text.encode())
        self.photo = folder / "blob"
        self.photo.write_bytes(b"\xff\xd8\xff photo")

    def write(self, text: str, *photos: str) -> AgentResult:
        """Send a mail."""
        files = tuple(
            AttachedFile(Attachment(name, "image/jpeg", AttachmentKind.IMAGE, 9, "0" * 64), self.photo)
            for name in photos
        )
        return BuiltinAgent().run(AgentTask(text, self.folder, files), TestHold())

    def changes(self) -> dict[str, str]:
        """The files that are not as they were."""
        found = {
            path.relative_to(self.folder).as_posix(): path.read_bytes().decode("utf-8", "replace")
            for path in self.folder.rglob("*")
            if path.is_file()
        }
        return {name: text for name, text in found.items() if self.before.get(name) != text}

    def becomes(self, mail: str, file: str, old: str, new: str) -> None:
        """The mail changes this file, only here and only so; all others stay."""
        result = self.write(mail)
        assert self.before[file].count(old) == 1
        assert (type(result).__name__, self.changes()) == ("Changed", {file: self.before[file].replace(old, new)}), (
            result
        )
