"""The one workflow file, and its names on the embedded engine and on AWS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

from webordinary.asl.definition import Definition
from webordinary.model.errors import Permanent
from webordinary.workflow.steps import STEPS

FILE = "email_processor.asl.json"
_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


def text() -> str:
    """The workflow as it is deployed everywhere, before names are filled in."""
    return (resources.files(__package__) / FILE).read_text(encoding="utf-8")


def embedded() -> Definition:
    """The workflow for the embedded engine, where a step is known by its own name."""
    return Definition.load(text(), {step: step for step in STEPS})


def for_aws(arns: Mapping[str, str]) -> str:
    """The same file, byte for byte but for each step's name, which becomes the ARN of its function."""
    missing = sorted(set(STEPS) - set(arns))
    if missing:
        raise Permanent(f"no function is named for {', '.join(missing)}: deploy one for every step")
    return _PLACEHOLDER.sub(lambda step: arns[step[1]], text())
