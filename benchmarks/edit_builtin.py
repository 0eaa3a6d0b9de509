"""Does the time of the built-in agent grow with a page or a mail, and no faster, whatever somebody wrote into it?

Workload: texts that repeat one thing (blanks, quotation marks, half a tag, half a comment …), as each kind of file
that the agent reads, with a mail that holds one wish of each kind, and as the mail itself; each of one size and of four
times that size. Units: how many times longer the second takes (4 is linear, 16 quadratic; 1: too short to tell),
and its milliseconds beside those of harmless text of the same size.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from functools import partial
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import options, report, working_folder
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.jobs.ports import AgentTask
from webordinary.model.claims import OperatorToken

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests know the texts
from tests.hostile_texts import EVERYTHING, KINDS, MAILS, OPENINGS, UNITS, put_into_site, repeated

HARMLESS = ("", "Open on Mondays. ")
WORTH_A_RATIO = 0.1
"""Seconds that the longer text must take; below that a ratio is noise."""


def seconds(folder: Path, kind: str, text: str) -> float:
    """The time of a processor for one mail; a text that is no file is the mail."""
    with TemporaryDirectory(dir=folder) as name:
        put_into_site(Path(name), kind or "html", text if kind else "<title>a</title><p>Open on Mondays.")
        began = time.process_time()
        BuiltinAgent().run(AgentTask(EVERYTHING if kind else text, Path(name), ()), OperatorToken("bench"))
        return time.process_time() - began


def ratio(folder: Path, kind: str, size: int, family: tuple[str, str]) -> float:
    """How much longer four times as much takes."""
    long = seconds(folder, kind, repeated(*family, 4 * size))
    if long < WORTH_A_RATIO:
        return 1.0
    return long / max(seconds(folder, kind, repeated(*family, size)), WORTH_A_RATIO / 4)


def worst(folder: Path, kind: str, size: int, families: Iterable[tuple[str, str]]) -> dict[str, object]:
    """The family that grows fastest."""
    measure = partial(ratio, folder, kind, size)
    found = max((measure(family), family) for family in families)
    slowest, harmless = (seconds(folder, kind, repeated(*family, 4 * size)) for family in (found[1], HARMLESS))
    return {
        "ratio": round(found[0], 2),
        "family": ascii("".join(found[1])),
        "ms": round(slowest * 1000, 1),
        "harmless_ms": round(harmless * 1000, 1),
    }


def main() -> None:
    """Measure and report."""
    chosen = options(__doc__ or "", repeats=1)
    page, mail, units = chosen.pick(20_000, 100), chosen.pick(12_000, 100), chosen.pick(UNITS, UNITS[:2])
    bare = [("", unit) for unit in units]
    with working_folder(chosen) as folder:
        results = {kind: worst(folder, kind, page, [*bare, *zip(cycle(OPENINGS), units)]) for kind in KINDS}
        results["mail"] = worst(folder, "", mail, [*bare, *zip(cycle(MAILS), units)])
    workload = {"page_characters": page, "mail_characters": mail, "families": 2 * len(units)}
    report("how many times longer four times as much text takes", workload, results, chosen)


if __name__ == "__main__":
    main()
