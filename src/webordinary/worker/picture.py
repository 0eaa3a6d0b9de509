"""Stage: the changed page in pictures, before and after; a nicety that never fails a job."""

from __future__ import annotations

from webordinary.site.publish import Published
from webordinary.worker.run import JobRun


def take_pictures(run: JobRun, published: Published) -> tuple[str, ...]:
    """Digests of the pictures, the newer one last; none where nobody takes them or the reply should not wait."""
    studio, page = run.kit.studio, published.page
    if studio is None or not page or not published.flipped or not studio.worth_it(run.seconds_since_start()):
        return ()
    began = run.now()
    pictures = studio.take(published.before, published.release.path, page)
    kept = tuple(studio.keep(picture) for picture in (pictures.before, pictures.after) if picture)
    run.tell("PicturesTaken", began, page=page, pictures=len(kept))
    return kept if pictures.after else ()
