"""The command line: one file per command; each parses, calls and prints."""

import sys

from webordinary.model.errors import InvalidName

try:
    from webordinary.entrypoints.cli.main import main
except InvalidName as problem:  # WEBORDINARY_AWS_PREFIX: names on AWS are made while they are imported
    print(f"webordinary: {problem}", file=sys.stderr)
    sys.exit(2)

__all__ = ["main"]
