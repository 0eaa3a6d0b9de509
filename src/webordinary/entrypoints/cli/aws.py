"""`webordinary aws`: the system on AWS, made, changed, looked at and removed; or whole on an emulator."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from webordinary.compose.backends import AWS, require_boto3
from webordinary.config import Config
from webordinary.entrypoints.cli import aws_local
from webordinary.entrypoints.cli.options import (
    Commands,
    add_checkout,
    add_command,
    add_group,
    add_settings,
    checkout_of,
    given,
    load_config,
    whole,
)
from webordinary.entrypoints.cli.output import (
    CommandFailed,
    Exit,
    find_program,
    line_of_check,
    print_json,
    run_program,
    say,
)
from webordinary.entrypoints.cli.send import TEXT
from webordinary.model.checks import CheckRun, Verdict

LOOK_SECONDS, EMULATED_LOOK_SECONDS, MOST_SECONDS = 5.0, 0.5, 86_400


def add_smoke(parts: Commands) -> None:
    parser = add_command(
        parts, "smoke", run_smoke, "send one mail through the account and follow it until it is answered"
    )
    about = "who writes: an entitled address that SES may send as (else the operator's)"
    parser.add_argument("--from", dest="sender", metavar="ADDRESS", type=given, help=about)
    parser.add_argument("--text", default="", help="what is written (else a question, which changes nothing)")
    help_text = "how long to wait (900: a machine may have to start)"
    parser.add_argument("--seconds", type=whole(1, MOST_SECONDS), default=900, metavar="N", help=help_text)
    add_settings(parser, ("mailbox", "operator", "aws_region", "domain"))


def run_smoke(args: argparse.Namespace) -> int:
    """Send, follow, print the timings."""
    require_boto3()
    from webordinary.compose.aws import open_aws  # noqa: PLC0415
    from webordinary.operations import smoke  # noqa: PLC0415  boto3 is an extra

    config = replace(load_config(args), backend=AWS)
    sender = (args.sender or config.operator).lower()
    if not sender:
        raise CommandFailed(
            "the sender of the test mail is not known", "say --from ADDRESS, or set operator", Exit.USAGE
        )
    pause = EMULATED_LOOK_SECONDS if config.aws_endpoint else LOOK_SECONDS
    with open_aws(config) as services:
        trip = smoke.smoke(services, sender, args.text or TEXT, args.seconds, say, lambda: time.sleep(pause))
    received = (trip.received_at - trip.sent_at).total_seconds()
    answered = (trip.answered_at - trip.sent_at).total_seconds()
    if args.json:
        print_json(asdict(trip) | {"seconds_to_receive": received, "seconds_to_answer": answered})
    else:
        print(f"received after {received:.1f} s, answered {trip.words} after {answered:.1f} s: mail {trip.email_id}")
    return Exit.OK


PLATFORM = "linux/arm64"
"""What the machines of infra/ are. Docker on another kind of machine needs QEMU (binfmt) to build for it."""
DOCKER = "install Docker with buildx (on x86 also `docker run --privileged --rm tonistiigi/binfmt --install arm64`)"


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
    machine = args.platform.rpartition("/")[2]
    image = registry.image(f"{version('webordinary')}-{datetime.now(UTC):%Y%m%d%H%M%S}-{machine}")
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


SAID_BY_SETTINGS = ("domain", "mailbox", "operator", "retention_days", "unadmitted_mail_mb", "acknowledge_seconds")
TAKE_OVER = "--import-existing-resources"
"""Adopt the tables and buckets that a removed deployment left behind."""
NODE = "install Node (https://nodejs.org), which brings npm"
NODE_LEAST, NODE_KEPT_UP = 20, 22
"""The CDK runs on the first; the second is the oldest release that still gets corrections."""
CDK = Path("infra", "cdk")
"""The program `cdk` by its lock file: it gets the operator's credentials, so no other version is fetched or found."""


def add_deploy(parts: Commands) -> None:
    deploying = add_command(parts, "deploy", deploy, "package the lambdas, then make or change everything on AWS")
    looking = add_command(parts, "preflight", preflight, "look at the account before a deployment; changes nothing")
    about = "bring sites and credentials of earlier versions to where they are now; sites are shown all the while"
    migrating = add_command(parts, "migrate", migrate, about)
    migrating.add_argument("--yes", action="store_true", help="do not ask")
    add_settings(migrating, ("domain", "aws_region"))
    comparing = add_command(parts, "diff", diff, "package the lambdas, then show what deploying would change")
    removing = add_command(parts, "destroy", destroy, "remove the stacks; tables, queues and buckets stay")
    for parser in (deploying, removing):
        parser.add_argument("--yes", action="store_true", help="do not ask")
    for parser in (deploying, looking):
        about = "receive all mail of the mailbox's domain, though another server receives it today"
        parser.add_argument("--take-over-mail", action="store_true", help=about)
    for parser in (deploying, looking, comparing, removing):
        about = "a setting of the deployment, see docs/aws.md; may be said several times"
        parser.add_argument("-c", dest="context", action="append", default=[], metavar="NAME=VALUE", help=about)
        add_settings(parser, (*SAID_BY_SETTINGS, "aws_region"))
        add_checkout(parser)


def preflight(args: argparse.Namespace) -> int:
    """Print a line per check; exit code 1 if one fails."""
    require_boto3()
    config = load_config(args)
    looks = list(_look_first(args, config, _settings(args, config)))
    if args.json:
        print_json([{"check": look.name, **asdict(look.finding)} for look in looks])
    return Exit.FAILED if any(look.finding.verdict is Verdict.FAIL for look in looks) else Exit.OK


def deploy(args: argparse.Namespace) -> int:
    """Look, ask once, make what the stacks need, then all stacks in order; then mails are let in."""
    require_boto3()
    from webordinary.compose import provision  # noqa: PLC0415  boto3 is an extra
    from webordinary.compose.aws import with_account  # noqa: PLC0415

    config, root = load_config(args), checkout_of(args)
    settings = _settings(args, config)
    failed = [look for look in _look_first(args, config, settings) if look.finding.verdict is Verdict.FAIL]
    if failed:
        raise CommandFailed(f"{failed[0].finding.what}; nothing was changed", failed[0].finding.todo)
    _ask(args, "Make or change all this?")
    config = with_account(config)
    _package(root)
    if not provision.is_bootstrapped(config):
        _cdk(config, root, "bootstrap", [f"aws://{config.aws_account}/{config.aws_region}"])
    provision.make_roles(config)
    context = _context(config, {**settings, "account": config.aws_account})
    _cdk(config, root, "deploy", ["--all", TAKE_OVER, "--require-approval", "never", *context])
    provision.put_error_page(config)
    provision.resume_scaling(config)
    words = _let_mail_in(config, settings)
    if args.json:
        print_json({"deployed": True, "mail": words})
    else:
        print(f"{words}\nnow `webordinary aws image`, then `webordinary doctor --backend aws` says what is missing")
    return Exit.OK


def migrate(args: argparse.Namespace) -> int:
    """Copy the sites, then remove unused stacks. Idempotent."""
    require_boto3()
    from webordinary.compose import provision  # noqa: PLC0415  boto3 is an extra

    config = replace(load_config(args), backend=AWS)
    _ask(args, "Copy all sites into the common bucket, then remove the stacks of single sites?")
    removed = provision.migrate(config, say)
    if args.json:
        print_json({"removed_stacks": removed})
    else:
        print(f"{removed} stacks were removed; the buckets of single sites stay: remove them when you miss nothing")
    return Exit.OK


def diff(args: argparse.Namespace) -> int:
    """Changes nothing."""
    config, root = load_config(args), checkout_of(args)
    context = _context(config, _settings(args, config))
    _package(root)
    _cdk(config, root, "diff", context)
    return Exit.OK


def destroy(args: argparse.Namespace) -> int:
    """Ask once, stop what would keep the stacks from going, then remove them."""
    require_boto3()
    from webordinary.compose import provision  # noqa: PLC0415  boto3 is an extra

    config, root = load_config(args), checkout_of(args)
    context = _context(config, _settings(args, config))
    _ask(args, "Remove all stacks? Tables and buckets stay; mail is not received any more.")
    provision.prepare_removal(config, say)
    _package(root)  # it reads all stacks before it removes one
    _cdk(config, root, "destroy", ["--all", "--force", *context])
    return Exit.OK


def _look_first(args: argparse.Namespace, config: Config, settings: Mapping[str, str]) -> Iterator[CheckRun]:
    """Every check, printed as it is done."""
    from webordinary.compose.provision import examine_before_deploying  # noqa: PLC0415  boto3 is an extra

    for look in examine_before_deploying(config, settings, take_over_mail=args.take_over_mail):
        if not args.json:
            print(line_of_check(look), flush=True)
        yield look


def _ask(args: argparse.Namespace, question: str) -> None:
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed("nothing was changed: this terminal cannot ask", "say --yes", Exit.USAGE)
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandFailed("nothing was changed", "")


def _package(root: Path) -> None:
    from webordinary.compose.provision import package_lambdas  # noqa: PLC0415  boto3 is an extra

    print("webordinary: packing the lambdas", file=sys.stderr, flush=True)
    package_lambdas(root)


def _cdk(config: Config, root: Path, command: str, arguments: list[str]) -> None:
    _check_node(find_program("node", NODE))
    npm = find_program("npm", NODE)
    run_program([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], root / CDK, _without_credentials())
    program = str(root / CDK / "node_modules" / ".bin" / "cdk")
    run_program([program, command, *arguments], root, os.environ | {"AWS_REGION": config.aws_region})


def _check_node(node: str) -> None:
    version = subprocess.run(
        [node, "--version"], capture_output=True, text=True, check=False, timeout=30
    ).stdout.strip()
    major = version.removeprefix("v").partition(".")[0]
    if not major.isdecimal() or int(major) < NODE_LEAST:
        raise CommandFailed(f"this is Node {version or 'of no version'}; the CDK needs {NODE_LEAST} or newer", NODE)
    if int(major) < NODE_KEPT_UP:
        say(f"Node {version} gets no corrections any more: install {NODE_KEPT_UP} or newer when you can")


def _without_credentials() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}


def _settings(args: argparse.Namespace, config: Config) -> dict[str, str]:
    """Values of -c win over our settings; unset settings keep the defaults of the stacks."""
    for one in args.context:
        if "=" not in one:
            raise CommandFailed(f"-c {one} has no value", "write -c name=value", Exit.USAGE)
    default = Config()
    changed = [name for name in SAID_BY_SETTINGS if getattr(config, name) != getattr(default, name)]
    own = {name: str(getattr(config, name)) for name in changed}
    return own | dict(one.split("=", 1) for one in args.context)


def _context(config: Config, settings: dict[str, str]) -> list[str]:
    """The context of the stacks: the settings and values found in the account."""
    from webordinary.compose.provision import identity_to_use  # noqa: PLC0415  boto3 is an extra

    learnt = {
        "identity": settings.get("identity") or identity_to_use(config, settings),
        "image_tag": settings.get("image_tag") or _newest_image(config),
    }
    parameters = settings | {name: value for name, value in learnt.items() if value}
    return [part for name, value in parameters.items() for part in ("-c", f"{name}={value}")]


def _newest_image(config: Config) -> str:
    from webordinary.compose.provision import newest_image_tag  # noqa: PLC0415  boto3 is an extra

    return newest_image_tag(config)


def _let_mail_in(config: Config, settings: Mapping[str, str]) -> str:
    """Activate our receipt rules, unless other rules are active: those may receive other mail of the account."""
    from webordinary.compose.provision import activate_receipt_rules  # noqa: PLC0415  boto3 is an extra

    return activate_receipt_rules(config, *filter(None, [settings.get("receipt_rules")]))


def add_to(commands: Commands) -> None:
    parts = add_group(commands, "aws", "run on AWS, or on an emulator of it", "The system on AWS.")
    aws_local.add_to(parts)
    add_deploy(parts)
    add_image(parts)
    add_smoke(parts)
