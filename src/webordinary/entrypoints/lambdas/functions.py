"""The module that AWS Lambda imports: `functions.parse_email`, `functions.intake`, …

Importing it does nothing. Lambda asks for its one function while it starts, at full speed whatever its memory:
then the ports of that function are built.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webordinary.entrypoints.lambdas.handlers import Handler


def __getattr__(name: str) -> Handler:
    """Build the handler of this function."""
    if name.startswith("_"):
        raise AttributeError(name)
    from webordinary.compose.lambdas import FUNCTIONS, container_from_environment  # noqa: PLC0415 - see above
    from webordinary.entrypoints.lambdas.handlers import build  # noqa: PLC0415

    by_name = {one.handler.rpartition(".")[2]: one for one in FUNCTIONS}
    if name not in by_name:
        raise AttributeError(f"there is no lambda {name}; there are {', '.join(sorted(by_name))}")
    return build(by_name[name], partial(container_from_environment, os.environ))
