"""From a bucket and a stack for each site to one of both for all: `webordinary aws migrate`.

Sites are shown all the while: the old distributions have exact names and win over the wildcard of the new one until
their stacks are removed (CloudFront, alternate domain names that overlap in one account).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import NOT_THERE, code_of, translated
from webordinary.adapters.aws.provision.preflight import ClientOf, Report, our_stacks
from webordinary.adapters.aws.site.credentials import GitSecret, GitSecrets
from webordinary.adapters.aws.site.deploy import in_store, look, show
from webordinary.adapters.aws.site.objects import S3Objects
from webordinary.jobs.ports import no_check
from webordinary.jobs.site_files import Stage
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Permanent, Transient

OLD_SITES, OLD_RULES = f"{names.PREFIX}-site-", f"{names.PREFIX}-sites"
UNUSED_NAME = f"{names.PREFIX}-migrates"
"""A name that no site has: the wildcard alone leads there, while sites' public names still lead to old stacks."""
ANSWER_SECONDS = 20.0
MOST_LOOKS = 240
_MADE = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"})
Fetch = Callable[[str], int]
"""Asks for a page; the status of the answer, 0 for none."""
_GONE = "DELETE_FAILED"


@dataclass(frozen=True, slots=True)
class OldShape:
    """What an account may still have of earlier versions."""

    client_of: ClientOf
    account: str
    domain: str

    def copy_sites(self, projects: Sequence[str]) -> Iterator[str]:
        """Copy what each site shows into the common bucket, within S3; what was done, in words. Idempotent.

        A site that was published there since is left as it is: its fence is higher. Raises where it cannot be known
        what a site shows: of a project with a stack of its own, both buckets must be there.
        """
        s3, stacks = self.client_of("s3"), self._site_stacks()
        for project in projects:
            for stage in (Stage.EDIT, Stage.PUBLIC):
                old = S3Objects(s3, names.own_bucket(project, stage, self.domain))
                new = S3Objects(s3, names.site_store(self.account, project, stage))
                if not _is_there(s3, old.name):
                    if project in stacks:
                        words = f"{stacks[project]} has no bucket {old.name}: is the domain {self.domain}?"
                        raise Permanent(f"{words} Remove that stack yourself if its site is not needed")
                elif done := _copied(old, new, project):
                    yield f"{project}: {stage} site {done}"

    def copy_credentials(self, projects: Sequence[str]) -> Iterator[str]:
        """Copy repositories' credentials from Secrets Manager into parameters, unless one is there. Idempotent."""
        old, ssm = self.client_of("secretsmanager"), self.client_of("ssm")
        kept = GitSecrets(lambda _: ssm)
        for project in projects:
            secret = _old_secret(old, project)
            if secret and kept.fetch(project) is None:
                kept.keep(project, secret)
                yield f"{project}: credential of its repository copied"

    def check_new_shape(self, projects: Collection[str], fetch: Fetch) -> Iterator[str]:
        """Raise Permanent unless every site is shown without its stack; returns what was checked, in words."""
        leaving = [project for project in self._site_stacks() if project in projects]
        if not leaving:
            return
        self._check_names()
        s3 = self.client_of("s3")
        probe = f"https://{names.site_host(UNUSED_NAME, Stage.PUBLIC, self.domain)}/"
        if not 400 <= fetch(probe) < 500:
            raise Permanent(f"{probe} is not answered as a page that is not there: {_records(self.domain)}")
        yield f"*.{self.domain} leads to the new distribution"
        for project in leaving:
            files = look(S3Objects(s3, names.site_store(self.account, project, Stage.EDIT))).shown.files
            if files:
                page = "index.html" if "index.html" in files else min(files)
                address = f"https://{names.site_host(project, Stage.EDIT, self.domain)}/{quote(page)}"
                if fetch(address) != HTTPStatus.OK:
                    raise Permanent(f"{address} does not show what was copied: {_records(self.domain)}")
                yield f"{address} answers"

    def _check_names(self) -> None:
        cloudformation, stack = self.client_of("cloudformation"), names.WEB_STACK
        status = our_stacks(cloudformation).get(stack, "not there")
        if status not in _MADE:
            raise Permanent(f"the stack {stack} is {status}: run `webordinary aws deploy`; no stack was removed")
        with translated(f"looking at the names of {stack}"):
            resources = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
            held: set[str] = set()
            for one in resources:
                if one["ResourceType"] == "AWS::CloudFront::Distribution":
                    config = self.client_of("cloudfront").get_distribution_config(Id=one["PhysicalResourceId"])
                    held.update(config["DistributionConfig"].get("Aliases", {}).get("Items", []))
        if not {f"*.{self.domain}", f"*.edit.{self.domain}"} <= held:
            words = f"{stack} does not have the names *.{self.domain} and *.edit.{self.domain}"
            todo = "run `webordinary aws deploy -c hosted_zone=ID`, or with `-c certificate=ARN` and records of yours"
            raise Permanent(f"{words}: {todo}; no stack was removed")

    def remove_stacks(self, report: Report, pause: Callable[[], None], projects: Collection[str] | None = None) -> int:
        """Remove the stacks of single sites, then the one with their rules; returns how many. Their buckets stay.

        With `projects` only their stacks: of what else is there, nothing was copied.
        """
        cloudformation, found = self.client_of("cloudformation"), self._site_stacks()
        gone = {project: stack for project, stack in found.items() if projects is None or project in projects}
        for project in sorted(found.keys() - gone.keys()):
            report(f"{found[project]} stays: there is no project {project}")
        self._remove(cloudformation, list(gone.values()), report, pause)
        if found.keys() - gone.keys():
            return len(gone)
        rules = [name for name in our_stacks(cloudformation) if name == OLD_RULES]
        self._remove(cloudformation, rules, report, pause)  # exports in use cannot be removed: sites go first
        return len(gone) + len(rules)

    def _site_stacks(self) -> dict[str, str]:
        """The stack of each project that has one of its own."""
        found = sorted(our_stacks(self.client_of("cloudformation")))
        return {name.removeprefix(OLD_SITES): name for name in found if name.startswith(OLD_SITES)}

    def _remove(self, cloudformation: Any, stacks: Sequence[str], report: Report, pause: Callable[[], None]) -> None:  # noqa: ANN401
        for name in stacks:
            with translated(f"removing the stack {name}"):
                cloudformation.delete_stack(StackName=name)
        for _ in range(MOST_LOOKS):
            left = {name: status for name, status in our_stacks(cloudformation).items() if name in stacks}
            if stuck := [name for name, status in left.items() if status == _GONE]:
                raise Permanent(f"the stack {stuck[0]} cannot be removed: its events in CloudFormation say why")
            if not left:
                return
            report(f"{len(left)} stacks of single sites are being removed")
            pause()
        raise Transient("the stacks of single sites are still being removed: run `webordinary aws migrate` again later")


def status_of(address: str) -> int:
    """See Fetch. Certificates are checked."""
    try:
        with urlopen(address, timeout=ANSWER_SECONDS) as answer:  # noqa: S310  an address that we made, https
            return int(answer.status)
    except HTTPError as refused:
        with refused:
            return refused.code
    except (OSError, HTTPException):
        return 0


def _records(domain: str) -> str:
    words = f"point *.{domain} and *.edit.{domain} to the `Address` that {names.WEB_STACK} prints"
    return f"{words}, or deploy with `-c hosted_zone=ID`, and run this again; no stack was removed"


def _is_there(s3: Any, bucket: str) -> bool:  # noqa: ANN401
    with translated(f"looking for the bucket {bucket}"):
        try:
            s3.head_bucket(Bucket=bucket)
        except ClientError as problem:
            if code_of(problem) not in ("404", "NoSuchBucket"):
                raise
            return False
    return True


def _copied(old: S3Objects, new: S3Objects, project: str) -> str:
    """Copy one site; returns what was copied, in words, empty for nothing."""
    standing = look(old)
    if not standing.shown.release:
        return ""
    desired = in_store(standing.shown.release, old, standing)
    if desired is None:
        raise Permanent(f"{old.name} does not keep what it shows: publish {project} anew, then run this again")
    try:
        done = show(desired, ProjectLease(project, "migration", standing.shown.fence), new, no_check)
    except ClaimLost as problem:
        if not look(new).shown.release:
            raise Transient(f"{project} is being published for the first time: run this again later") from problem
        return "was published since"
    return f"copied, {len(desired.files)} files" if done.flipped else "is there"


def _old_secret(secrets: Any, project: str) -> GitSecret | None:  # noqa: ANN401
    with translated(f"fetching the old credential of {project}"):
        try:
            found = secrets.get_secret_value(SecretId=f"{names.PREFIX}/{project}/git")
        except ClientError as problem:
            if code_of(problem) not in NOT_THERE | {"ResourceNotFoundException"}:
                raise
            return None
    return GitSecret(**json.loads(found["SecretString"]))
