"""`webordinary aws local`: the whole cloud path on an emulator, on this machine, until Ctrl-C."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from webordinary.compose.backends import AWS, require_boto3, write_durably
from webordinary.compose.emulated_events import EmulatedEvents, emulated_events
from webordinary.config import Config, variable_of
from webordinary.entrypoints import emulator, lifecycle
from webordinary.entrypoints.cli.options import (
    FLAGS,
    Commands,
    add_checkout,
    add_command,
    add_settings,
    checkout_of,
    load_config,
    whole,
)
from webordinary.entrypoints.cli.output import CommandFailed, Exit, say
from webordinary.entrypoints.cli.up import require_programs, require_writable, with_free_ports
from webordinary.entrypoints.emulator import PORT, Emulator, InUse, port_for, running_emulator, sole_user
from webordinary.entrypoints.lifecycle import run_until_stopped
from webordinary.model.errors import Permanent

EMULATOR, FOLDER = "ministack", "emulator"
METRICS = b'{"_aws":'
SHELL_SETTINGS = (
    "data", "port", "preview_port", "backend", "aws_endpoint", "aws_account", "aws_region", "mailbox", "domain",
)  # fmt: skip


def add_to(parts: Commands) -> None:
    parser = add_command(parts, "local", run, "run it all on an emulator of AWS on this machine, lambdas included")
    parser.add_argument("--emulator", metavar="PROGRAM", default=EMULATOR, help=f"the emulator's program ({EMULATOR})")
    about = f"its port ({PORT}, or a free one where that is in use; 0 takes a free one)"
    parser.add_argument("--emulator-port", metavar="PORT", type=whole(0, 65_535), help=about)
    add_checkout(parser)
    add_settings(parser, (name for name in FLAGS if name not in ("data", "smtp_port")))


def run(args: argparse.Namespace) -> int:
    """Emulator, lambdas, sample, workers and page; one Ctrl-C ends them in the reverse order."""
    require_programs()
    require_boto3()
    program = shutil.which(args.emulator)
    if program is None:
        raise CommandFailed(f"there is no program {args.emulator}", "`make up-aws` installs it, or name it: --emulator")
    config, root = load_config(args), checkout_of(args)
    require_writable(config.data)
    config = replace(config, data=config.data.resolve(), backend=AWS)
    try:
        with sole_user(config.data / FOLDER), with_free_ports(config) as config:
            code = _run(args, config, root, str(Path(program).absolute()))
    except InUse as problem:
        todo = "stop that one, or use another --data or --emulator-port"
        raise CommandFailed(str(problem), todo, Exit.IN_USE) from problem
    if code:
        raise CommandFailed(f"`webordinary up` ended with code {code}", "its words stand above")
    return Exit.OK


def _run(args: argparse.Namespace, config: Config, root: Path, program: str) -> int:
    port = port_for(args.emulator_port)
    if args.emulator_port is None and port != PORT:
        say(f"port {PORT} is in use: this emulator answers at {port}; --emulator-port gives it one of its own")
    local = Local(config, root, program, port, as_json=args.json)
    seconds = lifecycle.up_stop_seconds(config) + emulator.STOP_SECONDS + 10.0
    run_until_stopped(local.work, stop_seconds=seconds, on_stop=local.ask, on_kill=local.kill)
    return local.code


class Local:
    """The processes of one run: the emulator, and `webordinary up` with its workers."""

    def __init__(self, config: Config, root: Path, program: str, port: int, *, as_json: bool) -> None:
        self._config, self._root, self._program, self._port, self._as_json = config, root, program, port, as_json
        self._guard = threading.Lock()
        self._stopping = False
        self._up: subprocess.Popen[bytes] | None = None
        self._emulator: subprocess.Popen[bytes] | None = None
        self.code = 0

    def work(self, stop: threading.Event) -> None:
        """Start everything; returns when all has ended."""
        from webordinary.compose import provision  # noqa: PLC0415  boto3 is an extra, and slow to import

        folder = self._config.data / FOLDER
        say(f"starting an emulator of AWS on port {self._port}; its state is in {folder}")
        with (
            suppress(_Stopped),
            running_emulator(self._program, folder, self._port, lambda: _go_on(stop)) as emulator,
        ):
            self._emulator = emulator.process
            config = replace(
                self._config, aws_endpoint=emulator.endpoint, aws_account=provision.ACCOUNT, aws_poll_seconds=2
            )
            provision.start_emulated(config, self._root, _reporting(stop))
            write_durably(folder / "environment", _for_shells(config, provision.credentials(config.aws_region)))
            say(f"in another shell, `. {folder / 'environment'}` lets `webordinary` and `aws` speak to the emulator")
            say("starting page and workers")
            counted = provision.emulated_metrics(config)
            with closing(emulated_events(config, counted)) as events:  # made before `up` looks for it
                self.code = self._run_up(emulator, provision.environment(config, os.environ), events)

    def ask(self) -> None:
        """End `up` in good order; the emulator ends after it."""
        with self._guard:
            self._stopping = True
            if self._up:
                self._up.terminate()

    def kill(self) -> None:
        """End both at once; workers end with their `up`, lambdas with the emulator."""
        if self._up and self._up.poll() is None:
            self._up.kill()
        if self._emulator and self._emulator.poll() is None:
            self._emulator.terminate()

    def _run_up(self, emulator: Emulator, env: Mapping[str, str], events: EmulatedEvents) -> int:
        flags = ["--supervised", *(["--json"] if self._as_json else [])]
        with self._guard:
            if self._stopping:
                return 0
            self._up = subprocess.Popen(
                [sys.executable, "-P", "-m", "webordinary", "up", *flags],
                env=env,
                stdin=subprocess.PIPE,  # it ends when this does: then we are gone
                stdout=subprocess.PIPE,
                pass_fds=[emulator.lifeline],  # so that the emulator outlives it, though we were killed
                start_new_session=True,
            )
        with self._up as up:
            assert up.stdout
            _show(up.stdout, events)
        return up.returncode


class _Stopped(Permanent):
    """Ctrl-C while the system was still being set up."""


def _reporting(stop: threading.Event) -> Callable[[str], None]:
    def report(line: str) -> None:
        _go_on(stop)
        say(line)

    return report


def _go_on(stop: threading.Event) -> None:
    if stop.is_set():
        raise _Stopped("stopped before it was ready")


def _show(lines: IO[bytes], events: EmulatedEvents) -> None:
    """Print what people read; keep the rest, which on AWS goes into the log that metrics are drawn from."""
    for line in lines:
        text = line.decode("utf-8", errors="replace")
        if line.startswith(METRICS):
            events.store(text)
            continue
        sys.stdout.write(text)
        sys.stdout.flush()


def _for_shells(config: Config, credentials: Mapping[str, str]) -> bytes:
    settings = {variable_of(name): str(getattr(config, name)) for name in SHELL_SETTINGS}
    variables = settings | dict(credentials) | {"AWS_ENDPOINT_URL": config.aws_endpoint}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()).encode()
