from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.agents.command import read_result
from webordinary.adapters.builders import PlainFiles
from webordinary.jobs.edit import choose_builder
from webordinary.jobs.ports import Answered, Asked, Changed, NotUnderstood
from webordinary.jobs.source import BuildFailed, SourceTree
from webordinary.model.errors import Permanent, is_machine_fault

BUILDERS = {"plain": PlainFiles()}


def tree(*names: str) -> SourceTree:
    return SourceTree(Path("unused"), dict.fromkeys(names, "id"))


@pytest.mark.parametrize("home", ["index.html", "public/index.html", "site/index.html"])
def test_a_home_page_makes_it_a_plain_site(home: str) -> None:
    assert choose_builder(BUILDERS, "", tree(home, "README.md")) is BUILDERS["plain"]


def test_a_file_that_cannot_be_opened_for_want_of_descriptors_is_no_fault_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index.html").write_text("Pots")

    def none_left(*args: object, **kwargs: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "open", none_left)
    with pytest.raises(Permanent) as problem:
        PlainFiles().build(SourceTree(tmp_path, {"index.html": "id"}), tmp_path / "site", None, FakeCancelToken())
    assert is_machine_fault(problem.value)


def test_a_source_without_a_home_page_is_refused_in_words() -> None:
    assert isinstance(choose_builder(BUILDERS, "", tree("README.md")), BuildFailed)


def test_a_builder_that_nobody_knows_is_named() -> None:
    refused = choose_builder(BUILDERS, "hugo", tree("index.html"))
    assert isinstance(refused, BuildFailed)
    assert "'hugo'" in refused.reason


def test_a_programs_answer_is_json_or_plain_text() -> None:
    assert read_result('{"changed": "Did it.", "session": "s1", "cost_usd": 0.5}') == Changed("Did it.", "s1", 0.5)
    assert read_result('{"answered": "42"}') == Answered("42")
    assert read_result('{"asked": "Which?"}') == Asked("Which?")
    assert read_result('{"answered": "Then.", "later": "2026-12-01"}') == Answered(
        "Then.", then="later", at="2026-12-01"
    )
    assert read_result('{"changed": "Closed.", "until": "2026-12-06T18:30"}') == Changed(
        "Closed.", then="until", at="2026-12-06T18:30"
    )
    assert read_result('{"not_understood": "?"}') == NotUnderstood("?")
    assert read_result(" Did it.\n") == Changed("Did it.")
    assert read_result("") == Changed("Done as you asked.")
    assert read_result('{"changed": "Did it.", "session": null, "cost_usd": "0.5"}') == Changed("Did it.", "", 0.5)
    with pytest.raises(Permanent):
        read_result('{"done": true}')


@pytest.mark.parametrize("cost", ["null", '"a lot"', "NaN", "Infinity", "1e300", "-1", "true", "[1]", "1" * 400])
def test_a_bill_that_makes_no_sense_is_told_and_the_work_is_not_done_again(cost: str) -> None:
    told: list[str] = []
    assert read_result(f'{{"changed": "Did it.", "cost_usd": {cost}}}', told.append) == Changed("Did it.")
    assert "counts as 0" in told[0]
