"""`webordinary config` and `webordinary completion`: the settings in force, and completion for a shell."""

from __future__ import annotations

import argparse
from pathlib import Path

from webordinary.config import NAMES, SECRETS
from webordinary.entrypoints.cli.exit_codes import Exit
from webordinary.entrypoints.cli.options import FLAGS, Commands, add_command, add_settings, load_config
from webordinary.entrypoints.cli.output import print_json, table

SHELLS = ("bash", "zsh", "tcsh")
HIDDEN = "(set)"


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("config", help="show or check the settings", description="The settings in force.")
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, run, about in (
        ("show", show, "show every setting as it is in force; secrets are not shown"),
        ("check", check, "say whether the settings are possible, and start nothing"),
    ):
        add_settings(add_command(parts, name, run, about), (flag for flag in FLAGS if flag != "data"))


def show(args: argparse.Namespace) -> int:
    """Flags, variables, file and defaults, put together."""
    config = load_config(args)
    values = {name: getattr(config, name) for name in NAMES}
    shown = {name: HIDDEN if name in SECRETS and value else value for name, value in values.items()}
    if args.json:
        print_json({name: str(value) if isinstance(value, Path) else value for name, value in shown.items()})
    else:
        rows = [(name, " ".join(value) if isinstance(value, tuple) else value) for name, value in shown.items()]
        print(table(("setting", "value"), rows))
    return Exit.OK


def check(args: argparse.Namespace) -> int:
    """A wrong setting raises ConfigError, which names every one of them."""
    config = load_config(args)
    if args.json:
        print_json({"ok": True, "data": str(config.data)})
    else:
        print("The settings are possible.")
    return Exit.OK


def add_completion(commands: Commands) -> None:
    command = add_command(commands, "completion", complete, "print completion for a shell; see docs/operations.md")
    command.add_argument("shell", choices=SHELLS)


def complete(args: argparse.Namespace) -> int:
    """Print the script for the shell to read."""
    import shtab  # noqa: PLC0415 - nothing else needs it

    from webordinary.entrypoints.cli.main import parser  # noqa: PLC0415 - it loads this module

    print(shtab.complete(parser(), args.shell))
    return Exit.OK
