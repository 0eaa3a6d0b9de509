"""Can workers start, and are the alarms heard? What `webordinary doctor` asks of ECS, ECR, quotas and SNS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import code_of, translated
from webordinary.adapters.aws.provision.package import newest_tag
from webordinary.adapters.aws.provision.preflight import NO_SERVICE, WORKERS, ClientOf, DeploymentIntent, Preflight
from webordinary.model.checks import Check, CheckResult, broken, doubtful, good

DEPLOY = "`webordinary aws deploy` makes it"
IMAGE = "`webordinary aws image` builds and pushes it"
_BAD_NEWS = ("unable to", "failed", "not met", "unhealthy")
_RECENT = 5
_PENDING = "PendingConfirmation"


class WorkerChecks:
    """Read-only. `intent` names region and mailbox; the number of workers is asked for."""

    def __init__(self, client_of: ClientOf, intent: DeploymentIntent) -> None:
        self._client_of, self._intent = client_of, intent

    def checks(self) -> Iterator[Check]:
        """All of them."""
        limits = Preflight(self._client_of, self._intent)
        yield Check("workers", self.service)
        yield Check("image", self.image)
        yield Check("lambda quota", limits.lambda_quota)
        yield Check("machine quota", self.machines)
        yield Check("operator", self.operator)

    def service(self) -> CheckResult:
        """Does ECS start the workers that are wanted?"""
        service = self._service()
        if service is None:
            return broken(f"the service {names.SERVICE} is not there", DEPLOY)
        wanted, running = service.get("desiredCount", 0), service.get("runningCount", 0)
        words = f"{running} of {wanted} workers run"
        news = [event["message"] for event in service.get("events", [])[:_RECENT]]
        told = next((one for one in news if any(bad in one for bad in _BAD_NEWS)), "")
        failed = any(one.get("rolloutState") == "FAILED" for one in service.get("deployments", []))
        if failed or (told and running < wanted):
            return broken(
                f"{words}; ECS says: {told or 'the deployment failed'}", "docs/aws.md, Runbook, unclaimed-depth"
            )
        if running < wanted:
            return doubtful(words, "a machine takes about four minutes to start: look again then")
        return good(words)

    def image(self) -> CheckResult:
        """Is what the service runs in the repository?"""
        service = self._service()
        if service is None:
            return broken("no service runs an image", DEPLOY)
        newest = newest_tag(self._client_of("ecr"))
        if not newest:
            return broken("there is no image of the worker: mails wait", IMAGE)
        with translated("looking at the workers' task"):
            found = self._client_of("ecs").describe_task_definition(taskDefinition=service["taskDefinition"])
        tag = found["taskDefinition"]["containerDefinitions"][0]["image"].rpartition(":")[2]
        with translated(f"looking for the image {tag}"):
            try:
                self._client_of("ecr").describe_images(repositoryName=names.REPOSITORY, imageIds=[{"imageTag": tag}])
            except ClientError as problem:
                if code_of(problem) != "ImageNotFoundException":
                    raise
                return broken(f"workers shall run the image {tag}, which is not there", "`webordinary aws image`")
        return good(f"workers run the image {tag}")

    def machines(self) -> CheckResult:
        """Does the account's quota hold as many workers as scaling may start?"""
        with translated("asking how many workers scaling may start"):
            found = self._client_of("application-autoscaling").describe_scalable_targets(
                ServiceNamespace="ecs", ResourceIds=[WORKERS]
            )["ScalableTargets"]
        most = found[0]["MaxCapacity"] if found else self._intent.max_workers
        wanted = DeploymentIntent(region=self._intent.region, mailbox=self._intent.mailbox, max_workers=most)
        return Preflight(self._client_of, wanted).quota("machine quota")

    def operator(self) -> CheckResult:
        """Do the alarms reach an operator?"""
        topic = f"{names.PREFIX}-operator"
        arn = f"arn:aws:sns:{self._intent.region}:{self._intent.account}:{topic}"
        try:
            told = self._client_of("sns").list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
        except ClientError as problem:
            if code_of(problem) not in ("NotFound", "NotFoundException"):
                raise
            return broken(f"the topic {topic} is not there", DEPLOY)
        waiting = [one["Endpoint"] for one in told if one["SubscriptionArn"] == _PENDING]
        if waiting:
            todo = "click the link in the mail of AWS Notifications; deploying again sends a new one after three days"
            words = f"{', '.join(waiting)} did not confirm the alarms' subscription: alarms reach no operator"
            return broken(words, todo)
        if not told:
            return doubtful("alarms are mailed to no operator", "`webordinary aws deploy -c operator=ADDRESS`")
        return good(f"alarms go to {', '.join(one['Endpoint'] for one in told)}")

    def _service(self) -> Mapping[str, Any] | None:
        with translated(f"looking at the service {names.SERVICE}"):
            try:
                found: Sequence[Mapping[str, Any]] = self._client_of("ecs").describe_services(
                    cluster=names.CLUSTER, services=[names.SERVICE]
                )["services"]
            except ClientError as problem:
                if code_of(problem) not in NO_SERVICE:
                    raise
                return None
        return next((one for one in found if one.get("status") != "INACTIVE"), None)
