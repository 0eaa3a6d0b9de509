"""`webordinary up`: mail intake, workflow engine, page and workers, until told to stop."""

from __future__ import annotations

import argparse
import errno
import os
import shlex
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

from webordinary.compose.backends import open_container, write_durably
from webordinary.compose.checks import REMOVE_TRUST, why_trust_is_unsafe
from webordinary.compose.container import Container, profile_of, site_url
from webordinary.config import FILE_NAME, SECRETS, Config, flag_of, variable_of
from webordinary.entrypoints import lifecycle, running
from webordinary.entrypoints.cli.options import FLAGS, Commands, add_command, add_settings, load_config
from webordinary.entrypoints.cli.output import CommandFailed, Exit, print_json, say
from webordinary.entrypoints.lifecycle import run_until_stopped
from webordinary.entrypoints.running import ATTACH_ANOTHER, BUILT_IN, Endpoints, bound, bound_anywhere, has_model
from webordinary.entrypoints.supervisor import Child, Supervisor
from webordinary.jobs.site_files import Stage
from webordinary.model.console import Role
from webordinary.operations import onboarding

SAMPLE = "amelia"


def banner(config: Config, ends: Endpoints, projects: Collection[str], command: str, *, has_model: bool = True) -> str:
    """The text after the start, with a last line for scripts."""
    lines = ["", f"WebOrdinary runs; its data is in {config.data}", "", f"  Page    {config.public_url or ends.page}"]
    if SAMPLE in projects and config.public_url:
        lines += [f"  Sample  {site_url(config, SAMPLE, Stage.EDIT)}"]
    elif SAMPLE in projects:
        lines += [
            f"  Sample  http://edit.{SAMPLE}.{config.domain}:{config.port}/",
            f"          or through {ends.preview} if your browser does not find that name",
            "",
            *_try(config, ends, command),
        ]
    elif not projects:
        lines += [
            "",
            "  Next    add a site; it asks for what it needs:",
            f"          {command} project add --data {config.data}",
        ]
    if not has_model:
        lines += ["", *_about_the_agent(config, command)]
    lines += ["", "  Stop    Ctrl-C; started again, it goes on where it was", "", ready_line(config, ends)]
    return "\n".join(lines)


def _about_the_agent(config: Config, command: str) -> list[str]:
    first, *more = fill(f"{BUILT_IN} {ATTACH_ANOTHER}", 98).splitlines()
    lines = [f"  Agent   {first}", *(f"          {line}" for line in more)]
    return [*lines, f"          Try it: {command} agent test --data {config.data}"]


def _try(config: Config, ends: Endpoints, command: str) -> list[str]:
    first = "  Try     open the page and write as a customer; or"
    profile = profile_of(config)
    if profile.is_public:
        return [f"  Try     send a mail to {config.mailbox}"]
    if profile.mail_bucket:
        return [
            f"{first} put a mail where SES would, in the bucket {profile.mail_bucket}:",
            f"          {_as_there(config)}{command} send mail.eml --from scott@example.com",
        ]
    return [
        f"{first} send a mail to {config.mailbox}:",
        f"          swaks --server {ends.smtp} --from scott@example.com --to {config.mailbox} \\",
        "            --header 'Subject: Spring' --body 'Set the title to Spring Sale'",
        f"          {command} send mail.eml --data {config.data}",
    ]


def _as_there(config: Config) -> str:
    """The command that sets another shell up for the same emulator."""
    file = config.data / "emulator" / "environment"
    return f". {shlex.quote(str(file))} && " if file.is_file() else ""


def ready_line(config: Config, ends: Endpoints) -> str:
    """The line that scripts wait for."""
    bucket = profile_of(config).mail_bucket
    intake = f"mail {config.mailbox} bucket {bucket}" if bucket else f"smtp {ends.smtp}"
    return f"ready {ends.page} {intake} preview {ends.preview}"


def ready_plain(config: Config, ends: Endpoints) -> dict[str, object]:
    """The same as JSON; on AWS there is no SMTP server."""
    known = {"ready": True, **asdict(ends), "page": ends.page, "preview": ends.preview}
    bucket = profile_of(config).mail_bucket
    if not bucket:
        return known
    del known["smtp_port"], known["smtp_host"]
    return known | {"mailbox": config.mailbox, "bucket": bucket}


def command_name() -> str:
    """The command that runs this program again: its name if the shell finds it, else its path."""
    if shutil.which("webordinary"):
        return "webordinary"
    script = Path(sys.executable).with_name("webordinary")
    here = Path.cwd()  # of a service it is /, and its journal is read elsewhere
    return str(script.relative_to(here) if here.name and script.is_relative_to(here) else script)


OTHERS = 0o077
OLDEST_SQLITE = (3, 37)  # STRICT tables


def require_programs() -> None:
    """Git and a recent SQLite must be there."""
    if shutil.which("git") is None:
        raise CommandFailed("git is not installed", "install it (Debian, Ubuntu: apt install git) and try again")
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise CommandFailed(
            f"this Python has SQLite {sqlite3.sqlite_version}", f"use one with SQLite {oldest} or newer"
        )


def require_writable(data: Path) -> None:
    """Make the data folder and try to write into it."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        _shut_out_others(data)
        with tempfile.TemporaryFile(dir=data) as trial:
            trial.write(b"webordinary")
    except OSError as problem:
        raise CommandFailed(
            f"the data folder {data} cannot be written ({problem.strerror})",
            "give this user access to it, make room, or name another folder with --data (make up DATA=…)",
        ) from problem


def _shut_out_others(data: Path) -> None:
    """Close a folder that other users of this machine may read, and the settings in it."""
    file = data / FILE_NAME
    if file.is_file() and file.stat().st_mode & OTHERS:
        file.chmod(0o600)
    is_ours = (data / "webordinary.db").exists() or not any(data.iterdir())  # never close /tmp or a home
    if is_ours and data.stat().st_mode & OTHERS:
        data.chmod(0o700)


@contextmanager
def with_free_ports(config: Config) -> Iterator[Config]:
    """Check that the ports are free; a port 0 becomes the number of a free one, which is ours during the block."""
    with ExitStack() as held:  # a first start makes the sample site before it listens: others would take the port
        pushed = ("push_port",) if config.takes_pushed_mail and profile_of(config).runs_engine else ()
        names = (*profile_of(config).ports, *pushed)
        free: dict[str, Any] = {name: _free(held, config.host_of(name), getattr(config, name), name) for name in names}
        yield replace(config, **{"smtp_port": 0} | free)


def _free(held: ExitStack, host: str, port: int, name: str) -> int:
    try:
        trial = held.enter_context(bound(host, port) if port else bound_anywhere(host))
    except OSError as problem:
        reason = "is in use" if problem.errno == errno.EADDRINUSE else f"cannot be opened ({problem.strerror})"
        others = f"{flag_of(name)}, {variable_of(name)} or make up {name.upper()}=…"
        raise CommandFailed(
            f"{name} {port} on {host} {reason}",
            f"stop what uses it, or choose another with {others}",
            Exit.IN_USE,
        ) from problem
    return port or int(trial.getsockname()[1])


SAMPLE_CONFIG = """\
# Settings of this data folder; docs/configuration.md lists them all.
# The sample trusts mail that comes from this machine itself, whatever its From says. Remove this line before you add a
# site of your own or let others reach the port.
trusted_peers = ["127.0.0.1", "::1"]
"""


def add_to(commands: Commands) -> None:
    parser = add_command(commands, "up", run, "run it all: mail intake, workflow, page and workers")
    parser.add_argument("--no-sample", action="store_true", help="start without the sample site")
    parser.add_argument("--supervised", action="store_true", help=argparse.SUPPRESS)
    add_settings(parser, (name for name in FLAGS if name != "data"))


def run(args: argparse.Namespace) -> int:
    """Check, lock, start, announce; stop on Ctrl-C or SIGTERM."""
    require_programs()
    config = load_config(args)
    require_writable(config.data)
    if args.config and any(getattr(config, name) for name in SECRETS) and args.config.stat().st_mode & OTHERS:
        say(f"WARNING: other users of this machine may read the password in {args.config}: chmod 600 {args.config}")
    with running.lock_data_folder(config.data):
        runs_engine = profile_of(config).runs_engine
        with_sample = runs_engine and not args.no_sample and _may_add_sample(config, own_file=args.config is None)
        with with_free_ports(load_config(args)) as config:
            serve = partial(_serve, config, with_sample, as_json=args.json)
            _run_with_workers(config, serve, supervised=args.supervised)
    return Exit.OK


def _may_add_sample(config: Config, *, own_file: bool) -> bool:
    """On the first start; a start that was killed on the way counts as the first again."""
    mark = config.data / "run" / "sample-wanted"
    if not (config.data / "webordinary.db").exists():
        write_durably(mark, b"")
        if own_file and config.is_local and not (config.data / FILE_NAME).exists():
            write_durably(config.data / FILE_NAME, SAMPLE_CONFIG.encode())
    return mark.exists()


# Only `up` serves: a worker and the small commands start faster and leaner without the web and mail servers, and
# without boto3. Hence the imports inside.


def _serve(config: Config, with_sample: bool, supervisor: Supervisor, stop: threading.Event, *, as_json: bool) -> None:
    from webordinary.entrypoints import server  # noqa: PLC0415

    with open_container(config) as container:
        if with_sample:
            say("first start: making the sample site")
            onboarding.ensure_sample(container)
            (config.data / "run" / "sample-wanted").unlink()
        if container.profile.data_is_local and (warning := why_trust_is_unsafe(container)):
            say(f"WARNING: {warning}: {REMOVE_TRUST}")
        server.run_server(container, supervisor, stop, partial(_announce, container, as_json=as_json))


def _run_with_workers(
    config: Config, serve: Callable[[Supervisor, threading.Event], None], *, supervised: bool
) -> None:
    environment = _environment_of_workers(config)
    supervisor = Supervisor(_workers(config), environment, lifecycle.supervisor_stop_seconds(config), say)

    def work(stop: threading.Event) -> None:
        try:
            serve(supervisor, stop)
        finally:
            supervisor.stop()

    run_until_stopped(
        work,
        stop_seconds=lifecycle.up_stop_seconds(config),
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
    return os.environ | config.without_secrets().environment()


def _announce(services: Container, *, as_json: bool) -> None:
    config = services.config
    ports = (config.port, config.preview_port, config.smtp_port)
    ends = Endpoints(os.getpid(), config.host, *ports, config.sites_host, config.smtp_reachable)
    running.write_endpoints(config.data, ends)
    if as_json:
        print_json(ready_plain(config, ends))
    else:
        if link := _first_link(services):
            print(f"\nNobody can sign in yet. Open this once, within 24 hours, to become the operator:\n\n  {link}")
        projects = [project.project_id for project in services.directory.projects()]
        print(banner(config, ends, projects, command_name(), has_model=has_model(config, os.environ)), flush=True)


def _first_link(services: Container) -> str:
    """The link that makes the first operator, if the page needs a login and no user has a password yet."""
    access = services.access
    if access is None or not access.login_required():
        return ""
    if any(access.users.password_hash(user.name) for user in access.users.all()):
        return ""
    base = services.config.public_url or f"http://127.0.0.1:{services.config.port}"
    return f"{base.rstrip('/')}/link/{access.issue_link('operator', Role.OPERATOR)}"


def _stopping(supervisor: Supervisor) -> None:
    say("stopping; what is under way is finished or saved (Ctrl-C again ends it at once)")
    supervisor.ask()
