"""`webordinary doctor`: runs all checks and says how to mend what fails."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import asdict

from webordinary.compose.checks import run_doctor
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.options import FLAGS, Commands, add_command, add_settings, load_config
from webordinary.entrypoints.cli.output import Exit, line_of_check, print_json
from webordinary.model.checks import Verdict
from webordinary.operations.doctor import CheckRun


def add_to(commands: Commands) -> None:
    parser = add_command(commands, "doctor", run, "look at everything that must be in order, and say what to mend")
    add_settings(parser, (name for name in FLAGS if name != "data"))


def run(args: argparse.Namespace) -> int:
    """Print a line per check; exit code 1 if one fails."""
    config = load_config(args)
    up = running.running(config.data) is not None
    looks: list[CheckRun] = []
    for look in run_doctor(running.as_it_runs(config), running=up):
        looks.append(look)
        if not args.json:
            print(line_of_check(look), flush=True)
    counts = Counter(look.finding.verdict for look in looks)
    if args.json:
        print_json([{"check": look.name, **asdict(look.finding)} for look in looks])
    else:
        print(f"\n{counts[Verdict.OK]} in order, {counts[Verdict.WARN]} to know of, {counts[Verdict.FAIL]} to mend")
    return Exit.FAILED if counts[Verdict.FAIL] else Exit.OK
