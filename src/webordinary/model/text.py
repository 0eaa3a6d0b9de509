"""Text from outside, as every store and page can hold it; made so where it comes in."""

from __future__ import annotations

import re

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2028\u2029]")


def clean(text: str) -> str:
    """Without control characters; what is no Unicode text, such as a lone surrogate, becomes a question mark."""
    return _CONTROLS.sub("", text).encode("utf-8", "replace").decode("utf-8")


def is_text(name: str) -> bool:
    """Whether a name, as the file system or git gave it, is UTF-8."""
    if name.isascii():
        return True
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
