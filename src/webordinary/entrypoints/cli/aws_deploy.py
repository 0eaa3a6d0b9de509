"""`webordinary aws deploy|diff|destroy`: the stacks of infra/, through the CDK's own program."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from webordinary.app.backends import require_boto3
from webordinary.config import Config
from webordinary.entrypoints.cli.checkout import add_checkout, checkout_of
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.options import Commands, add_command, add_settings, given, load_config
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.cli.programs import find_program, run_program

SAID_BY_SETTINGS = ("domain", "mailbox", "operator")
TAKE_OVER = "--import-existing-resources"
"""Onboarding may have made a site's buckets before its stack; and what a removed stack left behind is there still."""
NODE = "install Node (https://nodejs.org), which brings npx"


def add_to(parts: Commands) -> None:
    """Declare the commands."""
    deploying = add_command(parts, "deploy", deploy, "package the lambdas, then make or change everything on AWS")
    comparing = add_command(parts, "diff", diff, "package the lambdas, then show what deploying would change")
    removing = add_command(parts, "destroy", destroy, "remove the stacks; tables, queues and buckets stay")
    removing.add_argument("--site", metavar="NAME", type=given, help="only the stack of this site")
    for parser in (deploying, removing):
        parser.add_argument("--yes", action="store_true", help="do not ask")
    for parser in (deploying, comparing, removing):
        about = "a setting of the deployment, see docs/aws.md; may be said several times"
        parser.add_argument("-c", dest="context", action="append", default=[], metavar="NAME=VALUE", help=about)
        add_settings(parser, (*SAID_BY_SETTINGS, "aws_region"))
        add_checkout(parser)


def deploy(args: argparse.Namespace) -> int:
    """Everything, in order; then mails are let in."""
    require_boto3()
    config, root = load_config(args), checkout_of(args)
    context = _context(args, config)
    _package(root)
    approval = ["--require-approval", "never"] if args.yes else []
    _cdk(config, root, "deploy", ["--all", TAKE_OVER, *approval, *context])
    words = _let_mail_in(config)
    if args.json:
        print_json({"deployed": True, "mail": words})
    else:
        print(f"{words}\nnow `webordinary aws image`, then `webordinary doctor --backend aws` says what is missing")
    return Exit.OK


def diff(args: argparse.Namespace) -> int:
    """Changes nothing."""
    config, root = load_config(args), checkout_of(args)
    context = _context(args, config)
    _package(root)
    _cdk(config, root, "diff", context)
    return Exit.OK


def destroy(args: argparse.Namespace) -> int:
    """The CDK asks before it does, unless told not to."""
    config, root = load_config(args), checkout_of(args)
    context = _context(args, config)
    which = [f"site-{args.site}", "-c", f"projects={args.site}"] if args.site else ["--all"]
    _package(root)  # it reads all stacks before it removes one
    _cdk(config, root, "destroy", [*which, *(["--force"] if args.yes else []), *context])
    return Exit.OK


def _package(root: Path) -> None:
    from webordinary.adapters.aws.setup import package  # noqa: PLC0415  boto3 is an extra

    print("webordinary: packing the lambdas", file=sys.stderr, flush=True)
    package.build(root, package.AWS)


def _cdk(config: Config, root: Path, command: str, arguments: list[str]) -> None:
    own = shutil.which("cdk")
    program = [own] if own else [find_program("npx", NODE), "--yes", "aws-cdk"]
    run_program([*program, command, *arguments], root, os.environ | {"AWS_REGION": config.aws_region})


def _context(args: argparse.Namespace, config: Config) -> list[str]:
    """What was said with -c wins over our own settings; those that were never set are left to the stacks."""
    for one in args.context:
        if "=" not in one:
            raise CommandFailed(f"-c {one} has no value", "write -c name=value", Exit.USAGE)
    said = {one.partition("=")[0] for one in args.context}
    default = Config()
    own = [
        f"{name}={getattr(config, name)}"
        for name in SAID_BY_SETTINGS
        if name not in said and getattr(config, name) != getattr(default, name)
    ]
    return [part for one in [*own, *args.context] for part in ("-c", one)]


def _let_mail_in(config: Config) -> str:
    """Make our receipt rules the active ones, unless others are: those may be somebody's who wants their mail."""
    from webordinary.app.cloud_operating import activate_receipt_rules  # noqa: PLC0415  boto3 is an extra

    return activate_receipt_rules(config)
