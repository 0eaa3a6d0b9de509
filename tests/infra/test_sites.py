"""Sites: one private bucket behind one distribution, and how visitors find sites and pages."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.infra.templates import Resource, Stack, StackTemplates, plain, ready
from webordinary.adapters.aws import names
from webordinary.adapters.aws.site.deploy import NAMED_BY_CONTENT
from webordinary.adapters.aws.site.own_domains import OWN_DOMAINS, OWN_DOMAINS_ADDRESS, OWN_DOMAINS_GROUP
from webordinary.adapters.aws.site.releases import EXPIRES
from webordinary.model.errors import InvalidName
from webordinary.model.names import ProjectUser, may_name_a_project

pytestmark = [pytest.mark.xdist_group("infra"), pytest.mark.needs("node")]
DOMAIN = "example.com"


def test_all_sites_share_a_bucket_that_keeps_earlier_releases(cloud: StackTemplates) -> None:
    made = cloud.web.named("AWS::S3::Bucket", "BucketName")
    assert made.keys() == {f"webordinary-sites-{111122223333}"}
    for bucket in made.values():
        assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
        rule, previews = bucket["LifecycleConfiguration"]["Rules"]
        assert rule["NoncurrentVersionExpiration"] == {"NewerNoncurrentVersions": 60, "NoncurrentDays": 30}
        assert (previews["Prefix"], previews["ExpirationInDays"]) == (names.PREVIEWS, EXPIRES.days)
        assert previews["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}


def test_no_project_is_called_as_a_preview_or_their_folder() -> None:
    assert may_name_a_project("t-0123456789abcdef-kiln")
    assert not may_name_a_project("t-0123456789abcdef--kiln")
    assert not may_name_a_project(names.PREVIEWS.rstrip("/"))
    with pytest.raises(InvalidName, match="previews of conversations"):
        ProjectUser("t-0123456789abcdef--kiln", "ann")


def test_a_customer_costs_no_stack_certificate_or_distribution(cloud: StackTemplates) -> None:
    """CloudFront quotas: 100 distributions with the same cache policy, function or access control; two are used."""
    assert not [name for name in cloud.stacks if name.startswith("site-")]
    assert len(cloud.web.of_type("AWS::CloudFront::Distribution")) == 2


def test_own_domains_are_tenants_of_a_distribution_that_finds_the_project_by_their_parameter(
    cloud: StackTemplates,
) -> None:
    """CloudFront, tenant customizations: parameters stand in the path of an origin."""
    shown = _tenants(cloud.web)
    [definition] = shown["TenantConfig"]["ParameterDefinitions"]
    assert (definition["Name"], definition["Definition"]["StringSchema"]["Required"]) == ("project", True)
    paths = {one["Id"]: one.get("OriginPath", "") for one in shown["Origins"]}
    assert paths[shown["DefaultCacheBehavior"]["TargetOriginId"]] == "/{{project}}/public"
    errors = {one["PathPattern"]: paths[one["TargetOriginId"]] for one in shown["CacheBehaviors"]}
    assert errors.pop(f"/{names.ERROR_PAGE}") == "", "the page for what is missing lies in no project"
    assert errors == {f"{folder}*": "/{{project}}/public" for folder in NAMED_BY_CONTENT}


def test_the_distribution_of_own_domains_asks_for_nothing_that_such_a_one_cannot_have(cloud: StackTemplates) -> None:
    """CloudFront, unsupported features of multi-tenant distributions; names and IPv6 are the connection group's."""
    assert not {"Aliases", "PriceClass", "IPV6Enabled", "ViewerCertificate"} & _tenants(cloud.web).keys()
    assert cloud.web.only("AWS::CloudFront::ConnectionGroup")["Ipv6Enabled"]


def test_the_operators_commands_find_the_distribution_of_own_domains(cloud: StackTemplates) -> None:
    told = cloud.web.template["Outputs"].keys()
    assert {OWN_DOMAINS, OWN_DOMAINS_GROUP, OWN_DOMAINS_ADDRESS} <= told


def test_a_deployment_may_do_without_own_domains() -> None:
    stack = _with(own_domains=False)
    assert len(stack.of_type("AWS::CloudFront::Distribution")) == 1
    assert stack.of_type("AWS::CloudFront::ConnectionGroup") == {}


def test_only_cloudfront_reads_a_site_and_never_its_manifest(cloud: StackTemplates) -> None:
    [policy] = cloud.web.of_type("AWS::S3::BucketPolicy").values()
    statements = policy["PolicyDocument"]["Statement"]
    allowed = [one for one in statements if one["Effect"] == "Allow"]
    assert {json.dumps(one["Principal"]) for one in allowed} == {'{"Service": "cloudfront.amazonaws.com"}'}
    assert {one["Action"] for one in allowed} == {"s3:GetObject"}
    assert all("AWS:SourceArn" in json.dumps(one["Condition"]) for one in allowed)
    denied = [one for one in statements if one["Effect"] == "Deny" and one["Action"] == "s3:GetObject"]
    assert [plain(one["Resource"]).endswith("/*/.webordinary/*") for one in denied] == [True]


def test_pages_are_asked_for_each_time_and_assets_named_by_content_are_kept(cloud: StackTemplates) -> None:
    policies = {
        made["CachePolicyConfig"]["Name"]: made["CachePolicyConfig"]
        for made in cloud.web.of_type("AWS::CloudFront::CachePolicy").values()
    }
    assert policies["webordinary-web-pages"]["DefaultTTL"] == 0
    assert policies["webordinary-web-assets"]["DefaultTTL"] == 365 * 24 * 3600
    assert all(policy["MinTTL"] == 0 for policy in policies.values())  # what the object says is obeyed
    [shown] = _distributions(cloud.web)
    kept = {one["PathPattern"] for one in shown["CacheBehaviors"]}
    assert kept == {f"{folder}*" for folder in NAMED_BY_CONTENT}
    assert {json.dumps(one["CachePolicyId"]) for one in shown["CacheBehaviors"]} != {
        json.dumps(shown["DefaultCacheBehavior"]["CachePolicyId"])
    }


def test_visitors_come_by_https_only_read_and_are_led_to_their_site_on_every_path(cloud: StackTemplates) -> None:
    [shown] = _distributions(cloud.web)
    for behavior in (shown["DefaultCacheBehavior"], *shown["CacheBehaviors"]):
        assert behavior["ViewerProtocolPolicy"] == "redirect-to-https"
        assert behavior["AllowedMethods"] == ["GET", "HEAD"]
        assert [one["EventType"] for one in behavior["FunctionAssociations"]] == ["viewer-request", "viewer-response"]


def test_browsers_are_told_to_be_careful(cloud: StackTemplates) -> None:
    [policy] = cloud.web.of_type("AWS::CloudFront::ResponseHeadersPolicy").values()
    secure = policy["ResponseHeadersPolicyConfig"]["SecurityHeadersConfig"]
    assert secure["ContentTypeOptions"] == {"Override": True}
    assert secure["StrictTransportSecurity"]["AccessControlMaxAgeSec"] == 365 * 24 * 3600
    assert secure["ReferrerPolicy"]["ReferrerPolicy"] == "strict-origin-when-cross-origin"
    assert secure["FrameOptions"]["FrameOption"] == "SAMEORIGIN"


def test_what_is_missing_is_a_404(cloud: StackTemplates) -> None:
    [shown] = _distributions(cloud.web)
    answers = {one["ErrorCode"]: one for one in shown["CustomErrorResponses"]}
    assert answers.keys() == {403, 404}
    assert {one["ResponseCode"] for one in answers.values()} == {404}
    assert {one["ResponsePagePath"] for one in answers.values()} == {f"/{names.ERROR_PAGE}"}
    assert all(one["ErrorCachingMinTTL"] <= 60 for one in answers.values())


def _with(**given: str | bool) -> Stack:
    ready()
    from aws_cdk import App
    from aws_cdk.assertions import Template
    from infra.settings import Settings
    from infra.sites import SitesStack

    stack = SitesStack(App(), Settings(domain=DOMAIN, **given))  # type: ignore[arg-type]
    return Stack(Template.from_stack(stack).to_json())


def test_with_a_hosted_zone_one_certificate_and_four_records_serve_all_names() -> None:
    stack = _with(hosted_zone="Z0123456789")
    certificate = stack.only("AWS::CertificateManager::Certificate")
    assert certificate["DomainName"] == "*.example.com"
    assert certificate["SubjectAlternativeNames"] == ["*.edit.example.com"]
    records = {(one["Name"], one["Type"]) for one in stack.of_type("AWS::Route53::RecordSet").values()}
    assert records == {(f"*.{name}", kind) for name in (f"{DOMAIN}.", f"edit.{DOMAIN}.") for kind in ("A", "AAAA")}
    [shown] = _distributions(stack)
    assert shown["Aliases"] == ["*.example.com", "*.edit.example.com"]


def test_a_domain_whose_dns_is_elsewhere_brings_its_certificate() -> None:
    arn = "arn:aws:acm:us-east-1:111122223333:certificate/x"
    stack = _with(certificate=arn)
    [shown] = _distributions(stack)
    assert shown["ViewerCertificate"]["AcmCertificateArn"] == arn
    assert shown["Aliases"] == ["*.example.com", "*.edit.example.com"]
    assert stack.of_type("AWS::Route53::RecordSet") == {}


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("kiln.example.com", "/kiln/public/index.html"),
        ("KILN.example.com", "/kiln/public/index.html"),
        ("kiln.edit.example.com", "/kiln/edit/index.html"),
        ("t-0123456789abcdef--kiln.edit.example.com", "/.previews/kiln/t-0123456789abcdef/index.html"),
        ("t-0123456789abcdef-kiln.edit.example.com", "/t-0123456789abcdef-kiln/edit/index.html"),
        ("my--kiln.edit.example.com", "/my--kiln/edit/index.html"),
    ],
)
def test_a_site_is_found_by_its_name(host: str, found: str) -> None:
    assert _at_the_edge("/", host=host)["uri"] == found


@pytest.mark.parametrize(
    ("project", "stage"),
    [
        ("kiln", "public"),
        ("kiln", "edit"),
        ("a-1", "edit"),
        ("a" * 32, "edit"),
        ("a" * 32, "t-0123456789abcdef"),
        ("-", "t-0123456789abcdef"),
    ],
)
def test_the_edge_reads_the_names_that_replies_show(project: str, stage: str) -> None:
    host = names.site_host(project, stage, DOMAIN)
    store = names.site_store("1", project, stage)
    assert "1" + _at_the_edge("/", host=host)["uri"] == f"{store}index.html".partition("-sites-")[2]
    assert all(len(label) <= 63 for label in host.split("."))


@pytest.mark.parametrize(
    "host",
    ["example.com", "evil.com", "kiln.example.com.evil.com", "a.b.example.com", "x.kiln.edit.example.com",
     "d1.cloudfront.net", "..example.com", "kiln.edit.example.org", "kiln_.example.com"],
)  # fmt: skip
def test_other_names_lead_nowhere(host: str) -> None:
    assert _at_the_edge("/", host=host)["statusCode"] == 404


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
    assert _at_the_edge(asked)["uri"] == f"/kiln/public{found}"


@pytest.mark.parametrize(("asked", "found"), [("/", "/index.html"), ("/about/", "/about/index.html")])
def test_a_page_of_an_own_domain_is_found_in_the_folder_of_its_tenant(asked: str, found: str) -> None:
    headers = {"host": {"value": "www.pottery.example"}}
    event = {"request": {"uri": asked, "querystring": {}, "headers": headers}}
    assert _run("viewer_request_of_tenant", event)["uri"] == found
    event["request"]["uri"] = "/.webordinary/manifest.json"
    assert _run("viewer_request_of_tenant", event)["statusCode"] == 404


@pytest.mark.parametrize("asked", ["/.previews/kiln/t-0123456789abcdef/index.html", "/%2epreviews/kiln/x.html"])
def test_previews_are_reached_by_their_own_names_alone(asked: str) -> None:
    assert _at_the_edge(asked)["statusCode"] == 404


@pytest.mark.parametrize("asked", ["/../other/public/index.html", "/a/../../other/edit/", "/%2e%2e/other/edit/x.html"])
def test_no_path_leads_into_another_project(asked: str) -> None:
    assert _at_the_edge(asked)["statusCode"] == 404


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


@pytest.mark.parametrize(
    ("host", "hidden"),
    [
        ("kiln.edit.example.com", True),
        ("t-0123456789abcdef--kiln.edit.example.com", True),
        ("kiln.example.com", False),
    ],
)
def test_searchers_are_told_to_skip_edit_sites(host: str, hidden: bool) -> None:
    event = {"request": {"headers": {"host": {"value": host}}}, "response": {"headers": {}}}
    told = _run("viewer_response", event)["headers"]
    assert told == ({"x-robots-tag": {"value": "noindex"}} if hidden else {})


def _distributions(stack: Stack) -> list[Resource]:
    """Those that visitors reach by names of ours."""
    made = stack.of_type("AWS::CloudFront::Distribution").values()
    return [one["DistributionConfig"] for one in made if "ConnectionMode" not in one["DistributionConfig"]]


def _tenants(stack: Stack) -> Resource:
    made = [one["DistributionConfig"] for one in stack.of_type("AWS::CloudFront::Distribution").values()]
    [found] = [one for one in made if one.get("ConnectionMode") == "tenant-only"]
    return found


def _at_the_edge(uri: str, query: dict[str, Any] | None = None, host: str = "kiln.example.com") -> dict[str, Any]:
    headers = {"host": {"value": host}}
    return _run("viewer_request", {"request": {"uri": uri, "querystring": query or {}, "headers": headers}})


def _run(function: str, event: dict[str, Any]) -> dict[str, Any]:
    ready()
    from infra.sites import edge_code

    script = f"{edge_code(function, DOMAIN)}\nprocess.stdout.write(JSON.stringify(handler({json.dumps(event)})));"
    done = subprocess.run(["node", "-e", script], capture_output=True, check=True, timeout=200)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
