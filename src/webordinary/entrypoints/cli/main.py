"""The front door: find the command, run it, and turn every failure into one clear line."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from webordinary.config import ConfigError
from webordinary.entrypoints.cli import cloud_failures
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.options import add_common
from webordinary.entrypoints.running import AlreadyRunning
from webordinary.model.errors import WebOrdinaryError, reason_of

COMMANDS = (
    "up", "worker", "send", "status", "claims", "queues", "dlq", "replies", "project", "agent",
    "pause", "costs", "release", "replay", "logs", "backup", "restore", "doctor", "aws", "simulate",
)  # fmt: skip
"""Each is a module of this folder."""
DECLARED_WITH = {"resume": "pause"}
"""Commands that another one's module declares."""
_SHOWN_CHARACTERS = 200


def parser(named: str = "") -> argparse.ArgumentParser:
    """All commands and their flags, or only what is declared beside the named one: nothing else is loaded then."""
    root = argparse.ArgumentParser(
        prog="webordinary", description="Websites that their owners change by writing an e-mail."
    )
    root.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    add_common(root, root=True)
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    module = DECLARED_WITH.get(named, named)
    for name in _wanted(module):
        import_module(f"{__package__}.{name}").add_to(commands)
    return root


def _wanted(module: str) -> Sequence[str]:
    if module == "--version":
        return ()
    return (module,) if module in COMMANDS else COMMANDS


class _Version(argparse.Action):
    """Looked up when it is asked for: that takes longer than the rest."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - see above

        print(f"webordinary {version('webordinary')}")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says how it went."""
    words = sys.argv[1:] if argv is None else argv
    args = parser(words[0] if words else "").parse_args(words)
    level = logging.INFO if args.debug else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(name)s: %(message)s")
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: not our failure
        return Exit.OK
    except KeyboardInterrupt:
        return Exit.KILLED
    except Exception as problem:
        return _explain(problem, args)
    return code


def _explain(problem: Exception, args: argparse.Namespace) -> int:
    if args.debug:
        traceback.print_exc()
    message, code = _worded(problem)
    sys.stdout.flush()
    if args.json:
        print(json.dumps({"error": message, "exit_code": int(code)}), file=sys.stderr)
    else:
        print(f"webordinary: {message}", file=sys.stderr)
    return code


def _worded(problem: Exception) -> tuple[str, Exit]:
    if isinstance(problem, CommandFailed):
        return str(problem), problem.code
    if worded := cloud_failures.worded(problem):
        return worded
    match problem:
        case ConfigError():
            return f"{problem}\ncorrect them and try again; docs/configuration.md explains each", Exit.USAGE
        case AlreadyRunning():
            return f"{problem}; stop that one first, or give this one its own folder with --data", Exit.IN_USE
        case WebOrdinaryError():
            return str(problem), Exit.FAILED
        case OSError() if problem.filename:
            place = str(problem.filename)[:_SHOWN_CHARACTERS]
            todo = "name another, or give access and make room"
            return f"{place} cannot be used ({reason_of(problem)}); {todo}", Exit.FAILED
        case OSError():
            todo = "make room and look at the network; --debug shows where it was"
            return f"this machine refused something ({reason_of(problem)}); {todo}", Exit.FAILED
    unexpected = f"unexpected {type(problem).__name__}: {problem}"
    return f"{unexpected}; run it again with --debug and report what it shows", Exit.FAILED
