"""`webordinary aws`: the system on AWS, made, changed, looked at and removed; or whole on an emulator."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from webordinary.compose.backends import AWS, require_boto3
from webordinary.config import Config
from webordinary.entrypoints.cli import aws_local
from webordinary.entrypoints.cli.exit_codes import CommandFailed, Exit
from webordinary.entrypoints.cli.options import (
    Commands,
    add_checkout,
    add_command,
    add_settings,
    checkout_of,
    given,
    load_config,
    whole,
)
from webordinary.entrypoints.cli.output import find_program, print_json, run_program
from webordinary.entrypoints.cli.send import TEXT

LOOK_SECONDS, EMULATED_LOOK_SECONDS, MOST_SECONDS = 5.0, 0.5, 86_400


def add_smoke(parts: Commands) -> None:
    parser = add_command(
        parts, "smoke", run_smoke, "send one mail through the account and follow it until it is answered"
    )
    about = "who writes: an entitled address that SES may send as (else the operator's)"
    parser.add_argument("--from", dest="sender", metavar="ADDRESS", type=given, help=about)
    parser.add_argument("--text", default="", help="what is written (else a question, which changes nothing)")
    patience = "how long to wait (900: a machine may have to start)"
    parser.add_argument("--seconds", type=whole(1, MOST_SECONDS), default=900, metavar="N", help=patience)
    add_settings(parser, ("mailbox", "operator", "aws_region", "domain"))


def run_smoke(args: argparse.Namespace) -> int:
    """Send, follow, print the timings."""
    require_boto3()
    from webordinary.compose.aws import open_aws  # noqa: PLC0415
    from webordinary.operations import smoke  # noqa: PLC0415  boto3 is an extra

    config = replace(load_config(args), backend=AWS)
    sender = (args.sender or config.operator).lower()
    if not sender:
        raise CommandFailed("nobody is named who writes", "say --from ADDRESS, or set operator", Exit.USAGE)
    pause = EMULATED_LOOK_SECONDS if config.aws_endpoint else LOOK_SECONDS
    with open_aws(config) as services:
        trip = smoke.smoke(services, sender, args.text or TEXT, args.seconds, _say, lambda: time.sleep(pause))
    received = (trip.received_at - trip.sent_at).total_seconds()
    answered = (trip.answered_at - trip.sent_at).total_seconds()
    if args.json:
        print_json(asdict(trip) | {"seconds_to_receive": received, "seconds_to_answer": answered})
    else:
        print(f"received after {received:.1f} s, answered {trip.words} after {answered:.1f} s: mail {trip.email_id}")
    return Exit.OK


def _say(line: str) -> None:
    print(f"webordinary: {line}", file=sys.stderr, flush=True)


PLATFORM = "linux/arm64"
"""What the machines of infra/ are."""
DOCKER = "install Docker with buildx, on any machine that has this clone and AWS credentials"


def add_image(parts: Commands) -> None:
    parser = add_command(parts, "image", run_image, "build the worker's image, push it and let the workers take it")
    parser.add_argument("--extras", default="", help="agents to install into it, such as claude; mind their terms")
    parser.add_argument("--platform", default=PLATFORM, help=f"what the machines are ({PLATFORM})")
    parser.add_argument("--no-renew", action="store_true", help="push only; running workers stay as they are")
    add_settings(parser, ("aws_region",))
    add_checkout(parser)


def run_image(args: argparse.Namespace) -> int:
    """Build before anything is touched. Each image has a tag of its own, which no later push can move."""
    require_boto3()
    from webordinary.compose import provision  # noqa: PLC0415  boto3 is an extra

    config, root = load_config(args), checkout_of(args)
    docker = find_program("docker", DOCKER)
    registry = provision.registry(config)
    image = registry.image(f"{version('webordinary')}-{datetime.now(UTC):%Y%m%d%H%M%S}")
    extras = ["--build-arg", f"EXTRAS={args.extras}"] if args.extras else []
    run_program([docker, "build", "--platform", args.platform, *extras, "--tag", image, "."], root, os.environ)
    login = [docker, "login", "--username", registry.user, "--password-stdin", registry.host]
    run_program(login, root, os.environ, registry.password)
    run_program([docker, "push", image], root, os.environ)
    if not args.no_renew:
        provision.renew(config, image)
    if args.json:
        print_json({"image": image, "renewed": not args.no_renew})
    else:
        print(f"{image} is pushed" + ("" if args.no_renew else "; idle workers are replaced, busy ones finish first"))
    return Exit.OK


SAID_BY_SETTINGS = ("domain", "mailbox", "operator", "retention_days", "unadmitted_mail_mb")
TAKE_OVER = "--import-existing-resources"
"""Onboarding may have made a site's buckets before its stack; and what a removed stack left behind is there still."""
NODE = "install Node (https://nodejs.org), which brings npm"
CDK = Path("infra", "cdk")
"""The program `cdk` by its lock file: it gets the operator's credentials, so no other version is fetched or found."""


def add_deploy(parts: Commands) -> None:
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
    from webordinary.compose.provision import package_lambdas  # noqa: PLC0415  boto3 is an extra

    print("webordinary: packing the lambdas", file=sys.stderr, flush=True)
    package_lambdas(root)


def _cdk(config: Config, root: Path, command: str, arguments: list[str]) -> None:
    npm = find_program("npm", NODE)
    run_program([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], root / CDK, _without_credentials())
    program = str(root / CDK / "node_modules" / ".bin" / "cdk")
    run_program([program, command, *arguments], root, os.environ | {"AWS_REGION": config.aws_region})


def _without_credentials() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}


def _context(args: argparse.Namespace, config: Config) -> list[str]:
    """What was said with -c wins over our own settings; those that were never set are left to the stacks."""
    for one in args.context:
        if "=" not in one:
            raise CommandFailed(f"-c {one} has no value", "write -c name=value", Exit.USAGE)
    said = {one.partition("=")[0] for one in args.context}
    image = "" if "image_tag" in said else _newest_image(config)
    default = Config()
    own = [
        f"{name}={getattr(config, name)}"
        for name in SAID_BY_SETTINGS
        if name not in said and getattr(config, name) != getattr(default, name)
    ]
    pushed = [f"image_tag={image}"] if image else []
    return [part for one in [*own, *pushed, *args.context] for part in ("-c", one)]


def _newest_image(config: Config) -> str:
    from webordinary.compose.provision import newest_image_tag  # noqa: PLC0415  boto3 is an extra

    return newest_image_tag(config)


def _let_mail_in(config: Config) -> str:
    """Activate our receipt rules, unless other rules are active: those may receive other mail of the account."""
    from webordinary.compose.provision import activate_receipt_rules  # noqa: PLC0415  boto3 is an extra

    return activate_receipt_rules(config)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("aws", help="run on AWS, or on an emulator of it", description="The system on AWS.")
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    aws_local.add_to(parts)
    add_deploy(parts)
    add_image(parts)
    add_smoke(parts)
