"""Photos go public upright, small enough, and without what cameras and programs write beside the pixels."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import pytest
from PIL import Image, ImageSequence
from PIL.PngImagePlugin import PngInfo

from tests.photos import BLUE, HEIC, PROFILE, RED, XMP, drawn, exif, grained, opened, picture
from webordinary.mail.parsing import photos
from webordinary.mail.parsing.attachments import FileType, sniff

SMALL, LARGE = (64, 48), (2400, 180)
"""One that keeps its size and one that is made smaller, both quick to encode."""
PRIVATE = (b"Exif", b"Phone of Scott", b"GPS", b"xmpmeta", b"Scott at home", b"at my house", b"MPF\0")


def type_of(data: bytes) -> FileType:
    found = sniff(data, "photo")
    assert isinstance(found, FileType), found
    return found


def prepared(data: bytes) -> bytes:
    made = photos.prepared(data, type_of(data))
    assert isinstance(made, bytes), made
    return made


def refusal(data: bytes) -> str:
    made = photos.prepared(data, type_of(data))
    assert isinstance(made, str)
    return made


def is_like(pixel: object, colour: tuple[int, int, int]) -> bool:
    assert isinstance(pixel, tuple)
    return all(abs(one - other) < 40 for one, other in zip(pixel, colour, strict=False))


def private_png() -> PngInfo:
    text = PngInfo()
    text.add_text("Comment", "at my house")
    text.add_itxt("XML:com.adobe.xmp", XMP.decode())
    return text


@pytest.mark.parametrize(
    "data",
    [
        picture("JPEG", exif=exif(), xmp=XMP, comment=b"at my house", icc_profile=PROFILE),
        picture("JPEG", (4000, 600), exif=exif(), xmp=XMP, comment=b"at my house", icc_profile=PROFILE),
        picture("MPO", exif=exif(), icc_profile=PROFILE, save_all=True, append_images=[drawn()]),
        picture("PNG", exif=exif(), pnginfo=private_png(), icc_profile=PROFILE),
        picture("WEBP", exif=exif(), xmp=XMP, icc_profile=PROFILE),
        picture("AVIF", exif=exif(), xmp=XMP, icc_profile=PROFILE),
        HEIC.read_bytes(),
    ],
    ids=["jpeg", "large jpeg", "jpeg with a second picture", "png", "webp", "avif", "heic"],
)
def test_a_photo_is_upright_and_keeps_nothing_but_its_pixels_and_profile(data: bytes) -> None:
    made = prepared(data)
    assert not [word for word in PRIVATE if word in made]
    image = opened(made)
    assert not dict(image.getexif())
    assert image.info["icc_profile"] == opened(data).info["icc_profile"]
    assert image.height > image.width
    assert is_like(image.getpixel((image.width // 2, 2)), BLUE)
    assert is_like(image.getpixel((image.width // 2, image.height - 3)), RED)


@pytest.mark.parametrize(
    ("form", "ending"), [("JPEG", ".jpg"), ("PNG", ".png"), ("GIF", ".gif"), ("WEBP", ".webp"), ("AVIF", ".avif")]
)
def test_a_picture_stays_what_it_is_and_gets_at_most_2000_pixels(form: str, ending: str) -> None:
    made = prepared(picture(form, (4002, 30)))
    assert opened(made).size == (2000, 15)
    assert opened(made).format == form
    assert type_of(made).ending == ending


def test_a_heic_photo_becomes_jpeg() -> None:
    assert opened(prepared(HEIC.read_bytes())).format == "JPEG"


def test_a_heic_photo_is_refused_in_words_where_libheif_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(Image.OPEN, "HEIF")
    assert "send it as JPEG" in refusal(HEIC.read_bytes())


def test_a_small_jpeg_keeps_its_quality() -> None:
    sent = picture("JPEG", quality=97, subsampling=0, exif=exif(1))
    made = opened(prepared(sent))
    assert made.quantization == opened(sent).quantization  # type: ignore[attr-defined]


def test_a_long_narrow_picture_keeps_a_pixel_of_its_short_side() -> None:
    assert opened(prepared(picture("PNG", (9000, 1)))).size == (2000, 1)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize(
    ("form", "mode"), [("JPEG", "CMYK"), ("JPEG", "L"), ("PNG", "1"), ("PNG", "L"), ("PNG", "LA"), ("PNG", "RGBA")]
)
def test_pictures_of_all_modes_are_prepared(form: str, mode: str, size: tuple[int, int]) -> None:
    made = opened(prepared(picture(form, size, mode)))
    assert made.format == form
    halves = made.convert("L").resize((2, 1), Image.Resampling.BOX)  # pixels of one bit are mixed
    assert halves.getpixel((0, 0)) != halves.getpixel((1, 0))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_picture_with_a_palette_keeps_its_transparency(size: tuple[int, int]) -> None:
    indexed = drawn(size).quantize(2)
    indexed.info["transparency"] = indexed.getpixel((0, 0))
    sent = io.BytesIO()
    indexed.save(sent, "PNG")
    made = opened(prepared(sent.getvalue())).convert("RGBA")
    assert made.getpixel((1, 1))[3] == 0  # type: ignore[index]
    assert made.getpixel((made.width - 2, 1)) == (*RED, 255)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_picture_of_16_bits_stays_grey(size: tuple[int, int]) -> None:
    sent = io.BytesIO()
    Image.new("I;16", size, 40_000).save(sent, "PNG")
    made = opened(prepared(sent.getvalue()))
    assert abs(made.getpixel((5, 5)) - 40_000) < 100  # type: ignore[operator]


@pytest.mark.parametrize("form", ["WEBP", "PNG"])
def test_an_animation_keeps_its_frames_and_drops_its_metadata(form: str) -> None:
    frames = [Image.new("RGB", (3000, 40), colour) for colour in ("red", "lime", "blue")]
    sent = io.BytesIO()
    frames[0].save(
        sent, form, save_all=True, append_images=frames[1:], duration=[100, 200, 300], loop=2, exif=exif(1), xmp=XMP
    )
    made = prepared(sent.getvalue())
    image = Image.open(io.BytesIO(made))
    shown = [frame.convert("RGB") for frame in ImageSequence.Iterator(image)]
    assert [frame.size for frame in shown] == [(2000, 27)] * 3
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    assert all(is_like(frame.getpixel((5, 5)), colour) for frame, colour in zip(shown, colours, strict=True))
    assert image.info["loop"] == 2
    assert not [word for word in PRIVATE if word in made]


def test_an_animated_gif_keeps_its_bytes() -> None:
    sent = picture("GIF", save_all=True, append_images=[Image.new("RGB", (64, 48), "lime")], duration=100)
    assert prepared(sent) == sent


def test_a_gif_loses_its_comment() -> None:
    assert b"at my house" not in prepared(picture("GIF", comment=b"at my house"))


def bomb(width: int, height: int) -> bytes:
    """The header of a picture that nobody can hold."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = b"IDAT" + zlib.compress(bytes(1000))
    chunks = (struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in (head, body))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(("size", "words"), [((60_000, 60_000), "3600 megapixels"), ((10_000, 5_001), "51 megapixels")])
def test_a_picture_of_too_many_pixels_is_refused_by_its_header(size: tuple[int, int], words: str) -> None:
    assert words in refusal(bomb(*size))


def test_frames_count_as_pixels() -> None:
    frame = Image.new("1", (3000, 3000))
    sent = io.BytesIO()
    others = [Image.new("1", (3000, 3000), number % 2) for number in range(1, 6)]
    frame.save(sent, "PNG", save_all=True, append_images=others)
    assert "54 megapixels" in refusal(sent.getvalue())


@pytest.mark.parametrize(
    "data",
    [picture(form, (300, 200))[:-90] for form in ("JPEG", "PNG", "WEBP", "AVIF")]
    + [HEIC.read_bytes()[:-60], b"GIF89a.....", b"\xff\xd8\xff\xe0pixels", b"\x89PNG\r\n\x1a\nBM"],
)
def test_a_picture_that_cannot_be_read_is_refused_in_words(data: bytes) -> None:
    assert "send it again" in refusal(data)


def test_a_picture_is_opened_as_what_its_bytes_say_and_by_no_other_decoder() -> None:
    assert "send it again" in refusal(b"\x89PNG\r\n\x1a\n" + picture("BMP"))


def copied(image: Image.Image, form: str, **options: Any) -> bytes | str:  # noqa: ANN401
    made = io.BytesIO()
    image.save(made, form, **options)
    return photos.webp_copy(made.getvalue(), type_of(made.getvalue()))


def test_the_webp_copy_of_a_png_has_the_same_pixels() -> None:
    image = grained()
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    copy = copied(image, "PNG", icc_profile=PROFILE)
    assert isinstance(copy, bytes)
    assert opened(copy).convert("RGBA").getchannel("A").tobytes() == image.getchannel("A").tobytes()


@pytest.mark.parametrize(
    ("image", "form", "options"),
    [
        (drawn(), "PNG", {}),
        (grained(), "JPEG", {"quality": 40}),
        (grained().convert("CMYK"), "JPEG", {}),
        (grained(), "WEBP", {}),
        (grained(), "PNG", {"save_all": True, "append_images": [drawn((640, 480))]}),
    ],
    ids=["small", "saves little", "profile of printers", "is one", "moves"],
)
def test_a_picture_gets_no_webp_copy_that_is_not_worth_it(
    image: Image.Image, form: str, options: dict[str, Any]
) -> None:
    assert copied(image, form, **options) == photos.NO_COPY


def test_a_damaged_photo_gets_no_webp_copy() -> None:
    made = io.BytesIO()
    grained().save(made, "JPEG", quality=95)
    assert photos.webp_copy(made.getvalue()[:-5000], type_of(made.getvalue())) == photos.NO_COPY
