"""Where the workers live: no way in, and out only for https and git."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.nag import accept
from infra.settings import Settings

ADDRESSES = "10.0.0.0/16"
OUT = {443: "https: AWS, the model, repositories, packages", 22: "git over ssh"}


def make_vpc(scope: Construct, settings: Settings) -> ec2.Vpc:
    """Tasks on EC2 have no public addresses, so they go out through a NAT; those on Fargate need none."""
    outside = settings.capacity == "fargate"
    nat = None if outside else _nat(settings)
    vpc = ec2.Vpc(
        scope,
        "vpc",
        ip_addresses=ec2.IpAddresses.cidr(ADDRESSES),
        max_azs=2,
        nat_gateways=0 if outside else 1,
        nat_gateway_provider=nat,
        subnet_configuration=[
            ec2.SubnetConfiguration(name="out", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=24),
            *([] if outside else [_private()]),
        ],
        gateway_endpoints={
            "s3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
            "dynamodb": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.DYNAMODB),
        },
        restrict_default_security_group=False,
    )
    accept(vpc, "AwsSolutions-VPC7", "Nothing can come in; the proxy of the sandbox logs which hosts agents call.")
    if nat and settings.nat == "instance":
        _open(nat, vpc)
    return vpc


def make_wall(scope: Construct, vpc: ec2.Vpc) -> ec2.SecurityGroup:
    """Nobody calls a worker."""
    wall = ec2.SecurityGroup(scope, "wall", vpc=vpc, allow_all_outbound=False, description="Workers: no way in")
    for port, why in OUT.items():
        wall.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(port), why)
    return wall


def _private() -> ec2.SubnetConfiguration:
    return ec2.SubnetConfiguration(name="workers", subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS, cidr_mask=20)


def _open(nat: ec2.NatInstanceProviderV2, vpc: ec2.Vpc) -> None:
    """A machine that forwards has a wall of its own, which only our workers may pass."""
    for port, why in OUT.items():
        nat.connections.allow_from(ec2.Peer.ipv4(ADDRESSES), ec2.Port.tcp(port), why)
    accept(vpc, "AwsSolutions-EC26", "It forwards and keeps nothing.")
    accept(vpc, "AwsSolutions-EC28", "It is the cheap way out; metrics each minute would cost as much again.")
    accept(vpc, "AwsSolutions-EC29", "A lost one is made again by the next deployment; use a gateway for more.")


def _nat(settings: Settings) -> ec2.NatProvider:
    if settings.nat == "gateway":
        return ec2.NatProvider.gateway()
    return ec2.NatProvider.instance_v2(
        instance_type=ec2.InstanceType("t4g.nano"),
        machine_image=ec2.MachineImage.latest_amazon_linux2023(cpu_type=ec2.AmazonLinuxCpuType.ARM_64),
        default_allowed_traffic=ec2.NatTrafficDirection.OUTBOUND_ONLY,
    )
