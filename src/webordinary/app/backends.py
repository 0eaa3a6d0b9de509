"""Which backend: the only place that knows there are two."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import Any

from webordinary.adapters.local.wakeups import ENGINE
from webordinary.app.embedded import Embedded, open_embedded
from webordinary.app.services import Services
from webordinary.config import Config
from webordinary.model.errors import Permanent
from webordinary.workflow.start import Workflows

AWS = "aws"


def open_services(config: Config) -> AbstractContextManager[Services]:
    """The rooms' ports over the backend that the settings name."""
    if config.backend != AWS:
        return open_embedded(config)
    require_boto3()
    from webordinary.app.cloud import open_cloud  # noqa: PLC0415 - an extra, and slow to import

    return open_cloud(config)


def run_worker(
    config: Config, name: str, slots: int, stop: threading.Event, *, sole: bool, began: Callable[[str], None]
) -> None:
    """Run one generic worker on the backend that the settings name, until `stop` is set; see `run_embedded_worker`."""
    if config.backend != AWS:
        from webordinary.app.working import run_embedded_worker  # noqa: PLC0415 - for workers only, and slow to import

        run_embedded_worker(config, name, slots, stop, sole=sole, began=began)
        return
    require_boto3()
    from webordinary.app.cloud_worker import run_cloud_worker  # noqa: PLC0415 - an extra, and slow to import

    run_cloud_worker(config, slots, stop, name, sole=sole, began=began)


def workflows_of(services: Services) -> Workflows:
    """Who runs the workflow of this backend; what is started there goes on by itself."""
    if isinstance(services, Embedded):
        return WokenEngine(services)
    from webordinary.app.cloud import Cloud  # noqa: PLC0415 - an extra, and slow to import

    assert isinstance(services, Cloud)
    return services.ports.workflows


class WokenEngine:
    """See Workflows: the engine of a data folder, whose process, if there is one, is told to look."""

    def __init__(self, services: Embedded) -> None:
        from webordinary.app import workflow_engine  # noqa: PLC0415 - for few commands only, and slow to import

        self._bus, self._engine = services.bus, workflow_engine.engine(services, wake_outbox=lambda: None)

    def start(self, name: str, input: Mapping[str, Any]) -> bool:
        """See Workflows."""
        started = self._engine.start(name, dict(input))
        self._bus.notify(ENGINE)
        return started


def require_boto3() -> None:
    """Say what is missing, in words."""
    if find_spec("boto3") is None:
        raise Permanent("the backend aws needs boto3: pip install 'webordinary[aws]'")
