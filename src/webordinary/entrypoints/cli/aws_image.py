"""`webordinary aws image`: build the worker's image, tag it with version and `latest`, push it, renew the service."""

from __future__ import annotations

import argparse
import os
from importlib.metadata import version

from webordinary.app.backends import require_boto3
from webordinary.entrypoints.cli.checkout import add_checkout, checkout_of
from webordinary.entrypoints.cli.exits import Exit
from webordinary.entrypoints.cli.options import Commands, add_command, add_settings, load_config
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.cli.programs import find_program, run_program

PLATFORM = "linux/arm64"
"""What the machines of infra/ are."""
DOCKER = "install Docker with buildx, on any machine that has this clone and AWS credentials"


def add_to(parts: Commands) -> None:
    """Declare the command."""
    parser = add_command(parts, "image", run, "build the worker's image, push it and let the workers take it")
    parser.add_argument("--extras", default="", help="agents to install into it, such as claude; mind their terms")
    parser.add_argument("--platform", default=PLATFORM, help=f"what the machines are ({PLATFORM})")
    parser.add_argument("--no-renew", action="store_true", help="push only; running workers stay as they are")
    add_settings(parser, ("aws_region",))
    add_checkout(parser)


def run(args: argparse.Namespace) -> int:
    """Build before anything is touched; the tag of the version is pushed first."""
    require_boto3()
    from webordinary.app import cloud_images  # noqa: PLC0415  boto3 is an extra

    config, root = load_config(args), checkout_of(args)
    docker = find_program("docker", DOCKER)
    registry = cloud_images.registry(config)
    images = [registry.image(tag) for tag in (version("webordinary"), "latest")]
    tags = [part for image in images for part in ("--tag", image)]
    extras = ["--build-arg", f"EXTRAS={args.extras}"] if args.extras else []
    run_program([docker, "build", "--platform", args.platform, *extras, *tags, "."], root, os.environ)
    login = [docker, "login", "--username", registry.user, "--password-stdin", registry.host]
    run_program(login, root, os.environ, registry.password)
    for image in images:
        run_program([docker, "push", image], root, os.environ)
    if not args.no_renew:
        cloud_images.renew(config)
    if args.json:
        print_json({"images": images, "renewed": not args.no_renew})
    else:
        print(
            f"{images[0]} is pushed" + ("" if args.no_renew else "; idle workers are replaced, busy ones finish first")
        )
    return Exit.OK
