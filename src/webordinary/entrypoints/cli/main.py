"""The command line: finds the command, runs it, and turns every failure into one line and an exit code."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module

from webordinary.compose.backends import outage_of
from webordinary.config import ConfigError
from webordinary.entrypoints.cli.options import add_common
from webordinary.entrypoints.cli.output import CommandFailed, Exit
from webordinary.entrypoints.running import AlreadyRunning
from webordinary.model.errors import WebOrdinaryError, is_machine_fault, reason_of

COMMANDS = {
    "up": "up:add_to",
    "worker": "worker:add_to",
    "send": "send:add_to",
    "receive": "send:add_receive",
    "status": "status:add_to",
    "claims": "status:add_claims",
    "queues": "status:add_queues",
    "pool": "worker:add_pool",
    "interruptions": "status:add_interruptions",
    "outputs": "logs:add_outputs",
    "dlq": "dlq:add_to",
    "replies": "mails:add_replies",
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
    "upgrade-check": "backup:add_upgrade_check",
    "doctor": "service:add_doctor",
    "service": "service:add_to",
    "config": "service:add_config",
    "completion": "service:add_completion",
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
    if not words:
        parser().print_help()
        return Exit.USAGE
    if meant := _meant(words[0]):
        print(f"webordinary: there is no command {words[0]!r}; did you mean `webordinary {meant}`?", file=sys.stderr)
        return Exit.USAGE
    args = parser(words[0]).parse_args(words)
    level = logging.INFO if args.debug else logging.WARNING
    log_to_stderr(level)
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


def _meant(word: str) -> str:
    if word in COMMANDS or word.startswith("-"):
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 - for a typing error only

    return next(iter(get_close_matches(word, COMMANDS, 1)), "")


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
        case MemoryError() | RuntimeError() if _wants_resources(problem):
            return f"this machine has too little memory or too few processes for it ({problem}); {_MORE}", Exit.FAILED
        case OSError() if problem.filename:
            place = str(problem.filename)[:_SHOWN_CHARACTERS]
            todo = "name another, or give access and make room"
            return f"{place} cannot be used ({reason_of(problem)}); {todo}", Exit.FAILED
        case OSError():
            todo = "make room and look at the network; --debug shows where it was"
            return f"this machine refused something ({reason_of(problem)}); {todo}", Exit.FAILED
    unexpected = f"unexpected {type(problem).__name__}: {problem}"
    return f"{unexpected}; run it again with --debug and report what it shows", Exit.FAILED


_MORE = "give it more (`ulimit -v`, `ulimit -u`, MemoryMax= and TasksMax= of its service), or run fewer --workers"


def _wants_resources(problem: BaseException) -> bool:
    """Python raises a plain RuntimeError when the system starts no more threads."""
    return isinstance(problem, MemoryError) or "can't start new thread" in str(problem)


_QUIET_SECONDS = 60.0
_MOST_REMEMBERED = 1000


class QuietRepeats(logging.Filter):
    """Lets a log line through once, then not again until it changes or has not come for a minute.

    Without it a loop that fails at once, such as an accept without file descriptors, fills the disk. A fault of the
    machine is logged as one line, because its traceback shows nothing that could be mended in the code.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._seen: dict[tuple[str, str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log it; says how many like it were left out."""
        now = self._monotonic()
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None and is_machine_fault(problem):
            record.msg, record.args = f"{record.getMessage()}: {type(problem).__name__}: {problem}", None
            record.exc_info = record.exc_text = None
        what = f"{type(problem).__name__}: {problem}" if record.exc_info else record.getMessage()
        key = (record.name, record.levelname, what)
        last, left_out = self._seen.get(key, (-_QUIET_SECONDS, 0))
        if now - last < _QUIET_SECONDS:
            self._seen[key] = (now, left_out + 1)
            return False
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} more like it were not logged)", None
        if len(self._seen) >= _MOST_REMEMBERED:
            self._seen.clear()
        self._seen[key] = (now, 0)
        return True


def log_to_stderr(level: int) -> None:
    """Set up the log of a process, once."""
    logging.basicConfig(level=level, format="%(asctime)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        if not any(isinstance(known, QuietRepeats) for known in handler.filters):
            handler.addFilter(QuietRepeats())
