"""A project's sites: two private buckets, each behind CloudFront."""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_iam as iam
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_route53_targets as targets
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.buckets import private_bucket
from infra.nag import accept
from infra.settings import Settings
from infra.site_rules import SiteRulesStack
from webordinary.adapters.aws import names
from webordinary.adapters.aws.provision.shapes import KEPT_DAYS, KEPT_VERSIONS, UNFINISHED_DAYS
from webordinary.adapters.aws.site.deploy import NAMED_BY_CONTENT
from webordinary.jobs.site_files import FOLDER, Stage


class SiteStack(Stack):
    """One project's edit and public site."""

    def __init__(self, scope: Construct, project_id: str, rules: SiteRulesStack, settings: Settings) -> None:
        super().__init__(
            scope,
            f"site-{project_id}",
            stack_name=f"{names.PREFIX}-site-{project_id}",
            description=f"WebOrdinary: the sites of {project_id}",
        )
        self._project_id, self._rules, self._settings = project_id, rules, settings
        self._zone = self._hosted_zone()
        self._certificate = self._make_certificate()
        for stage in Stage:
            self._show(stage)

    def _show(self, stage: Stage) -> None:
        host = names.site_bucket(self._project_id, stage, self._settings.domain)
        bucket = self._bucket(stage, host)
        shown = self._distribution(stage, host, bucket)
        if self._zone:
            route53.ARecord(
                self,
                f"{stage}-record",
                zone=self._zone,
                record_name=host,
                target=route53.RecordTarget.from_alias(targets.CloudFrontTarget(shown)),
            )
        CfnOutput(self, f"{stage.capitalize()}Address", value=shown.distribution_domain_name)

    def _bucket(self, stage: Stage, host: str) -> s3.Bucket:
        """Onboarding a project makes it, too; whichever comes first, the stack takes it over."""
        bucket = private_bucket(
            self,
            f"{stage}-bucket",
            self._settings,
            bucket_name=host,
            versioned=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="earlier-releases",
                    noncurrent_version_expiration=Duration.days(KEPT_DAYS),
                    noncurrent_versions_to_retain=KEPT_VERSIONS,
                    abort_incomplete_multipart_upload_after=Duration.days(UNFINISHED_DAYS),
                )
            ],
        )
        bucket.add_to_resource_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                principals=[iam.ServicePrincipal("cloudfront.amazonaws.com")],
                actions=["s3:GetObject"],
                resources=[bucket.arn_for_objects(f"{FOLDER}/*")],
            )
        )
        accept(bucket, "AwsSolutions-S1", "Only CloudFront and the publisher read it, and visitors are not recorded.")
        return bucket

    def _distribution(self, stage: Stage, host: str, bucket: s3.Bucket) -> cloudfront.Distribution:
        origin = origins.S3BucketOrigin.with_origin_access_control(bucket, origin_access_control=self._rules.access)
        shown = cloudfront.Distribution(
            self,
            f"{stage}-site",
            comment=host,
            default_root_object="index.html",
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            price_class=cloudfront.PriceClass.PRICE_CLASS_100,
            certificate=self._certificate,
            domain_names=[host] if self._certificate else None,
            minimum_protocol_version=cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021 if self._certificate else None,
            default_behavior=self._behavior(origin, stage, self._rules.pages),
            additional_behaviors={
                f"{folder}*": self._behavior(origin, stage, self._rules.assets) for folder in NAMED_BY_CONTENT
            },
            error_responses=[_not_found(status) for status in (403, 404)],
        )
        self._accept_findings(shown)
        return shown

    def _accept_findings(self, shown: cloudfront.Distribution) -> None:
        accept(shown, "AwsSolutions-CFR1", "Customers' sites are for the whole world.")
        accept(shown, "AwsSolutions-CFR2", "There is nothing behind it but files; a firewall would cost more than all.")
        accept(shown, "AwsSolutions-CFR3", "Visitors are not recorded; CloudFront's own metrics count requests.")
        accept(
            shown, "AwsSolutions-CFR7", "It is the origin access control of all sites; the rule sees one stack only."
        )
        if not self._certificate:
            accept(shown, "AwsSolutions-CFR4", "CloudFront's own name and certificate, until a hosted zone is named.")

    def _behavior(
        self, origin: cloudfront.IOrigin, stage: Stage, cache: cloudfront.CachePolicy
    ) -> cloudfront.BehaviorOptions:
        return cloudfront.BehaviorOptions(
            origin=origin,
            cache_policy=cache,
            response_headers_policy=self._rules.headers[stage],
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
            allowed_methods=cloudfront.AllowedMethods.ALLOW_GET_HEAD,
            compress=True,
            function_associations=[
                cloudfront.FunctionAssociation(
                    event_type=cloudfront.FunctionEventType.VIEWER_REQUEST, function=self._rules.find_pages
                )
            ],
        )

    def _hosted_zone(self) -> route53.IHostedZone | None:
        if not self._settings.hosted_zone:
            return None
        return route53.HostedZone.from_hosted_zone_attributes(
            self, "zone", hosted_zone_id=self._settings.hosted_zone, zone_name=self._settings.domain
        )

    def _make_certificate(self) -> acm.Certificate | None:
        if not self._zone:
            return None
        hosts = [names.site_bucket(self._project_id, stage, self._settings.domain) for stage in Stage]
        return acm.Certificate(
            self,
            "certificate",
            domain_name=hosts[0],
            subject_alternative_names=hosts[1:],
            validation=acm.CertificateValidation.from_dns(self._zone),
        )


def _not_found(status: int) -> cloudfront.ErrorResponse:
    """Without the right to list, S3 answers 403 for what is not there."""
    return cloudfront.ErrorResponse(
        http_status=status, response_http_status=404, response_page_path="/404.html", ttl=Duration.seconds(10)
    )
