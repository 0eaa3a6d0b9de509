"""Flags that commands share, and the Config made from them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import webordinary
from webordinary.compose.container import Container, profile_of
from webordinary.config import NAMES, SECRETS, Config, flag_of, setting_of
from webordinary.entrypoints.cli.output import CommandFailed, Exit, log_as_json
from webordinary.model.names import may_name_a_project
from webordinary.model.projects import Project

Run = Callable[[argparse.Namespace], int]
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
EVERYWHERE = ("data", "backend", "aws_endpoint")
"""Settings that every command has a flag for."""
FLAGS = tuple(name for name in NAMES if name not in SECRETS)  # everybody can read a flag in `ps`


def add_common(parser: argparse.ArgumentParser, *, root: bool = False) -> None:
    """--data, --config, --json and --debug, before or after the command's name."""
    unset, off = (None, False) if root else (argparse.SUPPRESS, argparse.SUPPRESS)
    group = parser.add_argument_group("everywhere")
    group.add_argument("--data", metavar="DIR", default=unset, help=setting_of("data").about)
    group.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        default=unset,
        help="settings; DIR/webordinary.toml if not given",
    )
    backend = setting_of("backend")
    about = f"{backend.about} ({backend.rule.allowed})"
    group.add_argument("--backend", metavar="NAME", default=unset, help=about)
    group.add_argument(
        "--endpoint",
        flag_of("aws_endpoint"),
        dest="aws_endpoint",
        metavar="URL",
        default=unset,
        help=setting_of("aws_endpoint").about,
    )
    group.add_argument("--json", action="store_true", default=off, help="print JSON, for scripts")
    group.add_argument("--debug", action="store_true", default=off, help="show where an error came from")


def given(text: str) -> str:
    """A non-empty argument. An empty one is usually an unset shell variable and must not mean "all"."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; name what you mean")
    return text


def whole(least: int, most: int) -> Callable[[str], int]:
    """An argument that is a whole number within bounds."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 12 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least:,} to {most:,}")
        return int(text)

    return read


def add_command(commands: Commands, name: str, run: Run, about: str, former: str = "") -> argparse.ArgumentParser:
    """A command with the flags that every command has; `former` is a name that it had, and still has."""
    parser = commands.add_parser(name, help=about, description=about, aliases=[former] if former else [])
    add_common(parser)
    parser.set_defaults(run=run)
    return parser


def add_group(commands: Commands, name: str, about: str, description: str) -> Commands:
    """A command that has commands of its own."""
    parser = commands.add_parser(name, help=about, description=description)
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """A flag for each of these settings."""
    group = parser.add_argument_group("settings")
    for name in (name for name in names if name not in EVERYWHERE):
        about = f"{setting_of(name).about} ({setting_of(name).rule.allowed})".replace("%", "%%")
        group.add_argument(flag_of(name), metavar="VALUE", help=about)


def load_config(args: argparse.Namespace) -> Config:
    """Flags, environment and file, in this order. The log of this process takes the form that they name."""
    config = Config.load(args.config, os.environ, {name: getattr(args, name, None) for name in FLAGS})
    if config.log_format == "json":
        log_as_json()
    return config


def load_existing(args: argparse.Namespace) -> Config:
    """The Config of an existing data folder."""
    config = load_config(args)
    if profile_of(config).data_is_local and not (config.data / "webordinary.db").is_file():
        raise CommandFailed(
            f"{config.data} holds no WebOrdinary data",
            "start it once with `webordinary up`, or name another folder with --data",
            Exit.NOT_RUNNING,
        )
    return config


def load_folder(args: argparse.Namespace) -> Config:
    """The Config of an existing data folder; refused on AWS."""
    config = load_existing(args)
    if not profile_of(config).data_is_local:
        raise CommandFailed(
            "this works on a data folder",
            "on AWS tables and buckets keep their own earlier states, see docs/aws.md",
            Exit.USAGE,
        )
    return config


_WHOLE_ID, _LATELY, _SHOWN = 64, 1000, 100
_ADDRESS = re.compile(r"[^@\s<>]{1,64}@[^@\s<>]{1,253}")


def mail_address(text: str) -> str:
    """A mail address, as the directory keeps it."""
    if not _ADDRESS.fullmatch(text):
        raise CommandFailed(f"{text!r} is not a mail address", "write --sender name@example.com", Exit.USAGE)
    return text.lower()


def find_site(services: Container, name: str) -> Project:
    """The site of this name; raises CommandFailed with the command that lists the names."""
    if may_name_a_project(name) and (project := services.directory.project(name)):
        return project
    raise CommandFailed(f"there is no site {name[:_SHOWN]!r}", "see `webordinary project list`")


def find_mail(services: Container, start: str) -> str:
    """The whole id of the mail whose id begins so, of those received lately."""
    if len(start) == _WHOLE_ID and services.overview.mail(start):
        return start
    found = [mail.email_id for mail in services.overview.recent_mails(None, _LATELY) if mail.email_id.startswith(start)]
    if len(found) != 1:
        how_many = "several mails begin" if found else "no mail begins"
        raise CommandFailed(
            f"{how_many} with {start[:_SHOWN]!r}", "what `webordinary status` shows of its id is enough"
        )
    return found[0]


MARKS = ("pyproject.toml", "requirements/lambda.lock", "src/webordinary")


def add_checkout(parser: argparse.ArgumentParser) -> None:
    """Add the flag --checkout."""
    parser.add_argument("--checkout", metavar="DIR", type=Path, help="the clone to make it from; found if not given")


def checkout_of(args: argparse.Namespace) -> Path:
    """The clone that is named, that we run from, or that we stand in."""
    ours = Path(webordinary.__file__).resolve().parents[2]
    for folder in [args.checkout.resolve()] if args.checkout else [ours, Path.cwd()]:
        if all((folder / mark).exists() for mark in MARKS):
            return folder
    problem = f"{args.checkout} is no clone of WebOrdinary" if args.checkout else "this needs a clone of WebOrdinary"
    raise CommandFailed(problem, "go into one, or name it with --checkout", Exit.USAGE)
