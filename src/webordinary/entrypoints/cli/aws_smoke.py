"""`webordinary aws smoke`: one mail through a real account, and how long each part of its way took."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, replace

from webordinary.app.backends import AWS, require_boto3
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.first_mail import TEXT
from webordinary.entrypoints.cli.options import Commands, add_command, add_settings, given, load_config, whole
from webordinary.entrypoints.cli.output import print_json

LOOK_SECONDS, EMULATED_LOOK_SECONDS, MOST_SECONDS = 5.0, 0.5, 86_400


def add_to(parts: Commands) -> None:
    """Declare the command."""
    parser = add_command(parts, "smoke", run, "send one mail through the account and follow it until it is answered")
    about = "who writes: an entitled address that SES may send as (else the operator's)"
    parser.add_argument("--from", dest="sender", metavar="ADDRESS", type=given, help=about)
    parser.add_argument("--text", default="", help="what is written (else a question, which changes nothing)")
    patience = "how long to wait (900: a machine may have to start)"
    parser.add_argument("--seconds", type=whole(1, MOST_SECONDS), default=900, metavar="N", help=patience)
    add_settings(parser, ("mailbox", "operator", "aws_region", "domain"))


def run(args: argparse.Namespace) -> int:
    """Send, follow, print the timings."""
    require_boto3()
    from webordinary.app import cloud_smoke  # noqa: PLC0415  boto3 is an extra
    from webordinary.app.cloud import open_cloud  # noqa: PLC0415

    config = replace(load_config(args), backend=AWS)
    sender = (args.sender or config.operator).lower()
    if not sender:
        raise CommandFailed("nobody is named who writes", "say --from ADDRESS, or set operator", Exit.USAGE)
    pause = EMULATED_LOOK_SECONDS if config.aws_endpoint else LOOK_SECONDS
    with open_cloud(config) as services:
        trip = cloud_smoke.smoke(services, sender, args.text or TEXT, args.seconds, _say, lambda: time.sleep(pause))
    received = (trip.received_at - trip.sent_at).total_seconds()
    answered = (trip.answered_at - trip.sent_at).total_seconds()
    if args.json:
        print_json(asdict(trip) | {"seconds_to_receive": received, "seconds_to_answer": answered})
    else:
        print(f"received after {received:.1f} s, answered {trip.words} after {answered:.1f} s: mail {trip.email_id}")
    return Exit.OK


def _say(line: str) -> None:
    print(f"webordinary: {line}", file=sys.stderr, flush=True)
