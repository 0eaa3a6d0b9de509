"""Flags that commands share, and the Config made from them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from webordinary.app.backends import AWS
from webordinary.config import NAMES, SECRETS, Config, flag_of, setting_of
from webordinary.entrypoints.cli.exits import CommandFailed, Exit

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
    """An argument that names something. An empty one is a variable nobody set: it must not mean "all of them"."""
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


def add_command(commands: Commands, name: str, run: Run, about: str) -> argparse.ArgumentParser:
    """A command with the flags that every command has."""
    parser = commands.add_parser(name, help=about, description=about)
    add_common(parser)
    parser.set_defaults(run=run)
    return parser


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """A flag for each of these settings."""
    group = parser.add_argument_group("settings")
    for name in (name for name in names if name not in EVERYWHERE):
        about = f"{setting_of(name).about} ({setting_of(name).rule.allowed})".replace("%", "%%")
        group.add_argument(flag_of(name), metavar="VALUE", help=about)


def load_config(args: argparse.Namespace) -> Config:
    """Flags, environment and file, in this order."""
    return Config.load(args.config, os.environ, {name: getattr(args, name, None) for name in FLAGS})


def load_existing(args: argparse.Namespace) -> Config:
    """The Config of a data folder that is there already."""
    config = load_config(args)
    if config.backend != AWS and not (config.data / "webordinary.db").is_file():
        raise CommandFailed(
            f"{config.data} holds no WebOrdinary data",
            "start it once with `webordinary up`, or name another folder with --data",
            Exit.NOT_RUNNING,
        )
    return config


def load_folder(args: argparse.Namespace) -> Config:
    """The same, for what only a data folder has."""
    config = load_existing(args)
    if config.backend == AWS:
        raise CommandFailed(
            "this works on a data folder",
            "on AWS tables and buckets keep their own earlier states, see docs/aws.md",
            Exit.USAGE,
        )
    return config
