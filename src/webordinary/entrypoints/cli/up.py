"""`webordinary up`: mail intake, workflow engine, page and workers, until told to stop."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from webordinary.adapters.durable import write_durably
from webordinary.app import sites, upkeep
from webordinary.app.backends import AWS
from webordinary.app.embedded import open_embedded
from webordinary.app.services import Services
from webordinary.config import FILE_NAME, Config
from webordinary.entrypoints import patience, running
from webordinary.entrypoints.cli.exits import Exit
from webordinary.entrypoints.cli.greeting import command_name, greeting, ready_plain
from webordinary.entrypoints.cli.options import FLAGS, Commands, add_command, add_settings, load_config
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.cli.preflight import require_programs, require_writable, with_free_ports
from webordinary.entrypoints.hung_workers import hung_workers_ended
from webordinary.entrypoints.lifecycle import run_until_told
from webordinary.entrypoints.running import Endpoints
from webordinary.entrypoints.supervisor import Child, Supervisor

SAMPLE_CONFIG = """\
# Settings of this data folder; docs/configuration.md lists them all.
# The sample trusts mail that comes from this machine itself. Take this away before others can reach the port.
trusted_peers = ["127.0.0.1", "::1"]
"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(commands, "up", run, "run it all: mail intake, workflow, page and workers")
    parser.add_argument("--no-sample", action="store_true", help="start without the sample site")
    parser.add_argument("--supervised", action="store_true", help=argparse.SUPPRESS)
    add_settings(parser, (name for name in FLAGS if name != "data"))


def run(args: argparse.Namespace) -> int:
    """Check, lock, start, announce; stop on Ctrl-C or SIGTERM."""
    require_programs()
    config = load_config(args)
    require_writable(config.data)
    with running.hold(config.data):
        if config.backend == AWS:
            config = with_free_ports(config)
            _run_with_workers(config, partial(_serve_cloud, config, as_json=args.json), supervised=args.supervised)
            return Exit.OK
        with_sample = not args.no_sample and _sample_wanted(config, own_file=args.config is None)
        config = with_free_ports(load_config(args))
        serve = partial(_serve_embedded, config, with_sample, as_json=args.json)
        _run_with_workers(config, serve, supervised=args.supervised)
    return Exit.OK


def _sample_wanted(config: Config, *, own_file: bool) -> bool:
    """On the first start; a start that was killed on the way counts as the first again."""
    mark = config.data / "run" / "sample-wanted"
    if not (config.data / "webordinary.db").exists():
        write_durably(mark, b"")
        if own_file and not (config.data / FILE_NAME).exists():
            write_durably(config.data / FILE_NAME, SAMPLE_CONFIG.encode())
    return mark.exists()


# Only `up` serves: a worker and the small commands start faster and leaner without the web and mail servers, and
# without boto3. Hence the imports inside.


def _serve_embedded(
    config: Config, with_sample: bool, supervisor: Supervisor, stop: threading.Event, *, as_json: bool
) -> None:
    from webordinary.entrypoints import server  # noqa: PLC0415

    with open_embedded(config) as services:
        if with_sample:
            _warn("first start: making the sample site")
            sites.ensure_sample(services)
            (config.data / "run" / "sample-wanted").unlink()
        upkeep.excuse_outage(services)
        supervisor.start()
        with hung_workers_ended(config, supervisor, services.events, _warn):
            server.run_server(services, stop, partial(_announce, services, as_json=as_json))


def _serve_cloud(config: Config, supervisor: Supervisor, stop: threading.Event, *, as_json: bool) -> None:
    from webordinary.app.cloud import open_cloud  # noqa: PLC0415
    from webordinary.entrypoints import cloud_server  # noqa: PLC0415

    with open_cloud(config) as services, tempfile.TemporaryDirectory(prefix="webordinary-page-") as scratch:
        supervisor.start()
        with hung_workers_ended(config, supervisor, services.events, _warn):
            cloud_server.run_page(services, Path(scratch), stop, partial(_announce, services, as_json=as_json))


def _run_with_workers(
    config: Config, serve: Callable[[Supervisor, threading.Event], None], *, supervised: bool
) -> None:
    environment = _environment_of_workers(config)
    supervisor = Supervisor(_workers(config), environment, patience.of_supervisor(config), _warn)

    def work(stop: threading.Event) -> None:
        try:
            serve(supervisor, stop)
        finally:
            supervisor.stop()

    run_until_told(
        work,
        patience_seconds=patience.of_up(config),
        parent=sys.stdin.fileno() if supervised else None,
        on_stop=partial(_stopping, supervisor),
        on_kill=supervisor.kill,
    )


def _workers(config: Config) -> list[Child]:
    # -P: a file in the current folder must not take the place of one of Python's own modules
    command = (sys.executable, "-P", "-m", "webordinary", "worker", "--supervised", "--data", str(config.data))
    names = [f"worker {number}" for number in range(1, config.workers + 1)]
    return [Child(name, (*command, "--name", name)) for name in names]


def _environment_of_workers(config: Config) -> dict[str, str]:
    """The same settings, however they were given; but agents run below workers, so no password."""
    return os.environ | replace(config, relay_user="", relay_password="").environment()


def _announce(services: Services, *, as_json: bool) -> None:
    config = services.config
    ends = Endpoints(os.getpid(), config.host, config.port, config.preview_port, config.smtp_port)
    running.announce(config.data, ends)
    if as_json:
        print_json(ready_plain(config, ends))
    else:
        projects = [project.project_id for project in services.directory.projects()]
        print(greeting(config, ends, projects, command_name()), flush=True)


def _stopping(supervisor: Supervisor) -> None:
    _warn("stopping; what is under way is finished or saved (Ctrl-C again ends it at once)")
    supervisor.ask()


def _warn(text: str) -> None:
    print(f"webordinary: {text}", file=sys.stderr, flush=True)
