"""Stage: the changed page in pictures, before and after; a nicety that never fails a job."""

from __future__ import annotations

from pathlib import Path

from webordinary.site.manifests import manifest_of
from webordinary.site.pictures import page_to_show
from webordinary.site.publish import Published
from webordinary.worker.run import JobRun


def take_pictures(run: JobRun, published: Published, before: Path | None) -> tuple[str, ...]:
    """Digests of the pictures, the newer one last; none where nobody takes them or the reply should not wait."""
    studio = run.kit.studio
    if studio is None or not published.flipped or not studio.worth_it(run.seconds_since_start()):
        return ()
    began, after = run.now(), published.release.path
    page = page_to_show(manifest_of(before), manifest_of(after))
    if page is None:
        return ()
    pictures = studio.take(before, after, page)
    kept = tuple(studio.keep(picture) for picture in (pictures.before, pictures.after) if picture)
    run.tell("PicturesTaken", began, page=page, pictures=len(kept))
    return kept if pictures.after else ()
