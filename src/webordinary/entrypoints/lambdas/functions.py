"""What AWS Lambda imports and calls: `functions.parse_email`, `functions.intake`, …

Importing this does nothing. Lambda asks for its one function while it starts, at full speed whatever its memory:
then, and only then, what that function needs is built.
"""

from __future__ import annotations

import os
from functools import partial

from webordinary.adapters.aws.setup.functions import FUNCTIONS
from webordinary.entrypoints.lambdas.handling import Handler

_BY_NAME = {one.handler.rpartition(".")[2]: one for one in FUNCTIONS}


def __getattr__(name: str) -> Handler:
    """Build the handler of this function."""
    function = _BY_NAME.get(name)
    if function is None:
        raise AttributeError(f"there is no lambda {name}; there are {', '.join(sorted(_BY_NAME))}")
    from webordinary.app.cloud_lambdas import open_lambda_services  # noqa: PLC0415 - see above
    from webordinary.entrypoints.lambdas.building import build  # noqa: PLC0415

    return build(function, partial(open_lambda_services, os.environ))
