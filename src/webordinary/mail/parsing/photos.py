"""Photos for a website: upright, at most 2,000 pixels long, without metadata but the colour profile.

Imported by the processes that prepare photos and by no others: Pillow and libheif take memory and time to load.
"""

from __future__ import annotations

import io
import struct
import zlib
from contextlib import suppress
from typing import Any

from PIL import AvifImagePlugin, Image, ImageOps, ImageSequence, WebPImagePlugin  # noqa: F401 - makes WebP known

from webordinary.mail.parsing.attachments import AVIF, GIF, HEIC, JPEG, PNG, WEBP, FileType

with suppress(ImportError):  # libheif is not there for every platform
    import pi_heif

    pi_heif.register_heif_opener(thumbnails=False, depth_images=False, aux_images=False, decode_threads=1)

LONGEST_SIDE = 2_000
MAX_PIXELS = 50_000_000
"""Of all frames together, as the header says: the largest photos of phones have 48 to 50 million."""
UNREADABLE = "we cannot read this picture, perhaps it was cut off on its way; send it again, smaller or as JPEG"
TOO_LARGE = "preparing this picture takes more memory than a picture may take; send it smaller or as JPEG"
NO_COPY = "a WebP copy of this picture is not worth a file"
NO_HEIC = "it is a HEIC photo, which this system cannot read; send it as JPEG (a phone can convert it)"

Image.MAX_IMAGE_PIXELS = None  # the bound is ours, and is checked before a pixel is decoded
AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # each thread takes address space, which has a limit
_FORMATS = {JPEG: "JPEG", PNG: "PNG", GIF: "GIF", WEBP: "WEBP", AVIF: "AVIF", HEIC: "HEIF"}
_OPTIONS: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 85, "optimize": True},
    "PNG": {"compress_level": 4},
    "GIF": {},
    "WEBP": {"quality": 85, "method": 2},
    "AVIF": {"quality": 75, "speed": 8},
}
_DAMAGED = (
    OSError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, EOFError, RuntimeError, struct.error,
    zlib.error,
)  # fmt: skip
"""What Pillow and libheif raise for damaged files."""
_COPIED = {JPEG: {"quality": 80, "method": 4}, PNG: {"lossless": True, "quality": 20, "method": 1}}
_WORTH_SHARE, _WORTH_BYTES = 5, 4_096
"""A copy has to save a fifth of a photo, and so many bytes."""
_KEPT_INFO = ("icc_profile", "transparency")
_INDEXED = ("1", "P", "PA")
_ALPHA = ("LA", "La", "RGBA", "RGBa", "PA")


def prepared(data: bytes, found: FileType) -> bytes | str:
    """The picture as it may be published, or the reason why not. A HEIC photo becomes JPEG, others stay what they are.

    An animated GIF keeps its bytes: its frames would lose colours in a new encoding.
    """
    if found is HEIC and "HEIF" not in Image.OPEN:
        return NO_HEIC
    try:
        with Image.open(io.BytesIO(data), formats=[_FORMATS[found]]) as image:
            return _refusal_of(image) or (data if found is GIF and _frames(image) > 1 else _written(image, found))
    except MemoryError:
        return TOO_LARGE
    except _DAMAGED:
        return UNREADABLE


def webp_copy(photo: bytes, found: FileType) -> bytes | str:
    """The same prepared photo as WebP, or why there is none: a browser that reads WebP loads less then.

    A PNG stays as exact as it is; a picture of screens and letters would be blurred.
    """
    if found not in _COPIED:
        return NO_COPY
    try:
        with Image.open(io.BytesIO(photo), formats=[_FORMATS[found]]) as image:
            if _frames(image) > 1 or image.mode not in ("RGB", "RGBA", "P"):  # WebP has no other profiles and depths
                return NO_COPY
            made = image.convert("RGBA" if image.has_transparency_data else "RGB")
            made.info = {"icc_profile": image.info.get("icc_profile")}
            copy = _saved(made, "WEBP", _COPIED[found])
    except (MemoryError, *_DAMAGED):
        return NO_COPY
    return copy if len(photo) - len(copy) >= max(len(photo) // _WORTH_SHARE, _WORTH_BYTES) else NO_COPY


def _refusal_of(image: Image.Image) -> str:
    pixels = image.width * image.height * (1 if image.format == "GIF" else _frames(image))
    megapixels, allowed = -(-pixels // 10**6), MAX_PIXELS // 10**6
    return f"it has {megapixels} megapixels and we take {allowed}; send it smaller" if pixels > MAX_PIXELS else ""


def _frames(image: Image.Image) -> int:
    """A second picture in a JPEG or HEIC is a preview or another exposure, and no frame."""
    return getattr(image, "n_frames", 1) if image.format in ("GIF", "PNG", "WEBP", "AVIF") else 1


def _written(image: Image.Image, found: FileType) -> bytes:
    form = "JPEG" if found is HEIC else _FORMATS[found]
    if _frames(image) > 1:
        return _animation(image, form)
    size, made = sorted(image.size), _fitted(image)
    if made.format == "JPEG" and sorted(made.size) == size:
        return _saved(made, form, {"quality": "keep"})
    return _saved(_opaque(made) if form == "JPEG" else made, form, _OPTIONS[form])


def _animation(image: Image.Image, form: str) -> bytes:
    loop, durations, frames = image.info.get("loop", 0), [], []
    for frame in ImageSequence.Iterator(image):
        frame.load()
        durations.append(int(frame.info.get("duration", 100)))
        frames.append(_fitted(frame.copy()))
    timing = {"save_all": True, "append_images": frames[1:], "duration": durations, "loop": loop}
    return _saved(frames[0], form, _OPTIONS[form] | timing)


def _fitted(image: Image.Image) -> Image.Image:
    """The picture upright, within the bound, with the colour profile and transparency only."""
    if max(image.size) > LONGEST_SIDE:
        if image.mode in _INDEXED or "transparency" in image.info:  # such pixels cannot be averaged
            image = image.convert("RGBA" if image.has_transparency_data else "RGB")
        scale = LONGEST_SIDE / max(image.size)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image.thumbnail(size, Image.Resampling.LANCZOS)  # decodes a fraction of a JPEG, if told both sides
    image.load()
    ImageOps.exif_transpose(image, in_place=True)
    image.info = {name: image.info[name] for name in _KEPT_INFO if image.info.get(name) is not None}
    return image


def _opaque(image: Image.Image) -> Image.Image:
    if image.mode not in _ALPHA:
        return image
    white = Image.new("RGBA", image.size, "white")
    white.alpha_composite(image.convert("RGBA"))
    return white.convert("RGB")


def _saved(image: Image.Image, form: str, options: dict[str, Any]) -> bytes:
    made = io.BytesIO()
    image.save(made, form, icc_profile=image.info.get("icc_profile"), **options)
    return made.getvalue()
