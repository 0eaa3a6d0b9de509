"""Machines for the workers: an Auto Scaling group that ECS fills and empties, down to none."""

from __future__ import annotations

from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.nag import accept
from infra.settings import Settings
from webordinary.adapters.aws import names

DISK_GB = 60
AGENT = (
    "ECS_AWSVPC_BLOCK_IMDS=true",
    "ECS_CONTAINER_STOP_TIMEOUT=120s",
    "ECS_ENABLE_SPOT_INSTANCE_DRAINING=true",
    "ECS_RESERVED_MEMORY=256",
    "ECS_SELINUX_CAPABLE=true",
)
"""For the ECS agent: no task reaches the machine's own credentials; a worker has its time to save.

Without ECS_SELINUX_CAPABLE the agent does not offer security options, and a task that has one is never placed
(API reference of ECS, ContainerDefinition, dockerSecurityOptions).
"""
ROOT_DEVICE = "/dev/xvda"


def make_capacity(
    scope: Construct, cluster: ecs.Cluster, wall: ec2.SecurityGroup, settings: Settings
) -> ecs.AsgCapacityProvider:
    """ARM machines whose own credentials no task can reach."""
    provider = ecs.AsgCapacityProvider(
        scope,
        "capacity",
        auto_scaling_group=_group(scope, cluster.vpc, wall, settings),
        enable_managed_scaling=True,
        enable_managed_termination_protection=True,
        enable_managed_draining=True,
        instance_warmup_period=120,
        machine_image_type=ecs.MachineImageType.AMAZON_LINUX_2,
    )
    cluster.add_asg_capacity_provider(provider)
    return provider


def _group(
    scope: Construct, vpc: ec2.IVpc, wall: ec2.SecurityGroup, settings: Settings
) -> autoscaling.AutoScalingGroup:
    group = autoscaling.AutoScalingGroup(
        scope,
        "machines",
        vpc=vpc,
        vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
        min_capacity=0,
        max_capacity=2 * settings.max_workers,  # a deployment starts the new workers beside the old ones
        mixed_instances_policy=_policy(_launch_template(scope, _role(scope), wall, settings), settings),
        new_instances_protected_from_scale_in=True,
        group_metrics=[autoscaling.GroupMetrics.all()],
        ssm_session_permissions=False,
    )
    accept(group, "AwsSolutions-EC26", "The launch template encrypts; the rule cannot read a group of several types.")
    accept(group, "AwsSolutions-AS3", "Machines come and go with the work; the alarms watch the work.")
    return group


def _policy(machine: ec2.LaunchTemplate, settings: Settings) -> autoscaling.MixedInstancesPolicy:
    return autoscaling.MixedInstancesPolicy(
        launch_template=machine,
        launch_template_overrides=[
            autoscaling.LaunchTemplateOverrides(instance_type=ec2.InstanceType(name))
            for name in settings.instance_types
        ],
        instances_distribution=autoscaling.InstancesDistribution(
            on_demand_base_capacity=0,
            on_demand_percentage_above_base_capacity=0 if settings.spot else 100,
            spot_allocation_strategy=autoscaling.SpotAllocationStrategy.PRICE_CAPACITY_OPTIMIZED,
        ),
    )


def _role(scope: Construct) -> iam.Role:
    role = iam.Role(
        scope,
        "machine-role",
        role_name=f"{names.PREFIX}-machine",
        assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
        description="The ECS agent of a machine",
    )
    accept(role, "AwsSolutions-IAM5[Resource::*]", "What CDK gives an ECS agent: some of its calls know no resource.")
    accept(role, "AwsSolutions-IAM5[Action::ecs:Submit*]", "What CDK gives an ECS agent to tell how its tasks are.")
    return role


def _launch_template(
    scope: Construct, role: iam.Role, wall: ec2.SecurityGroup, settings: Settings
) -> ec2.LaunchTemplate:
    user_data = ec2.UserData.for_linux()
    user_data.add_commands(*(f"echo {line} >> /etc/ecs/ecs.config" for line in AGENT))
    return ec2.LaunchTemplate(
        scope,
        "machine",
        instance_type=ec2.InstanceType(settings.instance_types[0]),
        machine_image=ecs.EcsOptimizedImage.amazon_linux2023(ecs.AmiHardwareType.ARM),
        require_imdsv2=True,
        http_put_response_hop_limit=1,
        role=role,
        security_group=wall,
        user_data=user_data,
        block_devices=[
            ec2.BlockDevice(
                device_name=ROOT_DEVICE,
                volume=ec2.BlockDeviceVolume.ebs(DISK_GB, encrypted=True, volume_type=ec2.EbsDeviceVolumeType.GP3),
            )
        ],
    )
