"""Tables, queues that all share, and the store. A key's own queues are made when it is onboarded."""

from __future__ import annotations

from aws_cdk import Aws, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.buckets import private_bucket, removal_of
from infra.nag import accept
from infra.settings import Settings
from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import LONG_POLL_SECONDS
from webordinary.adapters.aws.pool.queues import VISIBILITY_SECONDS
from webordinary.adapters.aws.provision.shapes import (
    RETENTION_SECONDS,
    SHARED_QUEUES,
    TABLES,
    Attribute,
    IndexShape,
    QueueShape,
    TableShape,
)

FOLDERS = ("parsed/", "replies/", "build-logs/", "blobs/", "sessions/")
"""What the store forgets after `retention_days`; a thread that is quiet for longer begins a new session."""
LOG_DAYS = 90
_KINDS = {"S": dynamodb.AttributeType.STRING, "N": dynamodb.AttributeType.NUMBER}


class DataStack(Stack):
    """All that must survive."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, "data", stack_name=f"{names.PREFIX}-data", description="WebOrdinary: what must survive")
        self._settings, self._removal = settings, removal_of(settings)
        for name, table in TABLES.items():
            self._table(name, table)
        for queue in SHARED_QUEUES:
            self._queue(queue)
        self._store(self._access_logs())

    def _table(self, name: str, shape: TableShape) -> None:
        table = dynamodb.Table(
            self,
            name,
            table_name=name,
            partition_key=_attribute(shape.hash),
            sort_key=_attribute(shape.range) if shape.range else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=shape.ttl,
            encryption=dynamodb.TableEncryption.DEFAULT,  # AWS's own key; others are billed by what is asked of them
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=self._removal,
        )
        for index in shape.indexes:
            _add_index(table, index)

    def _queue(self, shape: QueueShape) -> None:
        given_up = self.node.try_find_child(shape.dead_letters) if shape.dead_letters else None
        queue = sqs.Queue(
            self,
            shape.name,
            queue_name=shape.name,
            fifo=shape.fifo or None,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.seconds(RETENTION_SECONDS),
            visibility_timeout=Duration.seconds(VISIBILITY_SECONDS),
            receive_message_wait_time=Duration.seconds(LONG_POLL_SECONDS),
            dead_letter_queue=sqs.DeadLetterQueue(queue=given_up, max_receive_count=shape.receives)
            if given_up
            else None,
            removal_policy=RemovalPolicy.DESTROY,  # it only wakes; one left behind could not be adopted again
        )
        if shape.name in (names.DEAD_LETTERS, names.INPUT_DLQ):
            accept(queue, "AwsSolutions-SQS3", "It is itself where given-up messages end; an alarm watches it.")
        if shape.name == names.DEAD_LETTERS:
            ours = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            queue.grant_send_messages(iam.ServicePrincipal("events.amazonaws.com", conditions=ours))

    def _store(self, access_logs: s3.Bucket) -> None:
        private_bucket(
            self,
            "store",
            self._settings,
            bucket_name=names.store_bucket(self._settings.account_id),
            access_logs=access_logs,
            log_folder="store/",
            lifecycle_rules=[
                s3.LifecycleRule(
                    id=folder.rstrip("/"),
                    prefix=folder,
                    expiration=Duration.days(self._settings.retention_days),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
                for folder in FOLDERS
            ],
        )

    def _access_logs(self) -> s3.Bucket:
        forget = s3.LifecycleRule(expiration=Duration.days(LOG_DAYS))
        called = names.access_logs_bucket(self._settings.account_id)
        bucket = private_bucket(self, "access-logs", self._settings, bucket_name=called, lifecycle_rules=[forget])
        bucket.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("logging.s3.amazonaws.com")],
                actions=["s3:PutObject"],
                resources=[bucket.arn_for_objects("*")],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        return bucket


def _attribute(attribute: Attribute) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=attribute.name, type=_KINDS[attribute.kind])


def _add_index(table: dynamodb.Table, index: IndexShape) -> None:
    table.add_global_secondary_index(
        index_name=index.name,
        partition_key=_attribute(index.hash),
        sort_key=_attribute(index.range) if index.range else None,
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
    )
