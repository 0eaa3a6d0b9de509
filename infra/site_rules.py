"""Rules that all sites share: an account has few of each kind."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudfront as cloudfront
from constructs import Construct

from webordinary.adapters.aws import names
from webordinary.jobs.site_files import Stage

A_YEAR = Duration.days(365)


class SiteRulesStack(Stack):
    """An account may have twenty cache policies and a hundred origin access controls: one of each is for all sites."""

    def __init__(self, scope: Construct) -> None:
        super().__init__(
            scope, "sites", stack_name=f"{names.PREFIX}-sites", description="WebOrdinary: what all sites share"
        )
        self.pages = self._cache(
            "pages", "As the object says; what says nothing is asked for each time", Duration.seconds(0)
        )
        self.assets = self._cache("assets", "Named by their content: kept for a year", A_YEAR)
        self.headers = {stage: self._headers(stage) for stage in Stage}
        self.access = cloudfront.S3OriginAccessControl(
            self, "access", origin_access_control_name=names.PREFIX, description="CloudFront reads the sites' buckets"
        )
        self.find_pages = cloudfront.Function(
            self,
            "find-pages",
            function_name=f"{names.PREFIX}-find-pages",
            comment="Pages in folders, nothing hidden",
            runtime=cloudfront.FunctionRuntime.JS_2_0,
            code=cloudfront.FunctionCode.from_inline(Path(__file__).with_name("viewer_request.js").read_text()),
        )

    def _cache(self, name: str, comment: str, default: Duration) -> cloudfront.CachePolicy:
        return cloudfront.CachePolicy(
            self,
            name,
            cache_policy_name=f"{names.PREFIX}-{name}",
            comment=comment,
            min_ttl=Duration.seconds(0),
            default_ttl=default,
            max_ttl=A_YEAR,
            enable_accept_encoding_brotli=True,
            enable_accept_encoding_gzip=True,
        )

    def _headers(self, stage: Stage) -> cloudfront.ResponseHeadersPolicy:
        unseen = cloudfront.ResponseCustomHeader(header="X-Robots-Tag", value="noindex", override=True)
        return cloudfront.ResponseHeadersPolicy(
            self,
            f"{stage}-headers",
            response_headers_policy_name=f"{names.PREFIX}-{stage}",
            comment=f"Headers of every {stage} site",
            custom_headers_behavior=(
                cloudfront.ResponseCustomHeadersBehavior(custom_headers=[unseen]) if stage is Stage.EDIT else None
            ),
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
