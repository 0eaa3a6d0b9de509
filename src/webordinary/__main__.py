"""`python -m webordinary`: the command line without its installed script."""

import sys

from webordinary.entrypoints.cli import main

sys.exit(main())
