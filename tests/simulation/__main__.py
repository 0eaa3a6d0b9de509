"""`python -m tests.simulation --seed 7` replays one seed; `--seeds 10000` runs many over all cores."""

from __future__ import annotations

import sys

from tests.simulation.runner import main

sys.exit(main())
