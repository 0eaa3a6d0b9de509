"""The console as a task behind a load balancer that signs its users in by OpenID Connect, where it is asked for."""

from __future__ import annotations

from aws_cdk import Aws, CfnOutput, Duration, RemovalPolicy, SecretValue
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_elasticloadbalancingv2 as balancing
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_route53_targets as targets
from constructs import Construct

from infra import arns, rights
from infra.environment import common_environment
from infra.nag import accept
from infra.settings import Settings
from infra.worker_task import NOT_PUSHED, USER
from webordinary.adapters.aws import names
from webordinary.adapters.aws.provision.preflight import CONSOLE_CPU, CONSOLE_MEMORY
from webordinary.adapters.aws.site.job_files import SESSIONS_PREFIX as SESSIONS

PORT = 8080
SESSION_HOURS = 12
HOOKS = "/hooks/*"
"""Webhooks are signed by their senders, which cannot sign in."""
NOT_OURS = "421"
"""What the console answers under a name that is not its own: the load balancer looks at it by its address."""


def add_console(
    scope: Construct, vpc: ec2.Vpc, cluster: ecs.Cluster, repository: ecr.Repository, settings: Settings
) -> None:
    """Load balancer and task. Without an image no task is started: deploy again after `webordinary aws image`."""
    outside = ec2.SecurityGroup(
        scope, "console-front", vpc=vpc, allow_all_outbound=False, description="Console: its load balancer"
    )
    inside = ec2.SecurityGroup(
        scope, "console-wall", vpc=vpc, allow_all_outbound=False, description="Console: its load balancer alone"
    )
    outside.add_ingress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "browsers")
    outside.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "the provider that signs users in")
    outside.add_egress_rule(inside, ec2.Port.tcp(PORT), "the console")
    inside.add_ingress_rule(outside, ec2.Port.tcp(PORT), "the load balancer")
    for port, why in {443: "https: AWS, repositories", 22: "git over ssh"}.items():
        inside.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(port), why)
    accept(outside, "AwsSolutions-EC23", "Browsers come from everywhere; the load balancer signs them in first.")
    balancer = balancing.ApplicationLoadBalancer(
        scope,
        "console-balancer",
        load_balancer_name=names.CONSOLE,
        vpc=vpc,
        internet_facing=True,
        security_group=outside,
        drop_invalid_header_fields=True,
    )
    accept(balancer, "AwsSolutions-ELB2", "The console writes down who did what; logs of each look would cost more.")
    service = _service(scope, cluster, repository, inside, balancer.load_balancer_arn, settings)
    group = balancing.ApplicationTargetGroup(
        scope,
        "console-targets",
        vpc=vpc,
        port=PORT,
        protocol=balancing.ApplicationProtocol.HTTP,
        targets=[service],
        deregistration_delay=Duration.seconds(10),
        health_check=balancing.HealthCheck(path="/healthz", healthy_http_codes=NOT_OURS),
    )
    listener = balancer.add_listener(
        "console-listener",
        port=443,
        open=False,
        certificates=[acm.Certificate.from_certificate_arn(scope, "console-name", settings.console_certificate)],
        ssl_policy=balancing.SslPolicy.TLS13_RES,
        default_action=_signed_in(group, settings),
    )
    listener.add_action(
        "console-hooks",
        priority=1,
        conditions=[balancing.ListenerCondition.path_patterns([HOOKS])],
        action=balancing.ListenerAction.forward([group]),
    )
    _name(scope, balancer, settings)


def _signed_in(group: balancing.ApplicationTargetGroup, settings: Settings) -> balancing.ListenerAction:
    return balancing.ListenerAction.authenticate_oidc(
        authorization_endpoint=settings.console_authorization,
        token_endpoint=settings.console_token,
        user_info_endpoint=settings.console_userinfo,
        issuer=settings.console_issuer,
        client_id=settings.console_client_id,
        client_secret=SecretValue.secrets_manager(settings.console_secret),
        scope="openid email",
        session_timeout=Duration.hours(SESSION_HOURS),
        on_unauthenticated_request=balancing.UnauthenticatedAction.AUTHENTICATE,
        allow_https_outbound=False,  # the rule is above, with the others
        next=balancing.ListenerAction.forward([group]),
    )


def _service(
    scope: Construct,
    cluster: ecs.Cluster,
    repository: ecr.Repository,
    wall: ec2.SecurityGroup,
    balancer_arn: str,
    settings: Settings,
) -> ecs.FargateService:
    task = ecs.FargateTaskDefinition(
        scope,
        "console-task",
        family=names.CONSOLE,
        cpu=CONSOLE_CPU,
        memory_limit_mib=CONSOLE_MEMORY,
        runtime_platform=ecs.RuntimePlatform(
            cpu_architecture=ecs.CpuArchitecture.ARM64, operating_system_family=ecs.OperatingSystemFamily.LINUX
        ),
        task_role=make_console_role(scope, settings),
    )
    log = logs.LogGroup(
        scope,
        "console-log",
        log_group_name=names.CONSOLE_LOG,
        retention=logs.RetentionDays.ONE_YEAR,
        removal_policy=RemovalPolicy.DESTROY,
    )
    task.add_container(
        "console",
        image=ecs.ContainerImage.from_ecr_repository(repository, settings.image_tag or NOT_PUSHED),
        command=["webordinary", "up", "--workers", "0", "--no-sample"],
        user=USER,
        environment=_environment(balancer_arn, settings),
        logging=ecs.LogDrivers.aws_logs(stream_prefix="console", log_group=log),
        port_mappings=[ecs.PortMapping(container_port=PORT)],
    )
    accept(task.obtain_execution_role(), "AwsSolutions-IAM5[Resource::*]", "ECR's token to log in knows no resource.")
    accept(task, "AwsSolutions-ECS2", "Names and addresses; the load balancer has the one secret.")
    with_nat = settings.capacity != "fargate"
    return ecs.FargateService(
        scope,
        "console-service",
        service_name=names.CONSOLE,
        cluster=cluster,
        task_definition=task,
        desired_count=1 if settings.image_tag else 0,
        assign_public_ip=not with_nat,
        min_healthy_percent=100,
        max_healthy_percent=200,
        circuit_breaker=ecs.DeploymentCircuitBreaker(rollback=True),
        security_groups=[wall],
        vpc_subnets=ec2.SubnetSelection(
            subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS if with_nat else ec2.SubnetType.PUBLIC
        ),
    )


def _environment(balancer_arn: str, settings: Settings) -> dict[str, str]:
    return {
        **common_environment(settings),
        "AWS_REGION": Aws.REGION,
        "WORKSPACE_PATH": "/work",
        "WEBORDINARY_HOST": "0.0.0.0",  # noqa: S104 - its wall lets the load balancer in alone
        "WEBORDINARY_PORT": str(PORT),
        "WEBORDINARY_PUBLIC_URL": f"https://{settings.console}",
        "WEBORDINARY_ALB_ARN": balancer_arn,
        "WEBORDINARY_ALB_ISSUER": settings.console_issuer,
        "WEBORDINARY_ALB_CLIENT_ID": settings.console_client_id,
        "WEBORDINARY_OIDC_CLAIM": settings.console_claim,
        "WEBORDINARY_CONSOLE_OPERATORS": settings.console_operators,
        "WEBORDINARY_CONSOLE_VIEWERS": settings.console_viewers,
    }


def _name(scope: Construct, balancer: balancing.ApplicationLoadBalancer, settings: Settings) -> None:
    CfnOutput(scope, "Console", value=balancer.load_balancer_dns_name)
    if settings.hosted_zone and settings.console.endswith(f".{settings.domain}"):
        zone = route53.HostedZone.from_hosted_zone_attributes(
            scope, "console-zone", hosted_zone_id=settings.hosted_zone, zone_name=settings.domain
        )
        route53.ARecord(
            scope,
            "console-record",
            zone=zone,
            record_name=settings.console,
            target=route53.RecordTarget.from_alias(targets.LoadBalancerTarget(balancer)),
        )


def make_console_role(scope: Construct, settings: Settings) -> iam.Role:
    """What an operator does from the console: no infrastructure, no worker's image, no key of an agent."""
    role = iam.Role(
        scope,
        "console-role",
        role_name=names.CONSOLE,
        assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
        description="The console: what operators do with mails, sites and workers",
    )
    raw, store, sites = (named(Aws.ACCOUNT_ID) for named in (names.raw_bucket, names.store_bucket, names.sites_bucket))
    rights.grant(
        role,
        rights.move_in_tables(
            names.JOBS, names.CLAIM_REQUESTS, names.OWNERSHIP, names.MAILS, names.THREADS, names.PROJECTS
        ),
        rights.write_tables(names.INTERRUPTIONS),
        rights.read_tables(names.COSTS),
        iam.PolicyStatement(
            actions=["dynamodb:Scan"], resources=[arns.table(names.OWNERSHIP), arns.table(names.PROJECTS)]
        ),
        rights.search(names.JOBS, names.OPEN_INDEX, names.PENDING_CALLBACKS_INDEX),
        rights.search(names.OWNERSHIP, names.WORKER_INDEX),
        rights.search(names.MAILS, names.DUE_INDEX, names.RECENT_INDEX),
        rights.send_to(names.UNCLAIMED, *rights.KEY_QUEUES),
        _tend_queues(),
        rights.read_raw_mails(),
        rights.read_store("parsed", "blobs", "build-logs"),
        rights.write_store("replies"),
        rights.know_missing(raw, store, sites),
        _tend_sites(sites, store),
        rights.start_workflow(),
        rights.watch_workflow(),
        rights.call_back(),
        iam.PolicyStatement(actions=["states:GetExecutionHistory"], resources=[arns.executions()]),
        rights.send_mail(settings.mailbox),
        _keep_credentials(),
    )
    role.add_to_policy(iam.PolicyStatement(actions=["cloudwatch:GetMetricData"], resources=["*"]))
    accept(role, "AwsSolutions-IAM5[Resource::*]", "CloudWatch knows no resource for reading metrics.")
    if settings.own_domains:
        rights.grant(role, *_tend_domains())
    return role


def _tend_queues() -> iam.PolicyStatement:
    """The queues of customers, when a site is added and removed; how much lies in one."""
    actions = [f"sqs:{name}" for name in ("CreateQueue", "SetQueueAttributes", "DeleteQueue", "GetQueueAttributes",
                                          "GetQueueUrl", "ListQueues")]  # fmt: skip
    earlier = f"{names.PREFIX}-dlq-*"  # what customers of earlier versions have
    resources = [arns.queue(name) for name in (*rights.KEY_QUEUES, earlier, names.UNCLAIMED, names.INPUT_DLQ)]
    return iam.PolicyStatement(actions=actions, resources=resources)


def _tend_sites(sites: str, store: str) -> iam.PolicyStatement:
    """Look at sites, roll back, remove one with the sessions of its agents."""
    actions = [f"s3:{name}" for name in ("GetObject", "GetObjectVersion", "PutObject", "DeleteObject",
                                         "DeleteObjectVersion", "ListBucketVersions")]  # fmt: skip
    resources = [arns.bucket(sites), arns.bucket(sites, "*"), arns.bucket(store, f"{SESSIONS}/*")]
    return iam.PolicyStatement(actions=actions, resources=resources)


def _keep_credentials() -> iam.PolicyStatement:
    """Credentials of repositories: to look whether one is kept and works, to keep another, to forget it."""
    parameters = f"arn:{Aws.PARTITION}:ssm:{Aws.REGION}:{Aws.ACCOUNT_ID}:parameter/{names.PREFIX}/*"
    actions = ["ssm:GetParameter", "ssm:PutParameter", "ssm:DeleteParameter"]
    return iam.PolicyStatement(actions=actions, resources=[parameters])


def _tend_domains() -> tuple[iam.PolicyStatement, ...]:
    """Customers' own domains are tenants of a distribution, whose certificates CloudFront asks ACM for."""
    of_cloudfront = f"arn:{Aws.PARTITION}:cloudfront::{Aws.ACCOUNT_ID}"
    actions = [f"cloudfront:{name}" for name in (
        "CreateDistributionTenant", "GetDistributionTenant", "GetDistributionTenantByDomain", "ListDistributionTenants",
        "UpdateDistributionTenant", "DeleteDistributionTenant", "GetManagedCertificateDetails",
    )]  # fmt: skip
    kinds = ("distribution-tenant", "distribution", "connection-group")
    certificates = f"arn:{Aws.PARTITION}:acm:us-east-1:{Aws.ACCOUNT_ID}:certificate/*"
    stack = f"arn:{Aws.PARTITION}:cloudformation:{Aws.REGION}:{Aws.ACCOUNT_ID}:stack/{names.WEB_STACK}/*"
    return (
        iam.PolicyStatement(actions=actions, resources=[f"{of_cloudfront}:{kind}/*" for kind in kinds]),
        iam.PolicyStatement(actions=["acm:RequestCertificate", "acm:DescribeCertificate"], resources=[certificates]),
        iam.PolicyStatement(actions=["cloudformation:DescribeStacks"], resources=[stack]),
    )
