"""The tables and buckets of mail on the emulator, with names that no other test knows."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import boto3

from tests.aws.emulator import REGION
from webordinary.adapters.aws import names
from webordinary.adapters.aws.blobs import Bodies, S3Blobs
from webordinary.adapters.aws.clients import Clients, connect
from webordinary.adapters.aws.dynamo import Dynamo
from webordinary.adapters.aws.mail.directory import AwsDirectory, AwsThreads
from webordinary.adapters.aws.mail.mails import AwsAttachmentManifest, AwsParsedMails, AwsRawMails, MailItems
from webordinary.adapters.aws.mail.outbox import AwsOutbox
from webordinary.adapters.aws.provision.shapes import create_tables

TABLES = (names.MAILS, names.THREADS, names.PROJECTS)


@lru_cache(maxsize=8)
def clients_of(endpoint: str) -> Clients:
    """As a lambda makes them, with credentials that nobody checks."""
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)
    return connect(REGION, endpoint, session)


class MailTables:
    """Fresh tables and buckets; what is asked for by a method is as a process of its own sees it."""

    def __init__(self, endpoint: str) -> None:
        self.suffix = f"-{secrets.token_hex(4)}"
        self.clients = clients_of(endpoint)
        self.raw_bucket, self.store_bucket = f"raw{self.suffix}", f"store{self.suffix}"
        create_tables(self.clients, TABLES, self.suffix)
        for bucket in (self.raw_bucket, self.store_bucket):
            self.clients.s3.create_bucket(Bucket=bucket)

    def through(self, endpoint: str) -> MailTables:
        """The same world, reached by another way."""
        other = MailTables.__new__(MailTables)
        other.suffix, other.clients = self.suffix, clients_of(endpoint)
        other.raw_bucket, other.store_bucket = self.raw_bucket, self.store_bucket
        return other

    @property
    def dynamo(self) -> Dynamo:
        return Dynamo(self.clients.dynamodb)

    def items(self) -> MailItems:
        return MailItems(self.dynamo, lambda: datetime.now(UTC), names.MAILS + self.suffix)

    def raw_mails(self, items: MailItems | None = None) -> AwsRawMails:
        return AwsRawMails(self.clients.s3, self.raw_bucket, items or self.items())

    def parsed_mails(self, items: MailItems | None = None) -> AwsParsedMails:
        return AwsParsedMails(items or self.items(), Bodies(self.clients.s3, self.store_bucket, "parsed"))

    def manifest(self) -> AwsAttachmentManifest:
        return AwsAttachmentManifest(self.items())

    def blobs(self) -> S3Blobs:
        return S3Blobs(self.clients.s3, self.store_bucket)

    def threads(self) -> AwsThreads:
        return AwsThreads(self.dynamo, lambda: datetime.now(UTC), names.THREADS + self.suffix)

    def directory(self) -> AwsDirectory:
        return AwsDirectory(self.clients.dynamodb, self.dynamo, names.PROJECTS + self.suffix)

    def outbox(self, patience: timedelta = timedelta(0)) -> AwsOutbox:
        return AwsOutbox(self.items(), Bodies(self.clients.s3, self.store_bucket, "replies"), self.threads(), patience)

    def put_raw(self, ses_id: str, raw: bytes) -> str:
        """As SES does it; returns the key."""
        key = f"raw/{ses_id}"
        self.clients.s3.put_object(Bucket=self.raw_bucket, Key=key, Body=raw)
        return key

    def objects(self, bucket: str) -> list[str]:
        listed = self.clients.s3.list_objects_v2(Bucket=bucket).get("Contents", [])
        return [one["Key"] for one in listed]
