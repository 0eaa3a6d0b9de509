"""What workers may do: all of them alike, and as the publisher of one project."""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import arns, rights
from infra.nag import accept_wildcards
from infra.settings import Settings
from webordinary.adapters.aws import names
from webordinary.adapters.aws.site.job_files import SESSIONS_PREFIX as SESSIONS


def make_task_role(scope: Construct, settings: Settings) -> iam.Role:
    """What every worker may do; the rights to a site it gets of the broker, which looks at its claim and the mail."""
    role = iam.Role(
        scope,
        "task-role",
        role_name=f"{names.PREFIX}-worker",
        assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
        description="A generic worker: claims, jobs, queues; no site",
    )
    rights.grant(
        role,
        rights.move_in_tables(names.JOBS, names.CLAIM_REQUESTS),
        rights.write_tables(names.OWNERSHIP, names.THREADS, names.COSTS),
        rights.read_tables(names.PROJECTS, names.MAILS),
        rights.search(names.JOBS, names.OPEN_INDEX, names.PENDING_CALLBACKS_INDEX),
        rights.search(names.OWNERSHIP, names.WORKER_INDEX),
        rights.send_to(names.UNCLAIMED, rights.INPUT, rights.OUTPUT),
        rights.receive_from(names.UNCLAIMED, rights.INPUT, rights.INTERRUPTS),
        rights.read_store("parsed"),
        rights.write_store("blobs", "build-logs"),
        rights.know_missing(names.store_bucket(Aws.ACCOUNT_ID)),
        rights.call_back("states:SendTaskHeartbeat"),
        iam.PolicyStatement(
            actions=["ecs:UpdateTaskProtection", "ecs:GetTaskProtection"],
            resources=[f"arn:{Aws.PARTITION}:ecs:{Aws.REGION}:{Aws.ACCOUNT_ID}:task/{names.CLUSTER}/*"],
        ),
        iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[arns.function(names.BROKER)]),
    )
    if settings.bedrock_model:
        model = rights.ask_model(settings.bedrock_model)
        role.add_to_policy(model)
        accept_wildcards(role, model.resources, "One model, in whichever region its profile sends a request to.")
    return role


def make_publisher_role(scope: Construct) -> iam.Role:
    """With the session tag `project` it reaches the folders and parameters of that project alone, and lists nothing."""
    tag = f"${{aws:PrincipalTag/{names.PROJECT_TAG}}}"
    tagged = {
        "StringLike": {f"aws:RequestTag/{names.PROJECT_TAG}": "?*"},
        "ForAllValues:StringEquals": {"aws:TagKeys": [names.PROJECT_TAG]},
    }
    role = iam.Role(
        scope,
        "publisher-role",
        role_name=names.PUBLISHER_ROLE,
        assumed_by=iam.ArnPrincipal(arns.role(names.BROKER)).with_conditions(tagged).with_session_tags(),
        description="One project's sites, by session tag",
    )
    sites, store = names.sites_bucket(Aws.ACCOUNT_ID), names.store_bucket(Aws.ACCOUNT_ID)
    objects = [
        arns.bucket(sites, f"{names.project_folder(tag)}*"),
        arns.bucket(sites, f"{names.previews_folder(tag)}*"),
        arns.bucket(store, f"{SESSIONS}/{tag}/*"),
    ]
    secret = f"arn:{Aws.PARTITION}:ssm:{Aws.REGION}:{Aws.ACCOUNT_ID}:parameter/{names.PREFIX}/{tag}/*"
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["s3:GetObject", "s3:GetObjectVersion", "s3:PutObject", "s3:DeleteObject"], resources=objects
        )
    )
    role.add_to_policy(iam.PolicyStatement(actions=["ssm:GetParameter"], resources=[secret]))
    accept_wildcards(
        role, [*objects, secret], "One project's sites, its agents' sessions and its repository's credential."
    )
    return role
