"""Stage: the joined source becomes the files of a site."""

from __future__ import annotations

from pathlib import Path

from webordinary.site.builders import choose_builder
from webordinary.site.sources import BuildFailed, Built, SourceTree
from webordinary.worker.run import JobRun


def build(run: JobRun, tree: SourceTree, into: Path, previous: Path | None) -> Built | BuildFailed:
    """Build with the builder that the project names, or the one that fits."""
    began = run.now()
    builder = choose_builder(run.kit.builders, run.project.builder, tree)
    if isinstance(builder, BuildFailed):
        return builder
    built = builder.build(tree, into, previous, run.hold)
    if built.log:
        run.kit.build_logs.add(run.job.job_id, built.log)
    if isinstance(built, Built):
        run.tell("SiteBuilt", began, builder=built.builder, files=built.files)
    else:
        run.tell("SiteNotBuilt", began, reason=built.reason)
    return built
