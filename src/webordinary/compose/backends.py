"""The choice of the backend by the settings."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from webordinary.adapters.durable import FileLock, is_locked, write_durably
from webordinary.adapters.files.liveness import LockFiles
from webordinary.compose.container import AWS, AcceptedMail, Container
from webordinary.compose.embedded import open_embedded, send_by_smtp
from webordinary.config import Config
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser

if TYPE_CHECKING:  # a lambda starts without it
    from webordinary.operations.ports import WorkerRegistry

__all__ = [
    "AWS",
    "FileLock",
    "is_locked",
    "write_durably",
]  # for entrypoints, which import no adapters


def open_container(config: Config) -> AbstractContextManager[Container]:
    """The container over the backend that the settings name."""
    if config.backend != AWS:
        return open_embedded(config)
    require_boto3()
    from webordinary.compose.aws import open_aws  # noqa: PLC0415 - an extra, and slow to import

    return open_aws(config)


def run_worker(
    config: Config, name: str, slots: int, stop: threading.Event, *, sole: bool, began: Callable[[str], None]
) -> None:
    """Run one generic worker on the backend that the settings name, until `stop` is set; see `run_embedded_worker`."""
    if config.backend != AWS:
        from webordinary.compose.worker import run_embedded_worker  # noqa: PLC0415 - for workers only, and slow to import

        run_embedded_worker(config, name, slots, stop, sole=sole, began=began)
        return
    require_boto3()
    from webordinary.compose.aws_worker import run_cloud_worker  # noqa: PLC0415 - an extra, and slow to import

    run_cloud_worker(config, slots, stop, name, sole=sole, began=began)


def send_mail(config: Config, raw: bytes, mail_from: str, recipient: str) -> AcceptedMail:
    """Put a mail into the intake. On the embedded backend by SMTP alone: the data folder may be elsewhere."""
    if config.backend != AWS:
        return send_by_smtp(config, raw, mail_from, recipient)
    with open_container(config) as container:
        return container.send_mail(raw, mail_from, recipient)


def machine_workers(config: Config) -> WorkerRegistry:
    """The workers of this machine by their lock files alone: needs neither the database nor AWS."""
    return LockFiles(config.data / "run" / "workers")


def log_groups(config: Config) -> dict[str, str]:
    """CloudWatch log groups and their writers, in the order of a mail's way; empty if events are in the data folder."""
    if config.backend != AWS:
        return {}
    from webordinary.adapters.aws import names  # noqa: PLC0415 - for one command only
    from webordinary.adapters.aws.functions import FUNCTIONS, INTAKE, RECONCILE  # noqa: PLC0415

    steps = {names.log_group(one.name): f"step {', '.join(one.steps)}" for one in FUNCTIONS if one.steps}
    others = {
        names.log_group(one.name): "lambda" for one in FUNCTIONS if not one.steps and one not in (INTAKE, RECONCILE)
    }
    return {
        names.WORKERS_LOG: "workers: claims, jobs, publishing",
        names.log_group(INTAKE.name): "mails that come in",
        **steps,
        names.WORKFLOW_LOG: "the workflow's errors",
        names.log_group(RECONCILE.name): "each minute: hints, replies that wait",
        **others,
    }


def output_queues(config: Config, keys: Iterable[ProjectUser]) -> dict[ProjectUser, str]:
    """The output queues of customers; empty if `Container.settled_since` has what they would hold."""
    if config.backend != AWS:
        return {}
    from webordinary.adapters.aws import names  # noqa: PLC0415 - for one command only

    return {key: names.queues_of(key).output for key in keys}


def outage_of(problem: Exception) -> tuple[str, bool] | None:
    """The text for a failed connection to AWS, and whether AWS answered at all; None for other failures."""
    if "botocore" not in sys.modules:
        return None  # no call was made
    from webordinary.adapters.aws.clients import outage_behind  # noqa: PLC0415 - an extra, and slow to import

    outage = outage_behind(problem)
    return (f"{outage.what}; {outage.todo}", outage.answers) if outage else None


def require_boto3() -> None:
    """Raise Permanent if boto3 is not installed."""
    if find_spec("boto3") is None:
        raise Permanent("the backend aws needs boto3: pip install 'webordinary[aws]'")
