"""Derives inputs from examples. A seed always gives the same input, on every machine."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

MAX_BYTES = 64 * 1024
_NUMBER = re.compile(rb"\d+")
_NUMBERS = (b"0", b"-1", b"1", b"255", b"65536", b"2147483648", b"18446744073709551616", b"9" * 400, b"0x10", b"+5")
_LINE_ENDS = (b"\r\n", b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n\r\n", b"\0", b"\x0b", b"\x0c", b"\x1c", b"\x85")


class Mutator:
    """Mutates one of `examples` a few times; `words` are tokens of the format that it inserts."""

    def __init__(self, examples: Sequence[bytes], words: Sequence[bytes]) -> None:
        self._examples, self._words = tuple(examples), tuple(words)
        self._mutations: tuple[Callable[[random.Random, bytes], bytes], ...] = (
            _flip_a_bit, _replace_a_byte, _delete, _repeat, _repeat_often, _move, _cut, _change_a_number,
            _change_a_line_end, self._insert_a_word, self._insert_a_word, self._replace_by_a_word, self._splice,
        )  # fmt: skip

    def input_of(self, seed: int) -> bytes:
        """The input of a seed; the first ones are the examples themselves."""
        if seed < len(self._examples):
            return self._examples[seed]
        rng = random.Random(seed)
        data = rng.choice(self._examples)
        for _ in range(min(1 + int(rng.expovariate(0.25)), 30)):
            data = rng.choice(self._mutations)(rng, data)[:MAX_BYTES]
        return data

    def _insert_a_word(self, rng: random.Random, data: bytes) -> bytes:
        at = rng.randrange(len(data) + 1)
        return data[:at] + rng.choice(self._words) + data[at:]

    def _replace_by_a_word(self, rng: random.Random, data: bytes) -> bytes:
        start, end = _span(rng, data)
        return data[:start] + rng.choice(self._words) + data[end:]

    def _splice(self, rng: random.Random, data: bytes) -> bytes:
        other = rng.choice(self._examples)
        return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _span(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + int(rng.expovariate(1 / 12)))


def _flip_a_bit(rng: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _replace_a_byte(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _delete(rng: random.Random, data: bytes) -> bytes:
    start, end = _span(rng, data)
    return data[:start] + data[end:]


def _repeat(rng: random.Random, data: bytes) -> bytes:
    start, end = _span(rng, data)
    return data[:end] + data[start:]


def _repeat_often(rng: random.Random, data: bytes) -> bytes:
    start, end = _span(rng, data)
    return data[:start] + data[start:end] * rng.choice((3, 10, 100, 2000)) + data[end:]


def _move(rng: random.Random, data: bytes) -> bytes:
    start, end = _span(rng, data)
    rest, at = data[:start] + data[end:], rng.randrange(len(data) - (end - start) + 1)
    return rest[:at] + data[start:end] + rest[at:]


def _cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _change_a_number(rng: random.Random, data: bytes) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    start, end = rng.choice(found).span()
    return data[:start] + rng.choice(_NUMBERS) + data[end:]


def _change_a_line_end(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\r\n")
    if len(lines) == 1:
        return data
    at = rng.randrange(1, len(lines))
    return b"\r\n".join(lines[:at]) + rng.choice(_LINE_ENDS) + b"\r\n".join(lines[at:])
