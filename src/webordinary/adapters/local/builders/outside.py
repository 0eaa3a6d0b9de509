"""OutsideBuilder: a site whose own programs build it; one recipe for each kind of source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from webordinary.adapters.local.builders.bench import Bench, NotBuilt, opened_bench
from webordinary.adapters.local.builders.output import OutputLimits, publish_output
from webordinary.model.hold import Hold
from webordinary.site.ports import Programs
from webordinary.site.sources import BuildFailed, Built, SourceTree

BUILD_SECONDS = 600.0


class Recipe(Protocol):
    """How one kind of source is built."""

    @property
    def name(self) -> str:
        """As projects name it."""

    def fits(self, tree: SourceTree) -> bool:
        """Whether this looks like such a source."""

    def make(self, bench: Bench, hold: Hold) -> Path:
        """Build on the bench and return the folder with the site's files; raises NotBuilt."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What all recipes share. `refusal` tells why no outside program may run here; empty when one may."""

    programs: Programs
    scratch: Path
    refusal: Callable[[], str] = str
    seconds: float = BUILD_SECONDS
    limits: OutputLimits = field(default_factory=OutputLimits)


class OutsideBuilder:
    """A builder that follows a recipe. The programs run jailed; nothing of them is left but the site and its log."""

    def __init__(self, recipe: Recipe, workshop: Workshop) -> None:
        self._recipe, self._workshop = recipe, workshop

    def fits(self, tree: SourceTree) -> bool:
        """Whether the recipe is for such a source."""
        return self._recipe.fits(tree)

    def build(self, tree: SourceTree, into: Path, previous: Path | None, hold: Hold) -> Built | BuildFailed:
        """Build on a bench of its own, then move what came out into the release."""
        shop = self._workshop
        if refusal := shop.refusal():
            words = f"This site is built by {self._recipe.name}, and no such program may run here; the operator knows."
            return BuildFailed(words, refusal, mendable=False)
        try:
            with opened_bench(shop.scratch, tree, shop.programs, shop.seconds) as bench:
                return self._build(bench, into, previous, hold)
        except NotBuilt as problem:
            return BuildFailed(problem.reason, mendable=problem.mendable)

    def _build(self, bench: Bench, into: Path, previous: Path | None, hold: Hold) -> Built | BuildFailed:
        try:
            output = self._recipe.make(bench, hold)
            files = publish_output(output, into, previous, self._workshop.limits, hold)
        except NotBuilt as problem:
            bench.said.append(f"{problem.reason}\n")
            return BuildFailed(problem.reason, bench.log, problem.mendable)
        return Built(files, self._recipe.name, bench.log)
