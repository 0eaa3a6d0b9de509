"""All sites: one private bucket behind one distribution, which finds a site's folder by its host name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
from webordinary.adapters.aws import names
from webordinary.adapters.aws.provision.shapes import KEPT_DAYS, KEPT_VERSIONS, UNFINISHED_DAYS
from webordinary.adapters.aws.site.deploy import NAMED_BY_CONTENT
from webordinary.adapters.aws.site.own_domains import OWN_DOMAINS, OWN_DOMAINS_ADDRESS, OWN_DOMAINS_GROUP, PROJECT
from webordinary.jobs.site_files import FOLDER

A_YEAR = Duration.days(365)
NOT_FOUND = f"/{names.ERROR_PAGE}"
VIEWER = cloudfront.FunctionEventType
EDGE = {
    "viewer_request": ("viewer_request", "site_by_name"),
    "viewer_request_of_tenant": ("viewer_request", "site_of_tenant"),
    "viewer_response": ("viewer_response",),
}
"""The files of each function; CloudFront knows no imports."""


class SitesStack(Stack):
    """A new customer needs nothing of it: no stack, no certificate, no deployment.

    It is called otherwise than the stacks of earlier versions, so that both show sites until the old ones are removed.
    """

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(
            scope, "web", stack_name=names.WEB_STACK, description="WebOrdinary: the sites of all customers"
        )
        self._settings = settings
        self._hosts = [f"*.{settings.domain}", f"*.edit.{settings.domain}"]
        zone = self._zone()
        certificate = self._certificate(zone)
        bucket, access = self._bucket(), self._access()
        headers = self._headers()
        pages = self._cache(
            "pages", "As the object says; what says nothing is asked for each time", Duration.seconds(0)
        )
        assets = self._cache("assets", "Named by their content: kept for a year", A_YEAR)
        looks = _Looks(pages, assets, headers, self._function("viewer_response", "Searchers skip edit sites"))
        origin = origins.S3BucketOrigin.with_origin_access_control(bucket, origin_access_control=access)
        shown = self._distribution(origin, looks, certificate)
        for number, host in enumerate(self._hosts if zone and certificate else ()):
            for record in (route53.ARecord, route53.AaaaRecord):
                record(
                    self,
                    f"{record.__name__}-{number}",
                    zone=zone,
                    record_name=host,
                    target=route53.RecordTarget.from_alias(targets.CloudFrontTarget(shown)),
                )
        CfnOutput(self, "Address", value=shown.distribution_domain_name)
        if settings.own_domains:
            self._tenants(bucket, access, origin, looks)

    def _bucket(self) -> s3.Bucket:
        bucket = private_bucket(
            self,
            "bucket",
            self._settings,
            bucket_name=names.sites_bucket(self._settings.account_id),
            versioned=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="earlier-releases",
                    noncurrent_version_expiration=Duration.days(KEPT_DAYS),
                    noncurrent_versions_to_retain=KEPT_VERSIONS,
                    abort_incomplete_multipart_upload_after=Duration.days(UNFINISHED_DAYS),
                ),
                s3.LifecycleRule(
                    id="previews",
                    prefix=names.PREVIEWS,
                    expiration=Duration.days(names.PREVIEW_DAYS),
                    noncurrent_version_expiration=Duration.days(1),
                ),
            ],
        )
        bucket.add_to_resource_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                principals=[iam.ServicePrincipal("cloudfront.amazonaws.com")],
                actions=["s3:GetObject"],
                resources=[bucket.arn_for_objects(f"*/{FOLDER}/*")],
            )
        )
        accept(bucket, "AwsSolutions-S1", "Only CloudFront and publishers read it, and visitors are not recorded.")
        return bucket

    def _access(self) -> cloudfront.S3OriginAccessControl:
        return cloudfront.S3OriginAccessControl(
            self, "access", origin_access_control_name=f"{names.PREFIX}-web", description="CloudFront reads the sites"
        )

    def _distribution(
        self, origin: cloudfront.IOrigin, looks: _Looks, certificate: acm.ICertificate | None
    ) -> cloudfront.Distribution:
        request = self._function("viewer_request", "Sites by host, pages in folders")
        shown = cloudfront.Distribution(
            self,
            "sites",
            comment=f"All sites of {self._settings.domain}",
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            price_class=cloudfront.PriceClass.PRICE_CLASS_100,
            certificate=certificate,
            domain_names=self._hosts if certificate else None,
            minimum_protocol_version=cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021 if certificate else None,
            default_behavior=looks.behavior(origin, looks.pages, request),
            additional_behaviors=looks.of_assets(origin, request),
            error_responses=[_not_found(status) for status in (403, 404)],
        )
        _accept(shown)
        if not certificate:
            accept(shown, "AwsSolutions-CFR4", "CloudFront's own certificate, until a zone or a certificate is named.")
        return shown

    def _tenants(
        self, bucket: s3.Bucket, access: cloudfront.S3OriginAccessControl, errors: cloudfront.IOrigin, looks: _Looks
    ) -> None:
        """A distribution for customers' own domains. Each is a tenant of it, which `project domain add` makes.

        CloudFront, unsupported features of multi-tenant distributions: no aliases, price class or IPv6 of its own, and
        no name that leads to it: that has the connection group. The CDK knows them as raw properties only.
        """
        origin = origins.S3BucketOrigin.with_origin_access_control(
            bucket, origin_access_control=access, origin_path=f"/{{{{{PROJECT}}}}}/public"
        )
        request = self._function("viewer_request_of_tenant", "Pages in folders of the project that the tenant names")
        shown = cloudfront.Distribution(
            self,
            "own-domains",
            comment="Sites under customers' own domains",
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            default_behavior=looks.behavior(origin, looks.pages, request),
            additional_behaviors={
                NOT_FOUND: looks.behavior(errors, looks.pages, None),
                **looks.of_assets(origin, request),
            },
            error_responses=[_not_found(status) for status in (403, 404)],
        )
        _accept(shown)
        accept(shown, "AwsSolutions-CFR4", "Each tenant has a certificate of its own.")
        raw = shown.node.default_child
        raw.add_property_override("DistributionConfig.ConnectionMode", "tenant-only")
        definition = {"StringSchema": {"Required": True, "Comment": "Whose public site a domain shows"}}
        raw.add_property_override(
            "DistributionConfig.TenantConfig.ParameterDefinitions", [{"Name": PROJECT, "Definition": definition}]
        )
        for unsupported in ("IPV6Enabled", "PriceClass"):
            raw.add_property_deletion_override(f"DistributionConfig.{unsupported}")
        group = cloudfront.CfnConnectionGroup(
            self, "own-domains-group", name=f"{names.PREFIX}-own-domains", enabled=True, ipv6_enabled=True
        )
        CfnOutput(self, OWN_DOMAINS, value=shown.distribution_id)
        CfnOutput(self, OWN_DOMAINS_GROUP, value=group.attr_id)
        CfnOutput(self, OWN_DOMAINS_ADDRESS, value=group.attr_routing_endpoint)

    def _function(self, name: str, comment: str) -> cloudfront.Function:
        return cloudfront.Function(
            self,
            name,
            function_name=f"{names.PREFIX}-{name.replace('_', '-')}",
            comment=comment,
            runtime=cloudfront.FunctionRuntime.JS_2_0,
            code=cloudfront.FunctionCode.from_inline(edge_code(name, self._settings.domain)),
        )

    def _cache(self, name: str, comment: str, default: Duration) -> cloudfront.CachePolicy:
        return cloudfront.CachePolicy(
            self,
            name,
            cache_policy_name=f"{names.PREFIX}-web-{name}",
            comment=comment,
            min_ttl=Duration.seconds(0),
            default_ttl=default,
            max_ttl=A_YEAR,
            enable_accept_encoding_brotli=True,
            enable_accept_encoding_gzip=True,
        )

    def _headers(self) -> cloudfront.ResponseHeadersPolicy:
        return cloudfront.ResponseHeadersPolicy(
            self,
            "headers",
            response_headers_policy_name=f"{names.PREFIX}-web",
            comment="Headers of every site",
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                    access_control_max_age=A_YEAR, override=True
                ),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                frame_options=cloudfront.ResponseHeadersFrameOptions(
                    frame_option=cloudfront.HeadersFrameOption.SAMEORIGIN, override=False
                ),
                referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                    referrer_policy=cloudfront.HeadersReferrerPolicy.STRICT_ORIGIN_WHEN_CROSS_ORIGIN, override=False
                ),
            ),
        )

    def _zone(self) -> route53.IHostedZone | None:
        if not self._settings.hosted_zone:
            return None
        return route53.HostedZone.from_hosted_zone_attributes(
            self, "zone", hosted_zone_id=self._settings.hosted_zone, zone_name=self._settings.domain
        )

    def _certificate(self, zone: route53.IHostedZone | None) -> acm.ICertificate | None:
        if self._settings.certificate:
            return acm.Certificate.from_certificate_arn(self, "certificate", self._settings.certificate)
        if not zone:
            return None
        return acm.Certificate(
            self,
            "certificate",
            domain_name=self._hosts[0],
            subject_alternative_names=self._hosts[1:],
            validation=acm.CertificateValidation.from_dns(zone),
        )


@dataclass(frozen=True, slots=True)
class _Looks:
    """What all distributions have in common."""

    pages: cloudfront.CachePolicy
    assets: cloudfront.CachePolicy
    headers: cloudfront.ResponseHeadersPolicy
    response: cloudfront.Function

    def behavior(
        self, origin: cloudfront.IOrigin, cache: cloudfront.CachePolicy, request: cloudfront.Function | None
    ) -> cloudfront.BehaviorOptions:
        """How visitors reach an origin."""
        edge = [cloudfront.FunctionAssociation(event_type=VIEWER.VIEWER_RESPONSE, function=self.response)]
        if request:
            edge.insert(0, cloudfront.FunctionAssociation(event_type=VIEWER.VIEWER_REQUEST, function=request))
        return cloudfront.BehaviorOptions(
            origin=origin,
            cache_policy=cache,
            response_headers_policy=self.headers,
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
            allowed_methods=cloudfront.AllowedMethods.ALLOW_GET_HEAD,
            compress=True,
            function_associations=edge,
        )

    def of_assets(
        self, origin: cloudfront.IOrigin, request: cloudfront.Function
    ) -> dict[str, cloudfront.BehaviorOptions]:
        """For what is named by its content."""
        return {f"{folder}*": self.behavior(origin, self.assets, request) for folder in NAMED_BY_CONTENT}


def edge_code(name: str, domain: str) -> str:
    """A function of the edge, which is told no settings but in its text."""
    texts = [Path(__file__).with_name(f"{file}.js").read_text() for file in EDGE[name]]
    return "".join(texts).replace("DOMAIN", domain)


def _accept(shown: cloudfront.Distribution) -> None:
    accept(shown, "AwsSolutions-CFR1", "Customers' sites are for the whole world.")
    accept(shown, "AwsSolutions-CFR2", "There is nothing behind it but files; a firewall would cost more than all.")
    accept(shown, "AwsSolutions-CFR3", "Visitors are not recorded; CloudFront's own metrics count requests.")


def _not_found(status: int) -> cloudfront.ErrorResponse:
    """Without the right to list, S3 answers 403 for what is not there."""
    return cloudfront.ErrorResponse(
        http_status=status, response_http_status=404, response_page_path=NOT_FOUND, ttl=Duration.seconds(10)
    )
