"""A site, a scripted model and the real Claude Code between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.agents.claude_access import ModelAccess, model_access
from webordinary.adapters.agents.claude_agent import ClaudeAgent, ClaudeSettings
from webordinary.adapters.agents.scripted_model import ScriptedApi, Use
from webordinary.adapters.agents.session_store import SessionStore
from webordinary.adapters.files.stores import FolderSessionFiles
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox, UnconfinedSandbox
from webordinary.jobs.ports import AgentLimits, AgentResult, AgentTask, AttachedFile, Sandbox

KEY = "sk-not-for-the-agent"
THREAD = "a" * 16


def ends(outcome: str, message: str, tokens: int = 10) -> Use:
    """The model's last word."""
    return Use("StructuredOutput", {"outcome": outcome, "message": message}, tokens=tokens)


@dataclass
class ClaudeSite:
    """Workers share `kept`; each has its own scratch."""

    folder: Path
    jailed: bool = True
    told: list[str] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site = self.folder / "site"
        self.site.mkdir()
        self.page = self.site / "index.html"
        self.page.write_text("<h1>Pots</h1>\n")

    def jail(self, worker: str) -> Sandbox:
        return BubblewrapSandbox(worker, self.folder / worker / "jail") if self.jailed else UnconfinedSandbox(worker)

    def agent(self, api: ScriptedApi, worker: str = "w-1", retries: int = 1, grace: float = 60.0) -> ClaudeAgent:
        access = model_access({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api.url})
        return self.agent_with(lambda: access, worker, retries, grace)

    def agent_with(
        self, access: Callable[[], ModelAccess], worker: str = "w-1", retries: int = 1, grace: float = 60.0
    ) -> ClaudeAgent:
        return ClaudeAgent(
            self.jail(worker),
            SessionStore(FolderSessionFiles(self.folder / "kept"), self.folder / worker / "agents"),
            access,
            ClaudeSettings(shell=self.jailed, retries=retries, grace_seconds=grace),
        )

    def task(
        self, text: str, *, site: Path | None = None, files: tuple[AttachedFile, ...] = (),
        limits: AgentLimits | None = None, thread: str = THREAD,
    ) -> AgentTask:  # fmt: skip
        return AgentTask(
            text, site or self.site, files, limits=limits or AgentLimits(), project_id="amelia", thread_id=thread,
            tell=self.told.append, spent=self.spent.append,
        )  # fmt: skip

    def ask(self, api: ScriptedApi, text: str = "Change the title to Sale", worker: str = "w-1") -> AgentResult:
        return self.agent(api, worker).run(self.task(text), FakeCancelToken())

    def edit(self, old: str = "Pots", new: str = "Sale") -> tuple[Use, Use]:
        """What the model does to change the title."""
        page = str(self.page)
        return Use("Read", {"file_path": page}), Use("Edit", {"file_path": page, "old_string": old, "new_string": new})
