"""What AWS asks for what we use: one table, without free tiers, discounts and tax. Check before quoting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

REGION = "us-east-1"
AS_OF = date(2026, 4, 1)

SES_IN, SES_OUT, S3, LAMBDA, STATES, SQS, DYNAMODB, COMPUTE = (
    "SES in", "SES out", "S3", "Lambda", "Step Functions", "SQS", "DynamoDB", "compute",
)  # fmt: skip
SERVICES = (SES_IN, SES_OUT, S3, LAMBDA, STATES, SQS, DYNAMODB, COMPUTE)


@dataclass(frozen=True, slots=True)
class Price:
    """So many dollars for so many units, on the bill of a service."""

    service: str
    usd: float
    per: float
    unit: str


PRICES: Mapping[str, Price] = {
    "ses.in": Price(SES_IN, 0.10, 1000, "mail received"),
    "ses.in-chunk": Price(SES_IN, 0.09, 1000, "256 KB received"),
    "ses.out": Price(SES_OUT, 0.10, 1000, "mail sent"),
    "ses.out-gb": Price(SES_OUT, 0.12, 1, "GB of attachments sent"),
    "s3.put": Price(S3, 0.005, 1000, "PUT, COPY, POST or LIST"),
    "s3.get": Price(S3, 0.0004, 1000, "GET and others"),
    "s3.gb-month": Price(S3, 0.023, 1, "GB kept for a month"),
    "lambda.request": Price(LAMBDA, 0.20, 1e6, "invocation"),
    "lambda.gb-second": Price(LAMBDA, 0.0000133334, 1, "GB-second, ARM"),
    "states.transition": Price(STATES, 25.0, 1e6, "state transition"),
    "sqs.standard": Price(SQS, 0.40, 1e6, "request; an empty receive is one"),
    "sqs.fifo": Price(SQS, 0.50, 1e6, "request to a FIFO queue"),
    "dynamodb.write": Price(DYNAMODB, 0.625, 1e6, "write unit, 1 KB, two in a transaction"),
    "dynamodb.read": Price(DYNAMODB, 0.125, 1e6, "read unit, 4 KB, consistent; half of one otherwise"),
    "ec2.vcpu-hour": Price(COMPUTE, 0.0408, 1, "vCPU-hour with 4 GB, ARM (m7g)"),
    "ec2.gb-month": Price(COMPUTE, 0.08, 1, "GB of disk for a month (gp3)"),
    "fargate.vcpu-hour": Price(COMPUTE, 0.03238, 1, "vCPU-hour, ARM"),
    "fargate.gb-hour": Price(COMPUTE, 0.00356, 1, "GB-hour of memory, ARM"),
}
LEFT_OUT = "CloudFront and all that visitors of the sites cause, logs and metrics, network, tax, the agents' models"


def price(usage: Mapping[str, float]) -> dict[str, float]:
    """Dollars by service for what was used, by the names above; what costs nothing is not named there."""
    bill: defaultdict[str, float] = defaultdict(float)
    for meter, units in usage.items():
        if known := PRICES.get(meter):
            bill[known.service] += units * known.usd / known.per
    return {service: bill[service] for service in SERVICES if service in bill}
