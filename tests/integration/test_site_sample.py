"""The sample site: whole, linked, and made once."""

from __future__ import annotations

import subprocess
from importlib import resources
from pathlib import Path

import pytest

from webordinary.adapters.agents.builtin.html import parse_page
from webordinary.operations.sample import ensure_sample_origin, sample_photo


def test_every_link_and_picture_of_the_sample_is_there() -> None:
    folder = Path(str(resources.files("webordinary.operations.sample") / "amelia"))
    pages = sorted(folder.glob("*.html"))
    assert len(pages) >= 4
    for path in pages:
        page = parse_page(path.read_text(encoding="utf-8"))
        wanted = [e.attributes.get("href") or e.attributes.get("src") for e in page.all("a", "img", "link")]
        local = [name for name in wanted if name and not name.startswith("mailto:")]
        assert [name for name in local if not (folder / name).is_file()] == []
        assert all("alt" in image.attributes for image in page.all("img"))


def test_the_photo_is_a_modest_jpeg() -> None:
    assert sample_photo().startswith(b"\xff\xd8\xff")
    assert len(sample_photo()) < 150_000


@pytest.mark.needs("git")
def test_the_sample_origin_is_made_once_and_then_left_alone(tmp_path: Path) -> None:
    origin = ensure_sample_origin(tmp_path / "origins" / "amelia.git")
    first = subprocess.run(["git", "-C", str(origin), "rev-parse", "main"], check=True, capture_output=True).stdout
    assert ensure_sample_origin(origin) == origin
    again = subprocess.run(["git", "-C", str(origin), "rev-parse", "main"], check=True, capture_output=True).stdout
    assert first == again
    assert [entry.name for entry in origin.parent.iterdir()] == ["amelia.git"]
