"""What the end of a run means: a result, a reason to try again, or a reason to give up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webordinary.model.errors import Permanent, Transient
from webordinary.site.task import SMALLER, AgentLimits, NotUnderstood

if TYPE_CHECKING:
    from claude_agent_sdk import ResultMessage

_ERROR_CHARACTERS = 600
_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_NO_RIGHT = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Ending:
    """The program's own account of its run; `reason` is its `terminal_reason`."""

    failed: bool
    reason: str
    words: str
    status: int | None
    session: str
    total_cost_usd: float
    turns: int
    said: str = ""

    @property
    def stopped(self) -> bool:
        """Whether it was interrupted."""
        return self.reason.startswith("aborted")


def read_ending(result: ResultMessage) -> Ending:
    """From the SDK's ResultMessage. A failed call of the API says `success` there: only `is_error` counts."""
    told = result.structured_output if isinstance(result.structured_output, dict) else {}
    errors = "; ".join(map(str, result.errors or ()))
    return Ending(
        failed=bool(result.is_error),
        reason=str(result.terminal_reason or result.subtype or ""),
        words=str(told.get("message") or result.result or errors or ""),
        status=result.api_error_status,
        session=str(result.session_id or ""),
        total_cost_usd=float(result.total_cost_usd or 0.0),
        turns=int(result.num_turns or 0),
        said=str(told.get("outcome", "")),
    )


def judge(ending: Ending, limits: AgentLimits, cost_usd: float) -> NotUnderstood | None:
    """None for a run that ended well; words for the customer where a cap was reached; else raises."""
    if not ending.failed:
        return None
    words = ending.words[:_ERROR_CHARACTERS] or "no words"
    if ending.reason in ("budget_exhausted", "error_max_budget_usd"):
        text = f"This took {limits.too_costly}, so I stopped. {SMALLER}"
        return NotUnderstood(text, ending.session, cost_usd)
    if ending.reason in ("max_turns", "error_max_turns"):
        text = f"This took more than the {limits.turns} steps that one mail may take, so I stopped. {SMALLER}"
        return NotUnderstood(text, ending.session, cost_usd)
    if ending.status in _NO_RIGHT:
        raise Permanent(f"the model refuses the key of the agent claude ({words}): check it, then redrive this mail")
    if ending.status in _TRY_AGAIN or (ending.reason == "api_error" and ending.status is None):
        raise Transient(f"the model cannot be reached now: {words}")
    raise Permanent(f"the agent claude gave up ({ending.reason}): {words}")
