from __future__ import annotations

from datetime import timedelta

import pytest

from webordinary.entrypoints.dashboard.text import Piece, ago, duration, pieces, plural, size


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0 ms"),
        (0.0423, "42 ms"),
        (0.9999, "1.0 s"),
        (1.25, "1.2 s"),
        (5, "5 s"),
        (61, "61 s"),
        (600, "10 min"),
        (9000, "2 h"),
        (400_000, "5 days"),
    ],
)
def test_a_duration_has_two_digits_that_matter(seconds: float, words: str) -> None:
    assert duration(timedelta(seconds=seconds)) == words


def test_a_moment_ago_is_just_now() -> None:
    assert ago(timedelta(seconds=2)) == "just now"
    assert ago(timedelta(seconds=7.8)) == "7 s ago"


def test_sizes_and_counts_are_words() -> None:
    assert [size(70), size(70_400), size(1_260_000)] == ["70 bytes", "70 kB", "1.3 MB"]
    assert [plural(1, "mail"), plural(2, "mail")] == ["1 mail", "2 mails"]


def test_web_addresses_become_links_and_nothing_else_does() -> None:
    text = "See http://edit.amelia.localhost:8080/. Not javascript:alert(1) <http://a.example/x>"
    assert [piece for piece in pieces(text) if piece.href] == [
        Piece("http://edit.amelia.localhost:8080/", "http://edit.amelia.localhost:8080/"),
        Piece("http://a.example/x", "http://a.example/x"),
    ]
    assert "".join(piece.text for piece in pieces(text)) == text
