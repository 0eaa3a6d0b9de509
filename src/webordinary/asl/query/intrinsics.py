"""Intrinsic functions: `States.Format('{} of {}', $.a, States.ArrayLength($.b))` compiled to a call."""

from __future__ import annotations

import re
from functools import lru_cache

from webordinary.asl.json_types import JSON
from webordinary.asl.paths import compile_path
from webordinary.asl.query.base import Data, Expression
from webordinary.asl.query.intrinsic_functions import FUNCTIONS, BadIntrinsic

__all__ = ["BadIntrinsic", "compile_intrinsic"]

_CALL = re.compile(r"\s*States\.(\w+)\s*\(")
_STRING = re.compile(r"\s*'((?:[^'\\]|\\['{}\\])*)'")  # no other escape is legal
_NUMBER = re.compile(r"\s*(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)")
_WORD = re.compile(r"\s*(true|false|null)\b")
_WORDS: dict[str, JSON] = {"true": True, "false": False, "null": None}
_SPACE_COMMA = re.compile(r"\s*,")
_CLOSE = re.compile(r"\s*\)")
_MAX_DEPTH = 10


@lru_cache(maxsize=1024)
def compile_intrinsic(text: str) -> Expression:
    """Compile once per text; raises BadIntrinsic or BadPath."""
    call, end = _call(text, 0, depth=1)
    if text[end:].strip():
        raise BadIntrinsic(f"Invalid intrinsic: {text}: unexpected {text[end:].strip()!r} after the call")
    return call


def _call(text: str, start: int, depth: int) -> tuple[Expression, int]:
    match = _CALL.match(text, start)
    if match is None or match[1] not in FUNCTIONS:
        raise BadIntrinsic(f"Invalid intrinsic: {text}: no such function")
    if depth > _MAX_DEPTH:
        raise BadIntrinsic(f"Invalid intrinsic: {text}: nested deeper than {_MAX_DEPTH} calls")
    function = FUNCTIONS[match[1]]
    arguments, end = _arguments(text, match.end(), depth)

    def invoke(data: Data) -> JSON:
        return function(data, [argument(data) for argument in arguments])

    return invoke, end


def _arguments(text: str, position: int, depth: int) -> tuple[list[Expression], int]:
    arguments: list[Expression] = []
    if close := _CLOSE.match(text, position):
        return arguments, close.end()
    while True:
        argument, position = _argument(text, position, depth)
        arguments.append(argument)
        if close := _CLOSE.match(text, position):
            return arguments, close.end()
        comma = _SPACE_COMMA.match(text, position)
        if comma is None:
            raise BadIntrinsic(f"Invalid intrinsic: {text}: expected , or ) at {text[position:]!r}")
        position = comma.end()


def _argument(text: str, position: int, depth: int) -> tuple[Expression, int]:
    if match := _STRING.match(text, position):
        return _constant(_unescape(match[1])), match.end()
    if match := _NUMBER.match(text, position):
        number = match[1]
        return _constant(int(number) if number.lstrip("-").isdigit() else float(number)), match.end()
    if match := _WORD.match(text, position):
        return _constant(_WORDS[match[1]]), match.end()
    if _CALL.match(text, position):
        return _call(text, position, depth + 1)
    return _path(text, position)


def _constant(value: JSON) -> Expression:
    return lambda _: value


def _unescape(body: str) -> str:
    # Escaped braces stay escaped here: only States.Format gives them a meaning.
    return re.sub(r"\\([^{}])", r"\1", body)


def _path(text: str, position: int) -> tuple[Expression, int]:
    """A path ends at the first comma or bracket that belongs to the call and not to the path."""
    depth, quote, end = 0, "", position
    while end < len(text):
        char = text[end]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[(":
            depth += 1
        elif char in ")]" and depth:
            depth -= 1
        elif char in ",)":
            break
        end += 1
    path = compile_path(text[position:end].strip())
    return (lambda data: data.look_up(path)), end
