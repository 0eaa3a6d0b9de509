"""All stacks; `cdk.json` tells CDK to run this: `webordinary aws deploy`."""

from __future__ import annotations

from aws_cdk import App, Tags, Validations
from cdk_nag import AwsSolutionsChecks

from infra.data import DataStack
from infra.lambdas import LambdasStack
from infra.mail import MailStack
from infra.observability import ObservabilityStack
from infra.settings import Settings
from infra.sites import SitesStack
from infra.workers import WorkersStack
from infra.workflow import WorkflowStack
from webordinary.adapters.aws import names

FLAGS = {
    "@aws-cdk/aws-ecs:disableEcsImdsBlocking": True,  # its way breaks on Amazon Linux 2023; capacity.AGENT is ours
    "@aws-cdk/aws-ecs:removeDefaultDeploymentAlarm": True,
    "@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy": True,
    "@aws-cdk/core:enablePartitionLiterals": True,
    "@aws-cdk/aws-iam:minimizePolicies": True,
}


def build(app: App, settings: Settings) -> App:
    """Every stack, in the order in which they can be made."""
    data, lambdas, workflow = DataStack(app, settings), LambdasStack(app, settings), WorkflowStack(app, settings)
    mail, workers = MailStack(app, settings), WorkersStack(app, settings)
    SitesStack(app, settings)
    ObservabilityStack(app, settings)
    for later in (workflow, mail, workers):  # the publisher trusts the broker's role, which must be there
        later.add_stack_dependency(lambdas)
    for later in (lambdas, mail, workers):
        later.add_stack_dependency(data)
    Tags.of(app).add("application", names.PREFIX)
    return checked(app)


def checked(app: App) -> App:
    """A finding that nobody accepted stops the synthesis, and so the deployment."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app, verbose=True))
    return app


def main() -> None:
    """What CDK runs."""
    app = App(post_cli_context=FLAGS, analytics_reporting=False)
    build(app, Settings.read(app.node.try_get_context)).synth()


if __name__ == "__main__":
    main()
