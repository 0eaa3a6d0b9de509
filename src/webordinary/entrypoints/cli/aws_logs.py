"""`webordinary logs --backend aws`: where AWS keeps what happened, and the command that shows it."""

from __future__ import annotations

import shlex

from webordinary.adapters.aws import names
from webordinary.adapters.aws.setup.functions import FUNCTIONS, INTAKE, RECONCILE
from webordinary.config import Config

SINCE = "15m"


def groups() -> dict[str, str]:
    """The log groups: who writes each, in the order of a mail's way."""
    steps = {names.log_group(one.name): f"step {one.step}" for one in FUNCTIONS if one.step}
    others = {
        names.log_group(one.name): "lambda" for one in FUNCTIONS if not one.step and one not in (INTAKE, RECONCILE)
    }
    return {
        names.WORKERS_LOG: "workers: claims, jobs, publishing",
        names.log_group(INTAKE.name): "mails that come in",
        **steps,
        names.WORKFLOW_LOG: "the workflow's errors",
        names.log_group(RECONCILE.name): "each minute: hints, replies that wait",
        **others,
    }


def command_for(config: Config, group: str, about: str = "", *, follow: bool = False) -> str:
    """The AWS CLI's command; `about` is a mail's or a job's id."""
    where = ["--endpoint-url", config.aws_endpoint] if config.aws_endpoint else ["--region", config.aws_region]
    pattern = ["--filter-pattern", f"%{about}%"] if about else []  # the beginning of an id will do
    return shlex.join(
        ["aws", "logs", "tail", group, "--since", SINCE, *(["--follow"] if follow else []), *pattern, *where]
    )


def lines(config: Config, about: str = "", *, follow: bool = False) -> list[str]:
    """For people."""
    known = groups()
    wide = max(map(len, known))
    emulated = "an emulator keeps no log of workers: their words are on the terminal of `up`"
    return [
        "on AWS what happened is in CloudWatch; the AWS CLI (version 2) shows it:",
        *(f"  {command_for(config, group, about, follow=follow)}" for group in list(known)[:2]),
        "",
        "the log groups, in the order of a mail's way:",
        *(f"  {group:<{wide}}  {words}" for group, words in known.items()),
        *(["", emulated] if config.aws_endpoint else []),
    ]
