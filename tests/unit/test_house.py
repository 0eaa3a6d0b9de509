"""House rules that a tool cannot know: what the tree, the docs and the lock files promise each other."""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from webordinary.entrypoints.cli.exits import Exit
from webordinary.entrypoints.cli.main import parser

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "webordinary"
MODULES = sorted(SOURCE.rglob("*.py"))
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PACKAGE_INDEXES = (
    "py" + "pi.org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "yarn" + "pkg.com",
    "crates" + ".io",
)


def kept_files() -> list[Path]:
    """What git keeps or would keep."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def relative(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_no_file_names_a_package_index_or_a_folder_of_this_machine() -> None:
    forbidden = [*PACKAGE_INDEXES, f"{ROOT}/"]
    if len(Path.home().parts) > 2:  # /root is also a word in other contexts
        forbidden.append(f"{Path.home()}/")
    found = [f"{relative(file)}: {bad}" for file in kept_files() for bad in forbidden if bad in text_of(file)]
    assert found == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [relative(m) for m in MODULES if (tree := ast.parse(text_of(m))).body and not ast.get_docstring(tree)]
    assert silent == []


def test_broad_excepts_stand_only_in_loops_that_must_go_on_and_in_the_entrypoints() -> None:
    raised_later = SOURCE / "adapters" / "sqlite" / "writer.py"  # once the shared transaction has ended
    flusher = SOURCE / "adapters" / "sqlite" / "events.py"
    loops = (SOURCE / "worker", SOURCE / "asl" / "runner.py", SOURCE / "entrypoints", raised_later, flusher)
    elsewhere = [m for m in MODULES if not any(m.is_relative_to(place) for place in loops)]
    found = [f"{relative(m)}:{handler.lineno}" for m in elsewhere for handler in swallowing_excepts(m)]
    assert found == []


def swallowing_excepts(module: Path) -> Iterator[ast.ExceptHandler]:
    """Handlers of everything that do not raise in the end."""
    for node in ast.walk(ast.parse(text_of(module))):
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
            caught = ast.unparse(node.type) if node.type else "BaseException"
            if caught in ("Exception", "BaseException"):
                yield node


def test_every_event_that_is_emitted_is_in_the_glossary() -> None:
    glossary = text_of(ROOT / "docs" / "glossary.md")
    ours = [m for m in MODULES if "webordinary.model.events" in text_of(m)]  # the interpreter has its own
    emitted = {kind for module in ours for kind in re.findall(r'\bEvent\(\s*"([A-Z]\w+)"', text_of(module))}
    assert emitted, "no event is emitted anywhere; the pattern of this test is out of date"
    assert sorted(kind for kind in emitted if not re.search(rf"\b{kind}\b", glossary)) == []


def test_every_command_and_exit_code_is_in_the_operations_page() -> None:
    page = text_of(ROOT / "docs" / "operations.md")
    for command in commands(parser()):
        assert f"| `webordinary {command}" in page, command
    for code in Exit:
        assert f"\n| {code.value} |" in page, code


def commands(root: argparse.ArgumentParser, path: str = "") -> Iterator[str]:
    choices = [a.choices for a in root._actions if isinstance(a, argparse._SubParsersAction)]
    if not choices:
        yield path.strip()
    for name, child in choices[0].items() if choices else ():
        yield from commands(child, f"{path} {name}")


def test_every_command_takes_the_common_flags() -> None:
    for command in commands(parser()):
        words = command.split()
        fillers = {
            "send": ["-"],
            "credential": ["x", "f"],
            "show": ["x"],
            "set": ["x"],
            "remove": ["x"],
            "backup": ["f"],
            "restore": ["f"],
        }
        fillers |= {"release list": ["x"], "rollback": ["x"], "replay": ["x"]}
        filler = fillers.get(command) or fillers.get(words[-1], [])
        flags = ["--data", "d", "--config", "c", "--json", "--debug"]
        for args in (
            parser().parse_args([*words, *filler, *flags]),
            parser().parse_args([*flags, *words, *filler]),
        ):
            assert (args.data, args.config, args.json, args.debug) == ("d", Path("c"), True, True)


@pytest.mark.parametrize("folder", [ROOT / "docs" / "decisions", SOURCE / "adapters" / "sqlite" / "migrations"])
def test_decisions_and_migrations_are_numbered_without_gaps(folder: Path) -> None:
    names = sorted(f.name for f in folder.iterdir() if f.suffix in (".md", ".sql"))
    assert [name[:5] for name in names] == [
        f"{n:04}{'-' if folder.name == 'decisions' else '_'}" for n in range(1, len(names) + 1)
    ]


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda d: d.stem)
def test_a_decision_gives_context_choice_and_price(decision: Path) -> None:
    headings = re.findall(r"^#+ (.*)$", text_of(decision), re.MULTILINE)
    assert re.match(rf"0*{int(decision.name[:4])}[.:] ", headings[0])
    assert headings[1:] == ["Context", "Choice", "Price"]


def test_links_between_pages_lead_somewhere() -> None:
    pages = [file for file in kept_files() if file.suffix == ".md" and "tests" not in file.parts]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text_of(page)):
            assert (page.parent / target).exists(), f"{relative(page)} links to {target}"


def pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text_of(ROOT / "requirements" / name), re.MULTILINE))


def test_lock_files_pin_what_pyproject_asks_for_with_hashes_and_agree() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    base, dev, build = pins("base.lock"), pins("dev.lock"), pins("build.lock")
    for wanted, lock in ((project["dependencies"], base), (project["optional-dependencies"]["dev"], dev)):
        names = {re.split(r"[^A-Za-z0-9_.-]", item)[0].lower().replace("_", "-") for item in wanted}
        assert names <= lock.keys(), "run `make lock`"
    assert base.items() <= dev.items()
    assert all(dev.get(name, version) == version for name, version in build.items())
    for name in ("base.lock", "dev.lock", "build.lock"):
        entries = re.split(r"^(?=[a-z0-9])", text_of(ROOT / "requirements" / name), flags=re.MULTILINE)[1:]
        assert all("--hash=sha256:" in entry for entry in entries)
