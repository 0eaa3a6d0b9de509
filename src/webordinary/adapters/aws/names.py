"""What everything is called on AWS; the infrastructure, the lambdas and the workers all ask here."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from webordinary.model.errors import InvalidName
from webordinary.model.names import ProjectUser

MIN_RETENTION_DAYS = 14
"""A mail may wait for a week; what belongs to it must not expire before."""
PREVIEW_DAYS = 90
"""So long the bucket keeps the files of a preview."""
USUAL_PREFIX = "webordinary"
PREFIX_VARIABLE = "WEBORDINARY_AWS_PREFIX"


def prefix_in(environment: Mapping[str, str]) -> str:
    """What all names begin with. Without a hyphen, so that no deployment's names begin as another's."""
    prefix = environment.get(PREFIX_VARIABLE) or USUAL_PREFIX
    if not re.fullmatch(r"[a-z][a-z0-9]{0,15}", prefix):
        raise InvalidName(f"{PREFIX_VARIABLE} is {prefix!r}: use a letter and up to 15 of a-z and 0-9")
    return prefix


PREFIX = prefix_in(os.environ)
"""Of this process, from its environment alone: whatever is named here is named once, when it is imported."""
STATE_MACHINE = "email-processor" if PREFIX == USUAL_PREFIX else f"{PREFIX}-email-processor"
CLUSTER = f"{PREFIX}-edit-cluster"
SERVICE = f"{PREFIX}-edit-service"
REPOSITORY = f"{PREFIX}-worker"
PUBLISHER_ROLE = f"{PREFIX}-publisher"
"""What the broker assumes for a worker with a claim; the session's tag PROJECT_TAG says for which project."""
PROJECT_TAG = "project"
CONFIGURATION_SET = PREFIX
RECEIPT_RULES = PREFIX
WEB_STACK = f"{PREFIX}-web"
"""The stack whose distribution shows all sites."""
WORKERS_LOG = f"/{PREFIX}/workers"
CONSOLE, CONSOLE_LOG = f"{PREFIX}-console", f"/{PREFIX}/console"
WORKFLOW_LOG = f"/aws/vendedlogs/states/{STATE_MACHINE}"

JOBS = f"{PREFIX}-active-jobs"
OWNERSHIP = f"{PREFIX}-container-ownership"
CLAIM_REQUESTS = f"{PREFIX}-claim-requests"
INTERRUPTIONS = f"{PREFIX}-interruptions"
THREADS = f"{PREFIX}-thread-mappings"
PROJECTS = f"{PREFIX}-project-configs"
MAILS = f"{PREFIX}-mails"
COSTS = f"{PREFIX}-costs"
TABLES = (JOBS, OWNERSHIP, CLAIM_REQUESTS, INTERRUPTIONS, THREADS, PROJECTS, MAILS, COSTS)

OPEN_INDEX = "open-index"
PENDING_CALLBACKS_INDEX = "owed-index"
WORKER_INDEX = "containerId-index"
DUE_INDEX = "due-index"
RECENT_INDEX = "recent-index"

UNCLAIMED = f"{PREFIX}-unclaimed"
UNCLAIMED_DLQ = f"{PREFIX}-unclaimed-dlq"
INPUT_DLQ = f"{PREFIX}-input-dlq.fifo"
DEAD_LETTERS = f"{PREFIX}-dead-letters"

INTAKE, RECONCILE = f"{PREFIX}-intake", f"{PREFIX}-reconcile"
ABANDONED, BOUNCES = f"{PREFIX}-abandoned", f"{PREFIX}-bounces"
BROKER = f"{PREFIX}-broker"
METRICS = "WebOrdinary"
"""The namespace of our metrics; a metric of a kind of event is called as the event."""
METRICS_SERVICE = PREFIX
"""The one dimension of all metrics, `service`. Every process uses the same value, so that alarms see the sum."""

_LONGEST_QUEUE_NAME = 80


@dataclass(frozen=True, slots=True)
class KeyQueues:
    """The names of one key's own queues."""

    input: str
    output: str
    interrupts: str


def queues_of(key: ProjectUser) -> KeyQueues:
    """Every project+user has its own, because a chosen message group cannot be received."""
    return KeyQueues(
        input=_queue("input", key, fifo=True),
        output=_queue("output", key),
        interrupts=_queue("interrupts", key),
    )


def own_dead_letters(key: ProjectUser) -> str:
    """What earlier versions called the key's own queue of dead letters; all share one now."""
    return _queue("dlq", key, fifo=True)


POOL_STEPS = ("SendToContainer", "CheckOwnership", "SendClaimRequest", "CheckActiveJob", "SendInterrupt")
"""The steps between a job and its worker. They share one lambda: each makes a few calls on the same records.

The lambda is named after the first step, so that executions of an earlier workflow version find it. The lambdas of the
other steps are gone: such an execution catches that and goes on to AwaitResult.
"""


def function_of(step: str) -> str:
    """The lambda that does a step of the workflow, named after its state."""
    state = POOL_STEPS[0] if step in POOL_STEPS else step
    return f"{PREFIX}{re.sub('([A-Z])', lambda capital: '-' + capital[1].lower(), state)}"


def mailbox_of(domain: str) -> str:
    """The default mailbox. It has a domain of its own, as mail to the domain itself may have another server."""
    return f"edit@mail.{domain}"


def raw_bucket(account_id: str) -> str:
    """Where SES puts the mails as they came; bucket names are the whole world's, so it carries the account."""
    return f"{PREFIX}-mail-{account_id}"


def access_logs_bucket(account_id: str) -> str:
    """The bucket of S3's access logs."""
    return f"{PREFIX}-access-logs-{account_id}"


def log_group(function: str) -> str:
    """The log group of a lambda in CloudWatch."""
    return f"/aws/lambda/{function}"


def store_bucket(account_id: str) -> str:
    """Attachments, readings of mails, pictures and agents' sessions."""
    return f"{PREFIX}-store-{account_id}"


def sites_bucket(account_id: str) -> str:
    """The bucket of all sites."""
    return f"{PREFIX}-sites-{account_id}"


STAGES = ("edit", "public")
"""All other stages are previews."""
PREVIEWS = ".previews/"
"""No project is called so."""
ERROR_PAGE = "404.html"
"""What visitors get for what is not there; one for all sites, since the edge finds it without a host name."""


def project_folder(project_id: str) -> str:
    """All stages of a project in the sites' bucket."""
    return f"{project_id}/"


def previews_folder(project_id: str) -> str:
    """The previews of a project's conversations, beside the projects: rules for what expires go by a first folder."""
    return f"{PREVIEWS}{project_id}/"


def site_store(account_id: str, project_id: str, stage: str) -> str:
    """The bucket and folder of a site's stage. The edge finds it by the host name."""
    folder = project_folder(project_id) if stage in STAGES else previews_folder(project_id)
    return f"{sites_bucket(account_id)}/{folder}{stage}/"


def site_host(project_id: str, stage: str, domain: str) -> str:
    """What visitors call a site. A wildcard certificate covers one level: `*.DOMAIN` or `*.edit.DOMAIN`."""
    if stage == "public":
        return f"{project_id}.{domain}"
    return f"{project_id}.edit.{domain}" if stage in STAGES else f"{stage}--{project_id}.edit.{domain}"


def own_bucket(project_id: str, stage: str, domain: str) -> str:
    """The bucket that a site had for itself in earlier versions; `webordinary aws migrate` reads it."""
    return f"edit.{project_id}.{domain}" if stage == "edit" else f"{project_id}.{domain}"


def _queue(role: str, key: ProjectUser, *, fifo: bool = False) -> str:
    suffix = ".fifo" if fifo else ""
    whole = f"{PREFIX}-{role}-{key.project_id}-{key.user_id}"
    if len(whole) + len(suffix) > _LONGEST_QUEUE_NAME:
        digest = hashlib.sha256(str(key).encode()).hexdigest()[:16]
        whole = f"{whole[: _LONGEST_QUEUE_NAME - len(suffix) - len(digest) - 1]}-{digest}"
    return whole + suffix
