"""The command line: finds the command, runs it, and turns every failure into one line and an exit code."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from webordinary.compose.backends import outage_of
from webordinary.config import ConfigError
from webordinary.entrypoints.cli.exit_codes import CommandFailed, Exit
from webordinary.entrypoints.cli.options import add_common
from webordinary.entrypoints.running import AlreadyRunning
from webordinary.model.errors import WebOrdinaryError, reason_of

COMMANDS = {
    "up": "up:add_to",
    "worker": "worker:add_to",
    "send": "send:add_to",
    "receive": "receive:add_to",
    "status": "status:add_to",
    "claims": "status:add_claims",
    "queues": "status:add_queues",
    "interruptions": "status:add_interruptions",
    "dlq": "dlq:add_to",
    "replies": "replies:add_to",
    "mails": "mails:add_to",
    "project": "project:add_to",
    "user": "user:add_to",
    "agent": "agent:add_to",
    "pause": "project:add_pause",
    "resume": "project:add_pause",
    "costs": "status:add_costs",
    "release": "release:add_to",
    "replay": "release:add_replay",
    "logs": "logs:add_to",
    "backup": "backup:add_to",
    "restore": "backup:add_restore",
    "recover": "backup:add_recover",
    "doctor": "doctor:add_to",
    "service": "service:add_to",
    "config": "settings:add_to",
    "completion": "settings:add_completion",
    "aws": "aws:add_to",
    "simulate": "simulate:add_to",
}
"""The module of this package that declares a command, and its function."""
_SHOWN_CHARACTERS = 200


def parser(named: str = "") -> argparse.ArgumentParser:
    """The parser of all commands, or only of the named one, so that no other module is loaded."""
    root = argparse.ArgumentParser(
        prog="webordinary", description="Websites that their owners change by writing an e-mail."
    )
    root.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    add_common(root, root=True)
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for declaration in _declarations(named):
        module, function = declaration.split(":")
        getattr(import_module(f"{__package__}.{module}"), function)(commands)
    return root


def _declarations(named: str) -> Sequence[str]:
    if named == "--version":
        return ()
    return (COMMANDS[named],) if named in COMMANDS else tuple(dict.fromkeys(COMMANDS.values()))


class _Version(argparse.Action):
    """Reads the version only on demand, because that is slow."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - see above

        print(f"webordinary {version('webordinary')}")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says how it went."""
    os.umask(0o077)  # mails, keys and settings: for this user only
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
    message, code = _message_of(problem)
    sys.stdout.flush()
    if args.json:
        print(json.dumps({"error": message, "exit_code": int(code)}), file=sys.stderr)
    else:
        print(f"webordinary: {message}", file=sys.stderr)
    return code


def _message_of(problem: Exception) -> tuple[str, Exit]:
    if isinstance(problem, CommandFailed):
        return str(problem), problem.code
    if outage := outage_of(problem):
        text, answers = outage
        return text, Exit.FAILED if answers else Exit.NOT_RUNNING
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
