"""Pages that are not in UTF-8: read in their own charset, edited in few bytes, and quoted as letters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.jobs.ports import AgentResult, AgentTask, Asked, Changed

LISTS = "<p>Grüße</p><ul><li>Käse</ul><ul><li>Brötchen</ul>"


def write(folder: Path, page: bytes, mail: str, name: str = "index.html") -> tuple[AgentResult, bytes]:
    (folder / name).write_bytes(page)
    result = BuiltinAgent().run(AgentTask(mail, folder, ()), FakeCancelToken())
    return result, (folder / name).read_bytes()


@pytest.mark.parametrize(
    "page",
    [
        LISTS.encode("latin-1"),
        b"<meta charset=iso-8859-1>" + LISTS.encode("latin-1"),
        b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">' + LISTS.encode("cp1252"),
        b"<meta charset='utf-8'>" + LISTS.encode("latin-1"),
        b'<?xml version="1.0" encoding="ISO-8859-15"?>' + LISTS.encode("iso-8859-15"),
        b"<meta charset='no-such-charset'>" + LISTS.encode(),
        LISTS.encode(),
    ],
)
def test_a_question_quotes_the_page_in_letters(tmp_path: Path, page: bytes) -> None:
    result, after = write(tmp_path, page, "add “Wurst” to the list")
    assert isinstance(result, Asked)
    assert "“Käse”" in result.question
    assert "“Brötchen”" in result.question
    assert after == page


@pytest.mark.parametrize("head", [b"", b"<meta charset=iso-8859-1>", b"<meta charset=windows-1251>"])
def test_new_words_in_a_page_that_is_not_utf_8_are_right_in_any_charset_and_other_bytes_stay(
    tmp_path: Path, head: bytes
) -> None:
    page = head + b"<title>Shop</title><p>Gr\xfc\xdfe \x81</p><ul><li>K\xe4se</ul>"
    result, after = write(tmp_path, page, "add “Würste, 3 €” to the list")
    assert isinstance(result, Changed)
    assert result.summary == "Added “Würste, 3 €” to the list on the homepage."
    assert after == page.replace(b"</ul>", b"<li>W&#252;rste, 3 &#8364;</li></ul>")


def test_text_of_a_page_that_is_not_utf_8_is_found(tmp_path: Path) -> None:
    _, after = write(tmp_path, LISTS.encode("latin-1"), "change “Grüße” to “Tschüss”")
    assert after == LISTS.encode("latin-1").replace(b"Gr\xfc\xdfe", b"Tsch&#252;ss")


def test_a_page_that_declares_another_charset_but_has_only_ascii_is_given_references(tmp_path: Path) -> None:
    _, after = write(tmp_path, b"<meta charset=latin1><title>a</title>", "change the title to Käse")
    assert after == b"<meta charset=latin1><title>K&#228;se</title>"


def test_a_page_in_utf_8_is_given_its_letters(tmp_path: Path) -> None:
    _, after = write(tmp_path, b"<title>a</title>", "change the title to “Käse €”")
    assert after == "<title>Käse €</title>".encode()


@pytest.mark.parametrize(
    ("settings", "name", "page"),
    [
        ("hugo.toml", "content/_index.md", "---\ntitle: Grüße\n---\n\n`<meta charset=latin1>`\n\n- Käse\n"),
        ("mkdocs.yml", "docs/index.md", "---\ntitle: Grüße\n---\n\n- Käse\n"),
    ],
)
def test_what_a_generator_reads_is_utf_8_though_a_byte_is_wrong(
    tmp_path: Path, settings: str, name: str, page: str
) -> None:
    (tmp_path / settings).touch()
    (tmp_path / name).parent.mkdir(parents=True)
    result, after = write(
        tmp_path, page.encode() + b"\n\x96\n", "change the title to “Öl €”; change “Käse” to “Würste”", name
    )
    assert isinstance(result, Changed)
    assert after == page.replace("Grüße", '"Öl €"').replace("Käse", "Würste").encode() + b"\n\x96\n"


@pytest.mark.parametrize(
    "page",
    [
        "<meta charset=utf-8>Grüße ".encode() + b"\x96",
        "\ufeff<meta charset=latin1>Grüße ".encode() + b"\x96",
        "<meta charset=latin1>Grüße".encode(),
        b"<?xml version='1.0' encoding='ISO-8859-1'?>" + "Grüße".encode(),
    ],
)
def test_a_page_that_says_utf_8_or_is_utf_8_is_given_letters(tmp_path: Path, page: bytes) -> None:
    _, after = write(tmp_path, page, "change “Grüße” to “Tschüss”")
    assert after == page.replace("Grüße".encode(), "Tschüss".encode())
