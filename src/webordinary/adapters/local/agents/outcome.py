"""What an agent says that it did, against what it left behind."""

from __future__ import annotations

from webordinary.site.task import AgentResult, Answered, Asked, Changed

MOST_CHARACTERS = 20_000
NO_WORDS = "Done as you asked."


def result_of(
    said: str, message: str, *, differs: bool, went_on: bool, session: str = "", cost_usd: float = 0.0
) -> AgentResult:
    """`said` is `changed`, `answered`, `question` or nothing; `went_on` when work of an earlier run is there too.

    A question outweighs half an edit, which is put back. Else nothing that was done is dropped, whatever was said.
    """
    words = message.strip()[:MOST_CHARACTERS] or NO_WORDS
    if said == "question":
        return Asked(words, session, cost_usd)
    if said == "changed" or differs or (went_on and not said):
        return Changed(words, session, cost_usd)
    return Answered(words, session, cost_usd)
