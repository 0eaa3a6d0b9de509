"""`webordinary aws`: the system on AWS, made, changed, looked at and removed; or whole on an emulator."""

from __future__ import annotations

from webordinary.entrypoints.cli import aws_deploy, aws_image, aws_local, aws_smoke
from webordinary.entrypoints.cli.options import Commands


def add_to(commands: Commands) -> None:
    """Declare the commands."""
    parser = commands.add_parser("aws", help="run on AWS, or on an emulator of it", description="The system on AWS.")
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for part in (aws_local, aws_deploy, aws_image, aws_smoke):
        part.add_to(parts)
