"""Generic workers on ECS. On EC2 by default: the sandbox of agents and builds needs user namespaces."""

from __future__ import annotations

import jsii
from aws_cdk import Annotations, Aspects, CfnOutput, IAspect, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from constructs import Construct, IConstruct

from infra.capacity import make_capacity
from infra.console import add_console
from infra.nag import accept
from infra.network import make_vpc, make_wall
from infra.scaling import scale
from infra.settings import Settings
from infra.worker_roles import make_publisher_role, make_task_role
from infra.worker_task import add_container, make_repository
from webordinary.adapters.aws import names

FARGATE_LOSES = (
    "Fargate has no user namespaces, so no sandbox: outside agents and builds are refused with words, and only the "
    "built-in agent and sites of plain files work. Set capacity=ec2 for the rest."
)


@jsii.implements(IAspect)
class AfterAssociation:
    """Makes a service after the capacity provider belongs to its cluster, and removes it before (aws-cdk#19275).

    CDK adds the association while it synthesises, so it is looked for then.
    """

    def __init__(self, cluster: ecs.Cluster) -> None:
        self._cluster = cluster

    def visit(self, node: IConstruct) -> None:
        """See IAspect."""
        if isinstance(node, ecs.CfnService):
            for found in self._cluster.node.find_all():
                if isinstance(found, ecs.CfnClusterCapacityProviderAssociations):
                    node.add_resource_dependency(found)


class WorkersStack(Stack):
    """Cluster, service and what they need; starts with no worker, and grows when keys wait."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(
            scope, "workers", stack_name=f"{names.PREFIX}-workers", description="WebOrdinary: generic workers"
        )
        vpc = make_vpc(self, settings)
        cluster = ecs.Cluster(
            self,
            "cluster",
            cluster_name=names.CLUSTER,
            vpc=vpc,
            container_insights_v2=ecs.ContainerInsights.DISABLED,
            enable_fargate_capacity_providers=settings.capacity == "fargate",
        )
        accept(cluster, "AwsSolutions-ECS4", "Workers tell their own metrics; Insights would cost more than idling.")
        self._repository, self._role = make_repository(self), make_task_role(self, settings)
        make_publisher_role(self)
        make = self._on_fargate if settings.capacity == "fargate" else self._on_ec2
        scale(make(cluster, make_wall(self, vpc), settings), settings)
        if settings.console:
            add_console(self, vpc, cluster, self._repository, settings)
        CfnOutput(self, "Repository", value=self._repository.repository_uri)

    def _on_ec2(self, cluster: ecs.Cluster, wall: ec2.SecurityGroup, settings: Settings) -> ecs.BaseService:
        task = ecs.Ec2TaskDefinition(
            self, "task", family=names.SERVICE, network_mode=ecs.NetworkMode.AWS_VPC, task_role=self._role
        )
        add_container(task, self._repository, settings, sandbox=True)
        provider = make_capacity(self, cluster, wall, settings)
        service = ecs.Ec2Service(
            self,
            "service",
            service_name=names.SERVICE,
            cluster=cluster,
            task_definition=task,
            desired_count=0,
            min_healthy_percent=100,
            max_healthy_percent=200,
            circuit_breaker=ecs.DeploymentCircuitBreaker(rollback=True),
            capacity_provider_strategies=[
                ecs.CapacityProviderStrategy(capacity_provider=provider.capacity_provider_name, weight=1)
            ],
            security_groups=[wall],
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
        )
        Aspects.of(service).add(AfterAssociation(cluster))
        return service

    def _on_fargate(self, cluster: ecs.Cluster, wall: ec2.SecurityGroup, settings: Settings) -> ecs.BaseService:
        Annotations.of(self).add_warning_v2("webordinary:no-sandbox", FARGATE_LOSES)
        CfnOutput(self, "Loses", value=FARGATE_LOSES)
        task = ecs.FargateTaskDefinition(
            self,
            "task",
            family=names.SERVICE,
            cpu=settings.worker_cpu,
            memory_limit_mib=settings.worker_memory,
            runtime_platform=ecs.RuntimePlatform(
                cpu_architecture=ecs.CpuArchitecture.ARM64, operating_system_family=ecs.OperatingSystemFamily.LINUX
            ),
            ephemeral_storage_gib=60,
            task_role=self._role,
        )
        add_container(task, self._repository, settings, sandbox=False)
        return ecs.FargateService(
            self,
            "service",
            service_name=names.SERVICE,
            cluster=cluster,
            task_definition=task,
            desired_count=0,
            assign_public_ip=True,
            min_healthy_percent=100,
            max_healthy_percent=200,
            circuit_breaker=ecs.DeploymentCircuitBreaker(rollback=True),
            capacity_provider_strategies=[
                ecs.CapacityProviderStrategy(capacity_provider="FARGATE_SPOT" if settings.spot else "FARGATE", weight=1)
            ],
            security_groups=[wall],
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC),
        )
