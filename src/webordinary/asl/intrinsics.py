"""What every query language must answer, and the intrinsic functions, each compiled to a call.

The states speak only to `QueryLanguage`. An intrinsic call looks like `States.Format('{} of {}', $.a, $.b)`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, Protocol

from webordinary.asl.values import JSON, Condition, Data, Expression, compile_path, dump, is_number


class Field(Protocol):
    """A field that is given as a value or as an expression; `label` names it in error texts."""

    @property
    def label(self) -> str:
        """The field as the definition spells it, `SecondsPath` or `Seconds`."""

    @property
    def source(self) -> str:
        """The expression's text, for error texts."""

    def read(self, data: Data) -> JSON:
        """The field's value for this state's data."""


class DataFlow(Protocol):
    """The way of data through one state."""

    def effective_input(self, data: Data) -> JSON:
        """What the state works on: the input, filtered and before any template."""

    def arguments(self, data: Data, effective: JSON) -> JSON:
        """What the state hands to its work: the effective input or the template made of it."""

    def output(self, data: Data, result: JSON) -> JSON:
        """What the state passes on, of its input and its work's result."""

    def shaped(self, data: Data, result: JSON) -> JSON:
        """The result after its selector: what Assign sees."""


class QueryLanguage(Protocol):
    """Compiles the expressions of a state; raises InvalidDefinition for what it cannot read."""

    def flow(self, raw: Mapping[str, Any], where: str) -> DataFlow:
        """The data flow of a state."""

    def field(self, raw: Mapping[str, Any], name: str, where: str) -> Field | None:
        """A field or its …Path form, None if neither is given."""

    def text(self, raw: Mapping[str, Any], name: str, where: str) -> Field | None:
        """A field of text (Error, Cause), which may also be computed by a function."""

    def template(self, value: JSON, field: str, where: str) -> Expression:
        """A payload template (Parameters, ItemSelector, Assign…)."""

    def condition(self, rule: Mapping[str, Any], where: str) -> Condition:
        """A Choice rule's test."""

    def placement(self, raw: Mapping[str, Any], where: str) -> Callable[[Data, JSON], JSON]:
        """Where a caught error goes in the state's input."""


Arguments = Sequence[JSON]
Function = Callable[[Data, Arguments], JSON]
FUNCTIONS: dict[str, Function] = {}

_RANGE_LIMIT = 1000
_BASE64_LIMIT = 10_000
_HASHES = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}
_FORMAT = re.compile(r"\\(.)|(\{\})")


class BadIntrinsic(Exception):
    """A call that is written wrongly or was given arguments it cannot use."""


def _function(name: str, *counts: int) -> Callable[[Function], Function]:
    """Register a function that takes one of these numbers of arguments; none given = any number."""

    def register(function: Function) -> Function:
        def checked(data: Data, args: Arguments) -> JSON:
            if counts and len(args) not in counts:
                raise BadIntrinsic(f"States.{name} takes {counts[-1]} arguments, {len(args)} given")
            return function(data, args)

        FUNCTIONS[name] = checked
        return function

    return register


def _list(name: str, value: JSON) -> list[JSON]:
    if not isinstance(value, list):
        raise BadIntrinsic(f"States.{name} takes an array, not {dump(value)}")
    return value


def _text(name: str, value: JSON) -> str:
    if not isinstance(value, str):
        raise BadIntrinsic(f"States.{name} takes a string, not {dump(value)}")
    return value


def _integer(name: str, value: JSON) -> int:
    if not is_number(value):
        raise BadIntrinsic(f"States.{name} takes numbers, not {dump(value)}")
    return math.floor(value + 0.5)  # type: ignore[operator]  # halves go up, as Java rounds them


@_function("Array")
def _array(_: Data, args: Arguments) -> JSON:
    return list(args)


@_function("ArrayPartition", 2)
def _array_partition(_: Data, args: Arguments) -> JSON:
    items, size = _list("ArrayPartition", args[0]), _integer("ArrayPartition", args[1])
    if size <= 0:
        raise BadIntrinsic("States.ArrayPartition takes a positive chunk size")
    return [items[i : i + size] for i in range(0, len(items), size)]


@_function("ArrayContains", 2)
def _array_contains(_: Data, args: Arguments) -> JSON:
    return any(_same(item, args[1]) for item in _list("ArrayContains", args[0]))


def _same(one: JSON, other: JSON) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


@_function("ArrayRange", 3)
def _array_range(_: Data, args: Arguments) -> JSON:
    first, last, step = (_integer("ArrayRange", arg) for arg in args)
    if step == 0:
        raise BadIntrinsic("States.ArrayRange takes a step other than 0")
    made = range(first, last + (1 if step > 0 else -1), step)
    if len(made) > _RANGE_LIMIT:
        raise BadIntrinsic(f"States.ArrayRange makes at most {_RANGE_LIMIT} elements")
    return list(made)


@_function("ArrayGetItem", 2)
def _array_get_item(_: Data, args: Arguments) -> JSON:
    items, index = _list("ArrayGetItem", args[0]), _integer("ArrayGetItem", args[1])
    if not 0 <= index < len(items):
        raise BadIntrinsic(f"States.ArrayGetItem: no element {index} in an array of {len(items)}")
    item: JSON = items[index]
    return item


@_function("ArrayLength", 1)
def _array_length(_: Data, args: Arguments) -> JSON:
    return len(_list("ArrayLength", args[0]))


@_function("ArrayUnique", 1)
def _array_unique(_: Data, args: Arguments) -> JSON:
    kept: dict[str, JSON] = {}
    for item in _list("ArrayUnique", args[0]):
        kept.setdefault(json.dumps(item, sort_keys=True), item)
    return list(kept.values())


@_function("Base64Encode", 1)
def _base64_encode(_: Data, args: Arguments) -> JSON:
    text = _text("Base64Encode", args[0])
    if len(text) > _BASE64_LIMIT:
        raise BadIntrinsic(f"States.Base64Encode takes at most {_BASE64_LIMIT} characters")
    return base64.b64encode(text.encode()).decode()


@_function("Base64Decode", 1)
def _base64_decode(_: Data, args: Arguments) -> JSON:
    text = _text("Base64Decode", args[0])
    if len(text) > _BASE64_LIMIT:
        raise BadIntrinsic(f"States.Base64Decode takes at most {_BASE64_LIMIT} characters")
    try:
        return base64.b64decode(text).decode("utf-8", "replace")
    except binascii.Error as problem:
        raise BadIntrinsic(f"States.Base64Decode: {problem}") from problem


@_function("Hash", 2)
def _hash(_: Data, args: Arguments) -> JSON:
    algorithm = _text("Hash", args[1])
    if algorithm not in _HASHES:
        raise BadIntrinsic(f"States.Hash knows {', '.join(_HASHES)}, not {algorithm}")
    text = args[0] if isinstance(args[0], str) else dump(args[0])
    return hashlib.new(_HASHES[algorithm], text.encode(), usedforsecurity=False).hexdigest()


@_function("JsonMerge", 3)
def _json_merge(_: Data, args: Arguments) -> JSON:
    one, other, deep = args
    if not isinstance(one, dict) or not isinstance(other, dict):
        raise BadIntrinsic("States.JsonMerge takes two objects")
    if deep is not False:
        raise BadIntrinsic("States.JsonMerge: only shallow merging (false) is supported")
    return {**one, **other}


@_function("StringToJson", 1)
def _string_to_json(_: Data, args: Arguments) -> JSON:
    text = _text("StringToJson", args[0])
    if not text.strip():
        return None
    try:
        parsed: JSON = json.loads(text)
    except ValueError as problem:
        raise BadIntrinsic(f"States.StringToJson: {problem}") from problem
    return parsed


@_function("JsonToString", 1)
def _json_to_string(_: Data, args: Arguments) -> JSON:
    return dump(args[0])


@_function("MathAdd", 2)
def _math_add(_: Data, args: Arguments) -> JSON:
    return _integer("MathAdd", args[0]) + _integer("MathAdd", args[1])


@_function("MathRandom", 2, 3)
def _math_random(data: Data, args: Arguments) -> JSON:
    low, high = _integer("MathRandom", args[0]), _integer("MathRandom", args[1])
    if low >= high:
        raise BadIntrinsic("States.MathRandom takes a start below its end")
    seed = _integer("MathRandom", args[2]) if len(args) == 3 else None
    chance = data.chance() if seed is None else Random(seed)  # noqa: S311  the language offers no more
    return chance.randrange(low, high)


@_function("StringSplit", 2)
def _string_split(_: Data, args: Arguments) -> JSON:
    text, separators = _text("StringSplit", args[0]), _text("StringSplit", args[1])
    if not separators:
        return [text]
    # Every character of the separator splits, and empty pieces vanish, as AWS's tokenizer does it.
    return [piece for piece in re.split(f"[{re.escape(separators)}]", text) if piece]


@_function("UUID", 0)
def _uuid(data: Data, _: Arguments) -> JSON:
    return str(uuid.UUID(int=data.chance().getrandbits(128), version=4))


@_function("Format")
def _format(_: Data, args: Arguments) -> JSON:
    if not args:
        raise BadIntrinsic("States.Format takes a template")
    pattern, values = _text("Format", args[0]), iter(args[1:])
    used = 0

    def fill(match: re.Match[str]) -> str:
        nonlocal used
        if match[2] is None:
            return match[1]
        used += 1
        try:
            return java_text(next(values), outer=True)
        except StopIteration:
            raise BadIntrinsic("States.Format has fewer values than {}") from None

    made = _FORMAT.sub(fill, pattern)
    if used != len(args) - 1:
        raise BadIntrinsic("States.Format has more values than {}")
    return made


def java_text(value: JSON, *, outer: bool = False) -> str:
    """A value as Java's Map and List print themselves: `{a=1, b=[x]}`."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={java_text(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(java_text(inner) for inner in value) + "]"
    return dump(value)


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
