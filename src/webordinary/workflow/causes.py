"""Why a step failed, in words: Step Functions wraps a function's own words in JSON, the embedded engine does not."""

from __future__ import annotations

import json


def words_of(cause: str) -> str:
    """What the step itself said."""
    try:
        told = json.loads(cause)
    except ValueError:
        return cause
    return str(told["errorMessage"]) if isinstance(told, dict) and "errorMessage" in told else cause
