"""Each minute: what a lost message, a crash or an outage left undone is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Chore = Callable[[], int]


def reconcile(chores: Mapping[str, Chore]) -> dict[str, int]:
    """Do every chore and say how much each had to do; one that fails does not hold up the others.

    Raises the first failure at the end, so that Lambda counts it and the alarm sees it.
    """
    done: dict[str, int] = {}
    failed: list[Exception] = []
    for name, chore in chores.items():
        try:
            done[name] = chore()
        except Exception as problem:
            failed.append(problem)
    if failed:
        raise failed[0]
    return done
