"""Customers' own domains: each is a tenant of one distribution, with a certificate that CloudFront gets and renews.

That takes three steps, each once the one before is done: DNS leads the domain to CloudFront, which refuses the tenant
until then (aws/aws-sdk-php#3129); the certificate is issued; it is attached to the tenant, which CloudFront does not do
by itself (domits1/Domits#3214).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import code_of, translated
from webordinary.model.errors import Permanent, Transient
from webordinary.model.projects import DomainFinding

PROJECT = "project"
"""The parameter of a tenant that names whose site it shows."""
OWN_DOMAINS, OWN_DOMAINS_GROUP, OWN_DOMAINS_ADDRESS = "OwnDomains", "OwnDomainsGroup", "OwnDomainsAddress"
"""Outputs of the stack: ids of the distribution and of its connection group, and the name that domains point to."""
MOST_LOOKS = 120
_WAITS = "pending-validation"
_AGAIN = "say `webordinary project domain add` again"


@dataclass(frozen=True, slots=True)
class _Distribution:
    distribution: str
    group: str
    address: str


class TenantDomains:
    """See OwnDomains."""

    def __init__(self, client_of: Callable[[str], Any]) -> None:
        self._client_of = client_of

    def show(self, project_id: str, domain: str) -> DomainFinding:
        edge = self._required_edge()
        if found := self._tenant(domain):
            return self._go_on(edge, project_id, domain, *found)
        if not self._make(edge, project_id, domain):
            words = f"{domain} does not lead to CloudFront yet: set its record in DNS, then {_AGAIN}"
            return DomainFinding(domain, False, words, _records(domain, edge.address))
        return DomainFinding(domain, False, f"AWS makes a certificate for {domain}: {_AGAIN} in some minutes")

    def look(self, project_id: str, domain: str) -> DomainFinding:
        edge = self._required_edge()
        found = self._tenant(domain)
        if found is None:
            words = f"{domain} shows nothing yet: {_AGAIN}"
            return DomainFinding(domain, False, words, _records(domain, edge.address))
        _check_whose(found[0], edge, project_id, domain)
        return _finding(found[0], project_id, domain, _AGAIN)

    def hide(self, project_id: str, domain: str) -> str:
        edge = self._edge()
        found = self._tenant(domain)
        if edge is None or found is None:
            return ""
        _check_whose(found[0], edge, project_id, domain)
        if self._end(*found):
            return ""
        return f"CloudFront forgets {domain} in some minutes: say this again then"

    def hide_all(self, report: Callable[[str], None], pause: Callable[[], None]) -> None:
        """Remove every tenant: the distribution cannot be removed before. Raises Transient if that takes too long."""
        edge = self._edge()
        for _ in range(MOST_LOOKS if edge else 0):
            left = self._tenants_of(edge.distribution) if edge else []
            if not left:
                return
            for tenant in left:
                with translated(f"looking at {tenant}"):
                    found = self._cloudfront.get_distribution_tenant(Identifier=tenant)
                self._end(found["DistributionTenant"], found["ETag"])
            report(f"{len(left)} domains of customers are being removed")
            pause()
        if edge:
            raise Transient("CloudFront still has domains of customers: destroy again in some minutes")

    @property
    def _cloudfront(self) -> Any:  # noqa: ANN401
        return self._client_of("cloudfront")

    def _required_edge(self) -> _Distribution:
        if edge := self._edge():
            return edge
        words = f"the stack {names.WEB_STACK} shows no domains of customers"
        raise Permanent(f"{words}: run `webordinary aws deploy`, without `-c own_domains=false`")

    def _edge(self) -> _Distribution | None:
        with translated(f"looking at the stack {names.WEB_STACK}"):
            try:
                [stack] = self._client_of("cloudformation").describe_stacks(StackName=names.WEB_STACK)["Stacks"]
            except ClientError as problem:
                if code_of(problem) != "ValidationError":  # there is no such stack
                    raise
                return None
        outputs = {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])}
        if OWN_DOMAINS not in outputs:
            return None
        return _Distribution(outputs[OWN_DOMAINS], outputs[OWN_DOMAINS_GROUP], outputs[OWN_DOMAINS_ADDRESS])

    def _tenant(self, domain: str) -> tuple[Mapping[str, Any], str] | None:
        with translated(f"asking CloudFront about {domain}"):
            try:
                found = self._cloudfront.get_distribution_tenant_by_domain(Domain=domain)
            except ClientError as problem:
                if code_of(problem) != "EntityNotFound":
                    raise
                return None
        return found["DistributionTenant"], found["ETag"]

    def _tenants_of(self, distribution: str) -> list[str]:
        with translated("listing the domains of customers"):
            pages = self._cloudfront.get_paginator("list_distribution_tenants").paginate(
                AssociationFilter={"DistributionId": distribution}
            )
            return [one["Id"] for page in pages for one in page.get("DistributionTenantList", [])]

    def _make(self, edge: _Distribution, project_id: str, domain: str) -> bool:
        """False if DNS does not lead it to CloudFront."""
        with translated(f"adding {domain} to CloudFront"):
            try:
                self._cloudfront.create_distribution_tenant(
                    DistributionId=edge.distribution,
                    Name=domain,
                    Domains=[{"Domain": domain}],
                    Parameters=[{"Name": PROJECT, "Value": project_id}],
                    ConnectionGroupId=edge.group,
                    ManagedCertificateRequest={"ValidationTokenHost": "cloudfront", "PrimaryDomainName": domain},
                    Enabled=True,
                )
            except ClientError as problem:
                if code_of(problem) == "CNAMEAlreadyExists":
                    words = f"another distribution of CloudFront has {domain}: remove it there first"
                    raise Permanent(words) from problem
                if code_of(problem) != "InvalidArgument" or "ownership" not in str(problem):
                    raise
                return False
        return True

    def _go_on(
        self, edge: _Distribution, project_id: str, domain: str, tenant: Mapping[str, Any], etag: str
    ) -> DomainFinding:
        _check_whose(tenant, edge, project_id, domain)
        if _is_shown(tenant, domain):
            return _finding(tenant, project_id, domain, "")
        with translated(f"asking CloudFront for the certificate of {domain}"):
            asked = self._cloudfront.get_managed_certificate_details(Identifier=tenant["Id"])
        certificate = asked["ManagedCertificateDetails"]
        status, arn = certificate.get("CertificateStatus", _WAITS), certificate.get("CertificateArn", "")
        if status == "issued":
            if _certificate(tenant) != arn or not tenant.get("Enabled"):
                tenant, _ = self._change(tenant, etag, certificate=arn, enabled=True)
            return _finding(tenant, project_id, domain, f"CloudFront tells its edges: {_AGAIN} in some minutes")
        if status == _WAITS:
            words = f"AWS makes a certificate for {domain}, once its record in DNS is right: {_AGAIN} in some minutes"
            return DomainFinding(domain, False, words, _records(domain, edge.address))
        words = f"AWS made no certificate for {domain} ({status}): say `webordinary project domain remove`, then add"
        return DomainFinding(domain, False, words, _records(domain, edge.address))

    def _change(
        self, tenant: Mapping[str, Any], etag: str, *, certificate: str, enabled: bool
    ) -> tuple[Mapping[str, Any], str]:
        """All that is said of a tenant is said again: an update may replace the whole."""
        given: dict[str, Any] = {}
        if certificate:
            given["Customizations"] = {**tenant.get("Customizations", {}), "Certificate": {"Arn": certificate}}
        with translated(f"changing {tenant['Name']} of CloudFront"):
            done = self._cloudfront.update_distribution_tenant(
                Id=tenant["Id"],
                IfMatch=etag,
                DistributionId=tenant["DistributionId"],
                Domains=[{"Domain": one["Domain"]} for one in tenant["Domains"]],
                Parameters=tenant.get("Parameters", []),
                ConnectionGroupId=tenant["ConnectionGroupId"],
                Enabled=enabled,
                **given,
            )
        return done["DistributionTenant"], done["ETag"]

    def _end(self, tenant: Mapping[str, Any], etag: str) -> bool:
        """Whether it is gone: a tenant must be disabled everywhere before it can be deleted."""
        if tenant.get("Enabled"):
            tenant, etag = self._change(tenant, etag, certificate=_certificate(tenant), enabled=False)
        with translated(f"removing {tenant['Name']} from CloudFront"):
            try:
                self._cloudfront.delete_distribution_tenant(Id=tenant["Id"], IfMatch=etag)
            except ClientError as problem:
                if code_of(problem) not in ("ResourceNotDisabled", "PreconditionFailed"):
                    raise
                return False
        return True


def _finding(tenant: Mapping[str, Any], project_id: str, domain: str, otherwise: str) -> DomainFinding:
    if _is_shown(tenant, domain):
        return DomainFinding(domain, True, f"{domain} shows {project_id}")
    return DomainFinding(domain, False, f"{domain} is not shown yet: {otherwise}")


def _is_shown(tenant: Mapping[str, Any], domain: str) -> bool:
    domains = {one["Domain"]: one.get("Status") for one in tenant["Domains"]}
    return bool(tenant.get("Enabled")) and domains.get(domain) == "active"


def _certificate(tenant: Mapping[str, Any]) -> str:
    return str(tenant.get("Customizations", {}).get("Certificate", {}).get("Arn", ""))


def _check_whose(tenant: Mapping[str, Any], edge: _Distribution, project_id: str, domain: str) -> None:
    if tenant["DistributionId"] != edge.distribution:
        raise Permanent(f"another distribution of this account has {domain}: remove it there first")
    shows = {one["Name"]: one["Value"] for one in tenant.get("Parameters", [])}.get(PROJECT, "")
    if shows != project_id:
        raise Permanent(f"{domain} shows {shows} already: remove it there first")


def _records(domain: str, address: str) -> tuple[str, ...]:
    if domain.count(".") > 1:
        return (f"{domain}.  CNAME  {address}.",)
    other = f"or, if your DNS has no such record: take www.{domain}, and let {domain} redirect to it"
    return f"{domain}.  ALIAS (or ANAME)  {address}.", other
