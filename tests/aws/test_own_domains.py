"""Customers' own domains on AWS, against recorded answers of CloudFront: no emulator has tenants."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.recorded import Recorded  # noqa: E402
from webordinary.adapters.aws import names  # noqa: E402
from webordinary.adapters.aws.site.own_domains import (  # noqa: E402
    OWN_DOMAINS,
    OWN_DOMAINS_ADDRESS,
    OWN_DOMAINS_GROUP,
    TenantDomains,
)
from webordinary.adapters.sqlite.database import MemoryDatabase  # noqa: E402
from webordinary.adapters.sqlite.mails import SqliteDirectory  # noqa: E402
from webordinary.model.errors import Permanent  # noqa: E402
from webordinary.model.projects import DomainFinding, Project  # noqa: E402
from webordinary.operations.site_settings import show_domain  # noqa: E402

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DOMAIN, ARN = "www.pottery.example", "arn:aws:acm:us-east-1:111122223333:certificate/1"
ADDRESS = "d111111abcdef8.cloudfront.net"
OUTPUTS = {OWN_DOMAINS: "E1", OWN_DOMAINS_GROUP: "cg_1", OWN_DOMAINS_ADDRESS: ADDRESS}
RECORD = (f"{DOMAIN}.  CNAME  {ADDRESS}.",)


def tenant(
    status: str = "inactive", *, project: str = "kiln", certificate: str = "", enabled: bool = True, of: str = "E1"
) -> dict[str, Any]:
    return {
        "Id": "dt_1", "DistributionId": of, "Name": DOMAIN, "ConnectionGroupId": "cg_1", "Enabled": enabled,
        "Domains": [{"Domain": DOMAIN, "Status": status}], "Parameters": [{"Name": "project", "Value": project}],
        **({"Customizations": {"Certificate": {"Arn": certificate}}} if certificate else {}),
    }  # fmt: skip


class DomainAccount:
    """An operator who adds a domain, and CloudFront as it answers to that."""

    def __init__(self) -> None:
        self.recorded = Recorded()
        self.domains = TenantDomains(self.recorded)
        self.directory = SqliteDirectory(MemoryDatabase())
        self.directory.add_project(Project("kiln", "repo"), NOON)

    def deployed(self) -> None:
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in OUTPUTS.items()]
        stack = {"StackName": names.WEB_STACK, "StackStatus": "CREATE_COMPLETE", "CreationTime": NOON}
        stacks = {"Stacks": [{**stack, "Outputs": outputs}]}
        self.recorded.answers("cloudformation", "describe_stacks", stacks, {"StackName": names.WEB_STACK})

    def knows(self, found: dict[str, Any] | None) -> None:
        self.deployed()
        if found is None:
            self.recorded.refuses("cloudfront", "get_distribution_tenant_by_domain", "EntityNotFound")
        else:
            answer = {"DistributionTenant": found, "ETag": "e1"}
            self.recorded.answers("cloudfront", "get_distribution_tenant_by_domain", answer, {"Domain": DOMAIN})

    def certificate(self, status: str) -> None:
        details = {"ManagedCertificateDetails": {"CertificateArn": ARN, "CertificateStatus": status}}
        self.recorded.answers("cloudfront", "get_managed_certificate_details", details, {"Identifier": "dt_1"})

    def updates(self, after: dict[str, Any], **given: object) -> None:
        asked = {
            "Id": "dt_1", "IfMatch": "e1", "DistributionId": "E1", "ConnectionGroupId": "cg_1",
            "Domains": [{"Domain": DOMAIN}], "Parameters": [{"Name": "project", "Value": "kiln"}], **given,
        }  # fmt: skip
        answer = {"DistributionTenant": after, "ETag": "e2"}
        self.recorded.answers("cloudfront", "update_distribution_tenant", answer, asked)

    def add(self) -> DomainFinding:
        [project] = self.directory.projects()
        found = show_domain(self.directory, self.domains, project, DOMAIN, ["example.com"])
        self.recorded.done()
        return found

    @property
    def named(self) -> tuple[str, ...]:
        return self.directory.projects()[0].domains


@pytest.fixture
def world() -> DomainAccount:
    return DomainAccount()


def test_dns_comes_first_and_the_operator_is_told_the_record(world: DomainAccount) -> None:
    """aws/aws-sdk-php#3129: CreateDistributionTenant refuses a domain that does not lead to CloudFront."""
    world.knows(None)
    words = "The provided Domain Name is not valid. Could not verify Domain Name ownership."
    world.recorded.refuses("cloudfront", "create_distribution_tenant", "InvalidArgument", words)
    found = world.add()
    assert (found.points_here, found.records) == (False, RECORD)
    assert "set its record in DNS" in found.words
    assert world.named == ()


def test_the_tenant_of_a_domain_names_its_project_and_asks_for_a_certificate(world: DomainAccount) -> None:
    """domits1/Domits#3213: with the default validation host a domain that has no other server waits for ever."""
    world.knows(None)
    asked = {
        "DistributionId": "E1", "Name": DOMAIN, "Domains": [{"Domain": DOMAIN}], "ConnectionGroupId": "cg_1",
        "Parameters": [{"Name": "project", "Value": "kiln"}], "Enabled": True,
        "ManagedCertificateRequest": {"ValidationTokenHost": "cloudfront", "PrimaryDomainName": DOMAIN},
    }  # fmt: skip
    answer = {"DistributionTenant": tenant(), "ETag": "e1"}
    world.recorded.answers("cloudfront", "create_distribution_tenant", answer, asked)
    assert "makes a certificate" in world.add().words
    assert world.named == ()


def test_an_issued_certificate_is_attached(world: DomainAccount) -> None:
    """domits1/Domits#3214: without a second update the domain stays inactive for ever."""
    world.knows(tenant())
    world.certificate("issued")
    world.updates(tenant(certificate=ARN), Customizations={"Certificate": {"Arn": ARN}}, Enabled=True)
    found = world.add()
    assert "tells its edges" in found.words
    assert world.named == ()


def test_a_domain_is_named_in_replies_once_visitors_see_the_site_there(world: DomainAccount) -> None:
    world.knows(tenant("active", certificate=ARN))
    assert world.add().points_here
    assert world.named == (DOMAIN,)


@pytest.mark.parametrize(
    ("status", "words"), [("pending-validation", "once its record"), ("validation-timed-out", "domain remove`, then")]
)
def test_a_certificate_that_is_not_there_is_told_with_what_to_do(world: DomainAccount, status: str, words: str) -> None:
    world.knows(tenant())
    world.certificate(status)
    found = world.add()
    assert words in found.words
    assert found.records == RECORD


@pytest.mark.parametrize(
    ("found", "words"),
    [(tenant(project="mill"), "shows mill already"), (tenant(of="E2"), "another distribution of this account")],
)
def test_a_domain_of_somebody_else_is_left_alone(world: DomainAccount, found: dict[str, Any], words: str) -> None:
    world.knows(found)
    with pytest.raises(Permanent, match=words):
        world.add()
    world.knows(found)
    with pytest.raises(Permanent, match=words):
        world.domains.hide("kiln", DOMAIN)


def test_a_domain_that_another_account_shows_is_refused_with_words(world: DomainAccount) -> None:
    world.knows(None)
    world.recorded.refuses("cloudfront", "create_distribution_tenant", "CNAMEAlreadyExists")
    with pytest.raises(Permanent, match="another distribution of CloudFront"):
        world.add()


def test_looking_changes_nothing(world: DomainAccount) -> None:
    world.knows(tenant())
    assert "not shown yet" in world.domains.look("kiln", DOMAIN).words
    world.knows(None)
    assert world.domains.look("kiln", DOMAIN).records == RECORD
    world.recorded.done()


def test_a_domain_is_dark_at_once_and_goes_when_all_edges_know(world: DomainAccount) -> None:
    """CloudFront, DeleteDistributionTenant: it fails until the tenant is disabled."""
    world.knows(tenant("active", certificate=ARN))
    world.updates(tenant(certificate=ARN, enabled=False), Customizations={"Certificate": {"Arn": ARN}}, Enabled=False)
    world.recorded.refuses("cloudfront", "delete_distribution_tenant", "ResourceNotDisabled")
    assert "say this again" in world.domains.hide("kiln", DOMAIN)
    world.knows(tenant(enabled=False))
    world.recorded.answers("cloudfront", "delete_distribution_tenant", {}, {"Id": "dt_1", "IfMatch": "e1"})
    assert world.domains.hide("kiln", DOMAIN) == ""
    world.knows(None)
    assert world.domains.hide("kiln", DOMAIN) == ""
    world.recorded.done()


def test_a_removal_of_all_waits_until_no_tenant_is_left(world: DomainAccount) -> None:
    said: list[str] = []
    summary = {
        "Id": "dt_1", "DistributionId": "E1", "Name": DOMAIN, "Arn": ARN, "Domains": [{"Domain": DOMAIN}],
        "CreatedTime": NOON, "LastModifiedTime": NOON, "ETag": "e1",
    }  # fmt: skip
    recorded = world.recorded
    world.deployed()
    for enabled in (True, False):
        recorded.answers("cloudfront", "list_distribution_tenants", {"DistributionTenantList": [summary]})
        found = {"DistributionTenant": tenant(enabled=enabled), "ETag": "e1"}
        recorded.answers("cloudfront", "get_distribution_tenant", found, {"Identifier": "dt_1"})
        if enabled:
            dark = {"DistributionTenant": tenant(enabled=False), "ETag": "e2"}
            recorded.answers("cloudfront", "update_distribution_tenant", dark)
            recorded.refuses("cloudfront", "delete_distribution_tenant", "ResourceNotDisabled")
        else:
            recorded.answers("cloudfront", "delete_distribution_tenant", {})
    recorded.answers("cloudfront", "list_distribution_tenants", {"DistributionTenantList": []})
    world.domains.hide_all(said.append, lambda: None)
    recorded.done()
    assert said == ["1 domains of customers are being removed"] * 2


def test_a_deployment_without_own_domains_says_so() -> None:
    recorded = Recorded()
    recorded.refuses("cloudformation", "describe_stacks", "ValidationError", "does not exist")
    with pytest.raises(Permanent, match="webordinary aws deploy"):
        TenantDomains(recorded).show("kiln", DOMAIN)
