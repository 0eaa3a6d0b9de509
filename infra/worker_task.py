"""The worker's task: its image and its environment. Which project it serves, it learns by claiming."""

from __future__ import annotations

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secrets
from constructs import Construct

from infra.environment import common_environment
from infra.nag import accept
from infra.settings import Settings
from webordinary.adapters.aws import names

CONTAINER = "worker"
WORKSPACE = "/work"
STOP_SECONDS = 120
NOT_PUSHED = "not-pushed"
"""Tag in a deployment that has no image yet; no worker starts before `webordinary aws image`."""
USER = "10001:10001"
"""As the Dockerfile makes it."""


def make_repository(scope: Construct) -> ecr.Repository:
    """Where `webordinary aws image` pushes the worker's image."""
    return ecr.Repository(
        scope,
        "image",
        repository_name=names.REPOSITORY,
        image_scan_on_push=True,
        image_tag_mutability=ecr.TagMutability.IMMUTABLE,
        encryption=ecr.RepositoryEncryption.AES_256,
        lifecycle_rules=[ecr.LifecycleRule(max_image_count=20)],
        removal_policy=RemovalPolicy.DESTROY,
        empty_on_delete=True,
    )


def add_container(
    task: ecs.TaskDefinition, repository: ecr.Repository, settings: Settings, *, sandbox: bool
) -> ecs.ContainerDefinition:
    """The worker, without privileges. With `sandbox`, Docker's own filters are off, so that it can make sandboxes.

    ECS knows no other way to allow user namespaces (aws/containers-roadmap#356). The worker's user has no
    capabilities all the same, and no-new-privileges keeps it so.
    """
    container = task.add_container(
        CONTAINER,
        container_name=CONTAINER,
        image=ecs.ContainerImage.from_ecr_repository(repository, settings.image_tag or NOT_PUSHED),
        user=USER,
        privileged=sandbox,
        docker_security_options=["no-new-privileges"] if sandbox else None,
        linux_parameters=ecs.LinuxParameters(task, "linux", init_process_enabled=True),
        cpu=settings.worker_cpu,
        memory_limit_mib=settings.worker_memory,
        environment=_environment(settings),
        secrets=_secrets(task, settings),
        logging=ecs.LogDrivers.aws_logs(stream_prefix=CONTAINER, log_group=_log(task)),
        stop_timeout=Duration.seconds(STOP_SECONDS),
        health_check=ecs.HealthCheck(
            command=["CMD", "webordinary", "worker", "health"],
            interval=Duration.seconds(30),
            timeout=Duration.seconds(20),
            retries=3,
            start_period=Duration.seconds(60),
        ),
    )
    role = task.obtain_execution_role()
    accept(role, "AwsSolutions-IAM5[Resource::*]", "ECR's token to log in knows no resource.")
    accept(task, "AwsSolutions-ECS2", "Names and addresses; the one secret comes from Secrets Manager.")
    return container


def _environment(settings: Settings) -> dict[str, str]:
    return {
        **common_environment(settings),
        "AWS_REGION": Aws.REGION,
        "WORKSPACE_PATH": WORKSPACE,
        "WEBORDINARY_AWS_BROKER": names.BROKER,
        **_bedrock(settings.bedrock_model),
    }


def _bedrock(model: str) -> dict[str, str]:
    """Claude Code's own variables. It has one model for all that it does: the worker may ask for no other."""
    if not model:
        return {}
    uses = ("ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL")
    return {"CLAUDE_CODE_USE_BEDROCK": "1", **dict.fromkeys(uses, model)}


def _secrets(task: ecs.TaskDefinition, settings: Settings) -> dict[str, ecs.Secret] | None:
    if not settings.agent_secret:
        return None
    key = secrets.Secret.from_secret_name_v2(task, "agent-key", settings.agent_secret)
    return {"ANTHROPIC_API_KEY": ecs.Secret.from_secrets_manager(key)}


def _log(scope: Construct) -> logs.LogGroup:
    return logs.LogGroup(
        scope,
        "log",
        log_group_name=names.WORKERS_LOG,
        retention=logs.RetentionDays.ONE_MONTH,
        removal_policy=RemovalPolicy.DESTROY,
    )
