"""Any program as an agent: the instruction on stdin, the workspace as its folder, the result on stdout.

The result is JSON, `{"changed": "…"}`, `{"answered": "…"}`, `{"asked": "…"}` or `{"not_understood": "…"}`,
with an optional `session` and `cost_usd`, and beside `changed` or `answered` an optional `"then": "publish"` or
`"then": "undo"`, or a date: `"later": "2026-12-01"` or `"until": "2026-12-06T18:30"`. Plain text counts as the summary
of a change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from webordinary.adapters.agents.process import ProgressReporter
from webordinary.adapters.agents.workspace import dollars
from webordinary.jobs.ports import (
    AgentResult,
    AgentTask,
    Answered,
    Asked,
    Changed,
    NotUnderstood,
    ProgramRunner,
    ignore_progress,
)
from webordinary.jobs.sandbox_policy import Network, SandboxPolicy
from webordinary.model.claims import CancelToken
from webordinary.model.errors import Permanent, Transient

_KINDS: dict[str, type[Changed] | type[Answered] | type[Asked] | type[NotUnderstood]] = {
    "changed": Changed,
    "answered": Answered,
    "asked": Asked,
    "not_understood": NotUnderstood,
}
_PASSED_ON = ("PATH", "LANG", "TZ")
_TEXT_CHARACTERS, _DATE_CHARACTERS = 20_000, 40


class CommandAgent:
    """Runs what the operator configured, by list; only chosen variables of the environment reach it."""

    def __init__(
        self,
        args: Sequence[str],
        programs: ProgramRunner,
        env: Mapping[str, str] | None = None,
        network: Network | None = None,
    ) -> None:
        if not args:
            raise Permanent("the command agent needs a program: set it in the configuration")
        self._args, self._programs, self._env = tuple(args), programs, dict(env or {})
        self._network = network or Network()

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        """Run the program to its end; its failure gives the job up, with its own words.

        Exit code 75 (EX_TEMPFAIL) and a death by signal are tried again.
        """
        code, out, err = self._programs.run(
            self._args,
            task.workspace,
            task.words.encode(),
            self._environment(task),
            task.limits.seconds,
            token,
            SandboxPolicy(tuple(file.path for file in task.attachments), network=self._network),
            ProgressReporter(task.tell, task.workspace).say,
        )
        if code != 0:
            words = err.decode(errors="replace").strip()[-600:] or "no words"
            family = Transient if code < 0 or code == os.EX_TEMPFAIL else Permanent
            raise family(f"the agent {self._args[0]} ended with {code}: {words}")
        result = read_result(out.decode(errors="replace"), task.tell)
        task.spent(result.cost_usd)
        return result

    def _environment(self, task: AgentTask) -> dict[str, str]:
        env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        files = "\n".join(str(file.path) for file in task.attachments)
        names = "\n".join(file.attachment.name.replace("\n", " ") for file in task.attachments)
        return env | self._env | {
            "WEBORDINARY_SESSION": task.session,
            "WEBORDINARY_NOW": task.now.isoformat(timespec="minutes") if task.now else "",
            "WEBORDINARY_IS_DUE": "yes" if task.is_due else "",
            "WEBORDINARY_SUBJECT": task.subject.replace("\0", ""),
            "WEBORDINARY_ATTACHMENTS": files,
            "WEBORDINARY_ATTACHMENT_NAMES": names,
        }  # fmt: skip


def read_result(text: str, tell: Callable[[str], None] = ignore_progress) -> AgentResult:
    """Read what the program printed; `tell` hears what of it made no sense."""
    text = text.strip()
    try:
        record: Any = json.loads(text)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        return Changed(text[:_TEXT_CHARACTERS] or "Done as you asked.")
    for name, kind in _KINDS.items():
        if name in record:
            words = str(record[name])[:_TEXT_CHARACTERS]
            result = kind(words, str(record.get("session") or ""), dollars(record.get("cost_usd", 0.0), tell))
            then = record.get("then")
            if isinstance(result, Changed | Answered) and then in ("publish", "undo"):
                return replace(result, then=str(then))
            for when in ("later", "until"):
                if isinstance(result, Changed | Answered) and record.get(when):
                    return replace(result, then=when, at=str(record[when])[:_DATE_CHARACTERS])
            return result
    raise Permanent(f"the agent's answer has none of {', '.join(_KINDS)}: {text[:200]}")
