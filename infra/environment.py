"""What lambdas and workers are told alike. None of them is told a project: they learn it from their work."""

from __future__ import annotations

from aws_cdk import Aws

from infra.settings import Settings
from webordinary.adapters.aws import names


def common_environment(settings: Settings) -> dict[str, str]:
    """The region is there already, for lambdas by Lambda itself."""
    prefix = {names.PREFIX_VARIABLE: names.PREFIX} if names.PREFIX != names.USUAL_PREFIX else {}
    return {
        **prefix,
        "UNCLAIMED_QUEUE_URL": f"https://sqs.{Aws.REGION}.{Aws.URL_SUFFIX}/{Aws.ACCOUNT_ID}/{names.UNCLAIMED}",
        "OWNERSHIP_TABLE_NAME": names.OWNERSHIP,
        "ACTIVE_JOBS_TABLE": names.JOBS,
        "AWS_ACCOUNT_ID": Aws.ACCOUNT_ID,
        "WEBORDINARY_BACKEND": "aws",
        "WEBORDINARY_DOMAIN": settings.domain,
        "WEBORDINARY_MAILBOX": settings.mailbox,
        "WEBORDINARY_RETENTION_DAYS": str(settings.retention_days),
        "WEBORDINARY_UNADMITTED_MAIL_MB": str(settings.unadmitted_mail_mb),
        "WEBORDINARY_ACKNOWLEDGE_SECONDS": str(settings.acknowledge_seconds),
    }
