"""Results of jobs as stores keep them, in the form of this release and of the one before."""

from __future__ import annotations

import json
from dataclasses import asdict

from webordinary.model.jobs import ChangeLine, JobResult


def test_a_stored_result_is_read_back_as_it_was() -> None:
    result = JobResult(
        "Undone: this is an agent's own word.", "c", undone=ChangeLine("A title", "scott", "b"), is_public=True,
        published=(ChangeLine("A photo", "bob", "d"), ChangeLine("and 3 more")), waiting=(ChangeLine("A line", ""),),
    )  # fmt: skip
    assert JobResult.read(json.loads(json.dumps(asdict(result))), "scott") == result


def test_the_words_of_an_agent_do_not_make_a_result_an_undo_of_an_earlier_release() -> None:
    boast = JobResult("Undone: all of it.", "c")
    assert JobResult.read(json.loads(json.dumps(asdict(boast))), "scott").undone is None


def test_an_undo_that_an_earlier_release_stored_is_one() -> None:
    stored = {"summary": "Undone: A title\n\nYour public site …", "commit": "c", "published": ["Undone: A title"]}
    read = JobResult.read(stored, "scott")
    assert (read.undone, read.is_public, read.published) == (ChangeLine("A title"), True, ())
    assert JobResult.read({"summary": "Undone: A title", "commit": "c"}, "scott").is_public is False


def test_a_publication_that_an_earlier_release_stored_still_names_who_asked() -> None:
    lines = ["A (b) (asked by you)", "B (asked by bob)", "C (asked by another person)", "and 3 more"]
    read = JobResult.read({"summary": "Public.", "published": lines, "waiting": lines[:1]}, "scott")
    assert read.is_public
    assert read.published == (
        ChangeLine("A (b)", "scott"), ChangeLine("B", "bob"), ChangeLine("C", ""), ChangeLine("and 3 more"),
    )  # fmt: skip
    assert read.waiting == (ChangeLine("A (b)", "scott"),)
    assert JobResult.read({"summary": "This is on your public site now."}, "scott").is_public
