"""`make fuzz` for some minutes; `python -m tests.fuzz --target mail --seed 7` replays one input."""

from __future__ import annotations

import sys

from tests.fuzz.runner import main

if __name__ == "__main__":
    sys.exit(main())
