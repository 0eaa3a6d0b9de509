"""Sites: private buckets behind CloudFront, and how visitors find pages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.infra.templates import Cloud, Resource, Stack, plain, ready
from webordinary.adapters.aws.site.deploy import NAMED_BY_CONTENT

pytestmark = [pytest.mark.xdist_group("infra"), pytest.mark.needs("node")]


def test_a_project_has_an_edit_and_a_public_bucket_that_keep_earlier_releases(cloud: Cloud) -> None:
    made = cloud.site_amelia.named("AWS::S3::Bucket", "BucketName")
    assert made.keys() == {"edit.amelia.example.com", "amelia.example.com"}
    for bucket in made.values():
        assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
        [rule] = bucket["LifecycleConfiguration"]["Rules"]
        assert rule["NoncurrentVersionExpiration"] == {"NewerNoncurrentVersions": 60, "NoncurrentDays": 30}


def test_only_cloudfront_reads_a_site_and_never_its_manifest(cloud: Cloud) -> None:
    for policy in cloud.site_amelia.of_type("AWS::S3::BucketPolicy").values():
        statements = policy["PolicyDocument"]["Statement"]
        [allowed] = [one for one in statements if one["Effect"] == "Allow"]
        assert allowed["Principal"] == {"Service": "cloudfront.amazonaws.com"}
        assert allowed["Action"] == "s3:GetObject"
        assert "AWS:SourceArn" in json.dumps(allowed["Condition"])
        hidden = [
            one
            for one in statements
            if plain(one["Resource"][0] if isinstance(one["Resource"], list) else one["Resource"]).endswith(
                "/.webordinary/*"
            )
        ]
        assert [one["Effect"] for one in hidden] == ["Deny"]


def test_every_origin_has_the_access_control_of_all_sites(cloud: Cloud) -> None:
    access = cloud.sites.only("AWS::CloudFront::OriginAccessControl")["OriginAccessControlConfig"]
    assert access["SigningBehavior"] == "always"
    for shown in _distributions(cloud.site_amelia):
        for origin in shown["Origins"]:
            assert "webordinary-sites:" in origin["OriginAccessControlId"]["Fn::ImportValue"]
            assert origin["S3OriginConfig"] == {"OriginAccessIdentity": ""}


def test_pages_are_asked_for_each_time_and_assets_named_by_content_are_kept(cloud: Cloud) -> None:
    policies = {
        made["CachePolicyConfig"]["Name"]: made["CachePolicyConfig"]
        for made in cloud.sites.of_type("AWS::CloudFront::CachePolicy").values()
    }
    assert policies["webordinary-pages"]["DefaultTTL"] == 0
    assert policies["webordinary-assets"]["DefaultTTL"] == 365 * 24 * 3600
    assert all(policy["MinTTL"] == 0 for policy in policies.values())  # what the object says is obeyed
    for shown in _distributions(cloud.site_amelia):
        kept = {one["PathPattern"] for one in shown["CacheBehaviors"]}
        assert kept == {f"{folder}*" for folder in NAMED_BY_CONTENT}
        assert {json.dumps(one["CachePolicyId"]) for one in shown["CacheBehaviors"]} != {
            json.dumps(shown["DefaultCacheBehavior"]["CachePolicyId"])
        }


def test_visitors_come_by_https_and_only_read(cloud: Cloud) -> None:
    for shown in _distributions(cloud.site_amelia):
        for behavior in (shown["DefaultCacheBehavior"], *shown["CacheBehaviors"]):
            assert behavior["ViewerProtocolPolicy"] == "redirect-to-https"
            assert behavior["AllowedMethods"] == ["GET", "HEAD"]


def test_browsers_are_told_to_be_careful_and_searchers_to_skip_the_edit_site(cloud: Cloud) -> None:
    policies = {
        made["ResponseHeadersPolicyConfig"]["Name"]: made["ResponseHeadersPolicyConfig"]
        for made in cloud.sites.of_type("AWS::CloudFront::ResponseHeadersPolicy").values()
    }
    for policy in policies.values():
        secure = policy["SecurityHeadersConfig"]
        assert secure["ContentTypeOptions"] == {"Override": True}
        assert secure["StrictTransportSecurity"]["AccessControlMaxAgeSec"] == 365 * 24 * 3600
        assert secure["ReferrerPolicy"]["ReferrerPolicy"] == "strict-origin-when-cross-origin"
        assert secure["FrameOptions"]["FrameOption"] == "SAMEORIGIN"
    [header] = policies["webordinary-edit"]["CustomHeadersConfig"]["Items"]
    assert (header["Header"], header["Value"]) == ("X-Robots-Tag", "noindex")
    assert "CustomHeadersConfig" not in policies["webordinary-public"]


def test_what_is_missing_is_the_sites_own_404(cloud: Cloud) -> None:
    for shown in _distributions(cloud.site_amelia):
        answers = {one["ErrorCode"]: one for one in shown["CustomErrorResponses"]}
        assert answers.keys() == {403, 404}
        assert all(one["ResponseCode"] == 404 and one["ResponsePagePath"] == "/404.html" for one in answers.values())
        assert all(one["ErrorCachingMinTTL"] <= 60 for one in answers.values())


def test_with_a_hosted_zone_sites_have_their_names_and_a_certificate() -> None:
    ready()
    from aws_cdk import App
    from aws_cdk.assertions import Template
    from infra.settings import Settings
    from infra.site_rules import SiteRulesStack
    from infra.sites import SiteStack

    app, settings = App(), Settings(domain="example.com", hosted_zone="Z0123456789")
    stack = SiteStack(app, "amelia", SiteRulesStack(app), settings)
    template = Template.from_stack(stack)
    template.has_resource_properties(
        "AWS::CertificateManager::Certificate",
        {"DomainName": "edit.amelia.example.com", "SubjectAlternativeNames": ["amelia.example.com"]},
    )
    template.resource_count_is("AWS::Route53::RecordSet", 2)
    aliases = [shown["Aliases"] for shown in _distributions(Stack(template.to_json()))]
    assert sorted(aliases) == [["amelia.example.com"], ["edit.amelia.example.com"]]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("/", "/index.html"),
        ("/about/", "/about/index.html"),
        ("/about.html", "/about.html"),
        ("/_astro/page.3f2a9c1b.js", "/_astro/page.3f2a9c1b.js"),
        ("/.well-known/security", "/.well-known/security"),
        ("/caf%C3%A9/", "/caf%C3%A9/index.html"),
    ],
)
def test_pages_are_found_in_their_folders(asked: str, found: str) -> None:
    assert _at_the_edge(asked)["uri"] == found


@pytest.mark.parametrize(
    ("asked", "moved"),
    [("/about", "/about/"), ("//evil", "/evil/"), ("///evil", "/evil/")],
)
def test_a_name_without_a_dot_is_a_folder_on_this_site(asked: str, moved: str) -> None:
    answer = _at_the_edge(asked)
    assert answer["statusCode"] == 308
    assert answer["headers"]["location"]["value"] == moved


def test_a_moved_visitor_keeps_his_question() -> None:
    query = {"a": {"value": "1", "multiValue": [{"value": "1"}, {"value": "2"}]}, "b": {"value": ""}}
    assert _at_the_edge("/about", query)["headers"]["location"]["value"] == "/about/?a=1&a=2&b"


@pytest.mark.parametrize(
    "asked",
    [
        "/.webordinary/manifest.json",
        "/%2ewebordinary/manifest.json",
        "/%2Ewebordinary%2Fmanifest.json",
        "/a/.git/",
        "/%ff",
    ],
)
def test_hidden_names_are_not_there(asked: str) -> None:
    assert _at_the_edge(asked)["statusCode"] == 404


def _distributions(stack: Stack) -> list[Resource]:
    made = stack.of_type("AWS::CloudFront::Distribution").values()
    return [one["DistributionConfig"] for one in made]


def _at_the_edge(uri: str, query: dict[str, Any] | None = None) -> dict[str, Any]:
    code = (Path(__file__).parents[2] / "infra" / "viewer_request.js").read_text()
    event = json.dumps({"request": {"uri": uri, "querystring": query or {}, "headers": {}}})
    script = f"{code}\nprocess.stdout.write(JSON.stringify(handler({event})));"
    done = subprocess.run(["node", "-e", script], capture_output=True, check=True, timeout=200)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
