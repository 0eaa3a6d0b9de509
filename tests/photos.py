"""Pictures as tests send them: real ones, with what cameras and programs write beside the pixels."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from PIL import Image, ImageCms
from PIL.ExifTags import GPS, IFD, Base

HEIC = Path(__file__).with_name("data") / "photo.heic"
"""As `drawn`, to be turned by 90 degrees, with a position and a profile; made with pillow-heif, which can encode."""
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF>Scott at home</rdf:RDF></x:xmpmeta>'
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
BLUE, RED = (30, 30, 200), (200, 30, 30)


def drawn(size: tuple[int, int] = (64, 48), mode: str = "RGB") -> Image.Image:
    """The left half blue, the right half red."""
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (0, 0, size[0] // 2, size[1]))
    return image.convert(mode)


def grained(size: tuple[int, int] = (640, 480)) -> Image.Image:
    """As a camera sees it: each pixel a little different from those beside it."""
    coarse = (size[0] // 4, size[1] // 4)
    return Image.merge("RGB", [Image.effect_noise(coarse, sigma).resize(size) for sigma in (20, 30, 40)])


def picture(form: str, size: tuple[int, int] = (64, 48), mode: str = "RGB", **options: Any) -> bytes:  # noqa: ANN401
    """The file of such a picture."""
    made = io.BytesIO()
    drawn(size, mode).save(made, form, **options)
    return made.getvalue()


def exif(orientation: int = 6) -> Image.Exif:
    """What a phone writes: where the photo was taken, with what, and how it was held."""
    written = Image.Exif()
    written[Base.Orientation] = orientation
    written[Base.Model] = "Phone of Scott"
    written.get_ifd(IFD.GPSInfo).update({GPS.GPSLatitudeRef: "N", GPS.GPSLatitude: (48.0, 8.0, 0.0)})
    return written


def opened(data: bytes) -> Image.Image:
    """The picture, decoded."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image
