"""House rules that a tool cannot know: what the tree, the docs and the lock files promise each other."""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from webordinary.adapters.builders import BuildEnv, Dependencies, builders
from webordinary.entrypoints.cli.main import parser
from webordinary.entrypoints.cli.output import Exit
from webordinary.model.events import EventKind
from webordinary.operations.onboarding import BUILDER_NAMES

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


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(text_of(module))


@cache
def excepts_and_imports(module: Path) -> list[ast.ExceptHandler | ast.ImportFrom]:
    """The statements of a module that more than one rule is about; to walk all trees takes a while."""
    return [node for node in ast.walk(tree_of(module)) if isinstance(node, ast.ExceptHandler | ast.ImportFrom)]


def relative(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_no_file_names_a_package_index_or_a_folder_of_this_machine() -> None:
    forbidden = [*PACKAGE_INDEXES, f"{ROOT}/"]
    if len(Path.home().parts) > 2:  # /root is also a word in other contexts
        forbidden.append(f"{Path.home()}/")
    found = [f"{relative(file)}: {bad}" for file in kept_files() for bad in forbidden if bad in text_of(file)]
    assert found == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [relative(m) for m in MODULES if tree_of(m).body and not ast.get_docstring(tree_of(m))]
    assert silent == []


def test_broad_excepts_stand_only_in_loops_that_must_go_on_and_in_the_entrypoints() -> None:
    group_commit = SOURCE / "adapters" / "sqlite" / "database.py"  # raises once the shared transaction has ended
    flusher = SOURCE / "adapters" / "sqlite" / "events.py"
    doctor = SOURCE / "model" / "checks.py"  # a failing check must not abort the run
    packages = (SOURCE / "worker", SOURCE / "services", SOURCE / "entrypoints")
    loops = (*packages, SOURCE / "asl" / "runner.py", group_commit, flusher, doctor)
    elsewhere = [m for m in MODULES if not any(m.is_relative_to(place) for place in loops)]
    found = [f"{relative(m)}:{handler.lineno}" for m in elsewhere for handler in swallowing_excepts(m)]
    assert found == []


def swallowing_excepts(module: Path) -> Iterator[ast.ExceptHandler]:
    """Handlers of everything that do not raise in the end."""
    for node in excepts_and_imports(module):
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
            caught = ast.unparse(node.type) if node.type else "BaseException"
            if caught in ("Exception", "BaseException"):
                yield node


def test_the_glossary_explains_every_kind_of_event_and_no_other() -> None:
    section = text_of(ROOT / "docs" / "glossary.md").split("\n## Events\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z][\w, ]*) \|", section, re.MULTILINE)
    assert sorted(kind for row in rows for kind in row.split(", ")) == sorted(EventKind)


def test_every_kind_of_event_is_used_by_its_name() -> None:
    source = "".join(text_of(module) for module in MODULES)
    assert [kind for kind in EventKind if f"EventKind.{kind.name}" not in source] == []


def test_every_builder_can_be_chosen_and_has_its_row() -> None:
    known = builders(BuildEnv(None, ROOT), Dependencies(ROOT), ["make"])  # type: ignore[arg-type]
    assert sorted(known) == sorted(BUILDER_NAMES)
    page = text_of(ROOT / "docs" / "sites.md")
    assert [name for name in known if f"| `{name}` |" not in page] == []


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
    root = parser()
    for command in commands(root):
        words = command.split()
        fillers = {
            "send": ["-"],
            "credential": ["x", "f"],
            "show": ["x"],
            "set": ["x"],
            "role": ["x", "ann@example.com", "both"],
            "remove": ["x"],
            "backup": ["f"],
            "restore": ["f"],
        }
        fillers |= {
            "config show": [],
            "mails let-in": ["amelia#scott", "x"],
            "mails admit": ["amelia#scott", "x"],
            "completion": ["bash"],
            "project domain add": ["x", "y.example"],
            "project domain check": ["x", "y.example"],
            "project domain remove": ["x", "y.example"],
            "user add": ["x"],
            "sessions": ["x"],
            "token": ["x"],
            "answer": ["x", "y"],
            "retry": ["x"],
            "hook": ["x"],
            "release rebuild": ["x"],
            "close": ["x"],
            "cancel": ["x"],
            "interrupt": ["x"],
            "pool release": ["x"],
            "pool drain": ["x"],
        }
        fillers |= {
            "release list": ["x"],
            "rollback": ["x"],
            "replay": ["x"],
            "mails release": ["x"],
            "mails drop": ["x"],
        }
        filler = fillers.get(command, fillers.get(words[-1], []))
        flags = ["--data", "d", "--config", "c", "--json", "--debug"]
        for args in (root.parse_args([*words, *filler, *flags]), root.parse_args([*flags, *words, *filler])):
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


def test_the_changelog_can_be_read_in_a_minute() -> None:
    lines = text_of(ROOT / "CHANGELOG.md").splitlines()
    assert (len(lines) <= 40, max(map(len, lines)) <= 120) == (True, True)


TARGETS = set(re.findall(r"^([a-z][a-z-]*):", text_of(ROOT / "Makefile"), re.MULTILINE))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / ".ci" / "run", *sorted((ROOT / "docs").rglob("*.md"))]


def commands_of_make(text: str) -> Iterator[list[str]]:
    """The words after each `make` that is a command: between backquotes, in a block of code or in a script."""
    for command in re.findall(r"(?:`|^(?:exec )?)make ([a-z][^`#\n]*)", text, re.MULTILINE):
        yield command.split()


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_make_command_that_a_page_names_is_a_target_with_variables_of_the_makefile(page: Path) -> None:
    known = set(re.findall(r"\b([A-Z_]+)(?==| \?=)|\$\(([A-Z_]+)\)", text_of(ROOT / "Makefile")))
    variables = {name for pair in known for name in pair if name}
    for target, *settings in commands_of_make(text_of(page)):
        assert target in TARGETS, f"there is no `make {target}`"
        unknown = {word.split("=")[0] for word in settings if "=" in word} - variables
        assert not unknown, f"`make {target}` does not read {unknown}"


def test_the_merge_gate_the_readme_and_the_guide_for_contributors_run_the_tests_by_the_same_command() -> None:
    assert text_of(ROOT / ".ci" / "run").splitlines()[-1] == "exec make test"
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        assert ["test"] in list(commands_of_make(text_of(page))), relative(page)


def pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text_of(ROOT / "requirements" / name), re.MULTILINE))


def test_lock_files_pin_what_pyproject_asks_for_with_hashes_and_agree() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    base, dev, build = pins("base.lock"), pins("dev.lock"), pins("build.lock")
    for wanted, lock in ((project["dependencies"], base), (project["optional-dependencies"]["dev"], dev)):
        names = {re.split(r"[^A-Za-z0-9_.-]", item)[0].lower() for item in wanted}
        assert {re.sub(r"[_.]", "-", name) for name in names} <= lock.keys(), "run `make lock`"
    assert base.items() <= dev.items()
    assert all(dev.get(name, version) == version for name, version in build.items())
    for name in ("base.lock", "dev.lock", "build.lock"):
        entries = re.split(r"^(?=[a-z0-9])", text_of(ROOT / "requirements" / name), flags=re.MULTILINE)[1:]
        assert all("--hash=sha256:" in entry for entry in entries)


COMPARES_THE_BACKEND = re.compile(r"""backend\s*(?:==|!=|in\b)|isinstance\([^)]*(?:Embedded|Aws)Container""")


def test_only_compose_and_the_rules_of_the_settings_compare_the_backend() -> None:
    allowed = ("compose/", "config.py")
    found = [
        relative(module)
        for module in MODULES
        if COMPARES_THE_BACKEND.search(text_of(module)) and not str(module.relative_to(SOURCE)).startswith(allowed)
    ]
    assert found == []


def test_no_class_name_stands_twice_in_source_tests_and_benchmarks() -> None:
    seen: dict[str, list[str]] = {}
    for folder in (SOURCE, ROOT / "tests", ROOT / "benchmarks"):
        for module in sorted(folder.rglob("*.py")):
            for node in tree_of(module).body:
                if isinstance(node, ast.ClassDef):
                    seen.setdefault(node.name, []).append(relative(module))
    assert {name: places for name, places in seen.items() if len(places) > 1} == {}


VAGUE_SUBJECT = re.compile(r"\b(?:nobody|somebody|whoever)\b", re.IGNORECASE)
SPEECH_OF_OTHERS = (
    "mail/parsing/phrases.py",  # words of customers
    "mail/parsing/small_talk.py",
    "mail/replies/answers.py",  # words to customers
    "jobs/report.py",
    "adapters/agents/acp_agent.py",
    "adapters/sandbox/bubblewrap.py",  # a user of Unix
)


def test_the_source_and_the_docs_name_who_acts() -> None:
    modules = [m for m in MODULES if not str(m.relative_to(SOURCE)).startswith(SPEECH_OF_OTHERS)]
    pages = [ROOT / "CHANGELOG.md", *(page for page in PAGES if "decisions" not in page.parts)]
    found = [
        f"{relative(file)}:{number}: {line.strip()}"
        for file in (*modules, *pages)
        for number, line in enumerate(text_of(file).splitlines(), 1)
        if VAGUE_SUBJECT.search(line)
    ]
    assert found == []


SMALL_WITH_ONE_IMPORTER = {
    "webordinary.adapters.otlp": "an adapter of a service outside, with an extra of its own",
    "webordinary.jobs.job": "the one place that reads mail for a job",
}
"""Modules under 60 lines with one importer, each with the reason why it stands alone; at most 15."""


def test_a_small_module_with_one_importer_has_a_reason() -> None:
    names = {".".join(m.relative_to(SOURCE.parent).with_suffix("").parts): m for m in MODULES}
    importers: dict[str, set[str]] = {name: set() for name in names}
    for name, module in names.items():
        for node in excepts_and_imports(module):
            if isinstance(node, ast.ImportFrom) and node.module:
                for target in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    importers.get(target, set()).add(name)
    small = {
        name
        for name, module in names.items()
        if module.name != "__init__.py" and len(importers[name]) == 1 and len(text_of(module).splitlines()) < 60
    }
    assert small <= SMALL_WITH_ONE_IMPORTER.keys()
    assert len(SMALL_WITH_ONE_IMPORTER) <= 15


def test_the_map_from_the_models_to_the_code_names_what_is_there() -> None:
    table = text_of(ROOT / "docs" / "proofs" / "README.md").split("## Model step")[1].split("\n\n")[1]
    named = [name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[2])]
    defined = {name for module in MODULES for name in re.findall(r"\b(?:def|class) (\w+)", text_of(module))}
    files = {name for name in named if "/" in name}
    missing = {name for name in files if not (SOURCE / name).is_file()}
    for name in {*named} - files - {"email_processor.asl.json"}:
        missing |= {name} if not defined.issuperset(name.split(".")) else set()
    assert named
    assert missing == set()
