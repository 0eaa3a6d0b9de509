"""Mails to try, one click away on the page."""

from __future__ import annotations

from webordinary import sample
from webordinary.entrypoints.dashboard.ports import Example, File


def examples() -> tuple[Example, ...]:
    """Two that the built-in agent understands, and one that it does not."""
    photo = File(sample.PHOTO_NAME, "image/jpeg", sample.sample_photo())
    return (
        Example("Change the title", "A new title", "Change the homepage title to Autumn Glazes"),
        Example(
            "Title and photo",
            "Spring sale, photo attached",
            "Change the homepage title to Spring Sale and add the attached photo to the homepage",
            (photo,),
        ),
        Example(
            "Something it cannot do", "A summer evening", "Please make the whole site feel more like a summer evening"
        ),
    )
