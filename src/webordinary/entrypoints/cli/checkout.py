"""Where the sources are: lambdas, the image and the infrastructure are made from a clone, not from an installation."""

from __future__ import annotations

import argparse
from pathlib import Path

import webordinary
from webordinary.entrypoints.cli.exits import CommandFailed, Exit

MARKS = ("pyproject.toml", "requirements/lambda.lock", "src/webordinary")


def add_checkout(parser: argparse.ArgumentParser) -> None:
    """The flag that names it."""
    parser.add_argument("--checkout", metavar="DIR", type=Path, help="the clone to make it from; found if not given")


def checkout_of(args: argparse.Namespace) -> Path:
    """The clone that is named, that we run from, or that we stand in."""
    ours = Path(webordinary.__file__).resolve().parents[2]
    for folder in [args.checkout.resolve()] if args.checkout else [ours, Path.cwd()]:
        if all((folder / mark).exists() for mark in MARKS):
            return folder
    wanted = f"{args.checkout} is no clone of WebOrdinary" if args.checkout else "this needs a clone of WebOrdinary"
    raise CommandFailed(wanted, "go into one, or name it with --checkout", Exit.USAGE)
