from __future__ import annotations

import pytest

from webordinary.workflow.answering import words_of


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("the kiln is cold", "the kiln is cold"),
        ('{"errorMessage": "the kiln is cold", "errorType": "Transient", "trace": []}', "the kiln is cold"),
        ('{"jobId": "job-1"}', '{"jobId": "job-1"}'),
        ("[1]", "[1]"),
        ("", ""),
    ],
)
def test_a_cause_is_told_in_the_words_of_the_step(cause: str, words: str) -> None:
    assert words_of(cause) == words
