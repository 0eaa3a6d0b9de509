"""Mail in and out: SES receives for our domain and puts each mail into a bucket; it sends, and tells of bounces."""

from __future__ import annotations

from aws_cdk import Aws, CfnOutput, Duration, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ses as ses
from aws_cdk import aws_ses_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra import arns
from infra.buckets import private_bucket
from infra.nag import accept
from infra.settings import Settings
from webordinary.adapters.aws import names
from webordinary.adapters.aws.mail.mails import UNADMITTED_DAYS, UNADMITTED_TAG
from webordinary.adapters.aws.provision.shapes import RAW_PREFIX

WRITES_MAIL = 1
"""Index of the statement in the bucket's policy that lets SES write; the first one denies plain HTTP."""


class MailStack(Stack):
    """The receipt rules must be made the active ones once: `webordinary aws deploy` does, docs/aws.md says how."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, "mail", stack_name=f"{names.PREFIX}-mail", description="WebOrdinary: mail in and out")
        self._settings = settings
        bucket = self._raw_bucket()
        self._start_intake(bucket)
        self._receive(bucket)
        self._send()

    def _raw_bucket(self) -> s3.Bucket:
        bucket = private_bucket(
            self,
            "raw",
            self._settings,
            bucket_name=names.raw_bucket(self._settings.account_id),
            access_logs=s3.Bucket.from_bucket_name(
                self, "access-logs", names.access_logs_bucket(self._settings.account_id)
            ),
            log_folder="mail/",
            lifecycle_rules=[
                s3.LifecycleRule(id="forget", expiration=Duration.days(self._settings.retention_days)),
                s3.LifecycleRule(
                    id="forget-unadmitted",
                    tag_filters=dict([UNADMITTED_TAG]),
                    expiration=Duration.days(UNADMITTED_DAYS),
                ),
            ],
        )
        accept(bucket, "@aws-cdk/aws-s3:accessLogsPolicyNotAdded", "That bucket allows it to all of ours.")
        return bucket

    def _start_intake(self, bucket: s3.Bucket) -> None:
        allowed = lambda_.CfnPermission(
            self,
            "bucket-calls-intake",
            action="lambda:InvokeFunction",
            function_name=names.INTAKE,
            principal="s3.amazonaws.com",
            source_account=Aws.ACCOUNT_ID,
            source_arn=arns.bucket(names.raw_bucket(Aws.ACCOUNT_ID)),  # by name: the bucket waits for this
        )
        # Said in the bucket itself: CDK's own way is one more lambda that may change every bucket.
        made = bucket.node.default_child
        made.add_property_override(
            "NotificationConfiguration.LambdaConfigurations",
            [
                {
                    "Event": "s3:ObjectCreated:*",
                    "Filter": {"S3Key": {"Rules": [{"Name": "prefix", "Value": RAW_PREFIX}]}},
                    "Function": arns.function(names.INTAKE),
                }
            ],
        )
        made.add_resource_dependency(allowed)

    def _receive(self, bucket: s3.Bucket) -> None:
        """By rules of our own, or with one rule among others: SES receives by one set of rules in a region."""
        called, ours = self._settings.receipt_rules, self._settings.receipt_rules == names.RECEIPT_RULES
        rule = "keep" if ours else f"{names.PREFIX}-keep"
        rules: ses.IReceiptRuleSet = (
            ses.ReceiptRuleSet(self, "rules", receipt_rule_set_name=called)
            if ours
            else ses.ReceiptRuleSet.from_receipt_rule_set_name(self, "rules", called)
        )
        rules.add_rule(
            "keep",
            receipt_rule_name=rule,
            recipients=[self._settings.mail_domain],
            scan_enabled=True,
            tls_policy=ses.TlsPolicy.OPTIONAL,
            actions=[actions.S3(bucket=bucket, object_key_prefix=RAW_PREFIX)],
        )
        # CDK's action lets every rule of the account write; only ours may.
        condition = f"PolicyDocument.Statement.{WRITES_MAIL}.Condition.StringEquals.aws:SourceArn"
        bucket.policy.node.default_child.add_property_override(condition, arns.receipt_rule(called, rule))
        CfnOutput(self, "MX", value=f"10 inbound-smtp.{Aws.REGION}.{Aws.URL_SUFFIX}")

    def _send(self) -> None:
        told = ses.ConfigurationSet(
            self,
            "sending",
            configuration_set_name=names.CONFIGURATION_SET,
            reputation_metrics=True,
            suppression_reasons=ses.SuppressionReasons.BOUNCES_AND_COMPLAINTS,
        )
        told.add_event_destination(
            "bounces",
            destination=ses.EventDestination.sns_topic(self._bounces()),
            events=[ses.EmailSendingEvent.BOUNCE, ses.EmailSendingEvent.COMPLAINT, ses.EmailSendingEvent.REJECT],
        )
        if self._settings.identity == "made":  # a domain that was verified before is used as it is
            ses.EmailIdentity(
                self,
                "identity",
                identity=ses.Identity.domain(self._settings.mail_domain),
                configuration_set=told,
                mail_from_domain=f"bounce.{self._settings.mail_domain}",
            )

    def _bounces(self) -> sns.Topic:
        # The event destination adds the permission to publish, for its configuration set only.
        topic = sns.Topic(self, "bounces", topic_name=names.BOUNCES, enforce_ssl=True)
        listener = lambda_.Function.from_function_attributes(
            self, "listener", function_arn=arns.function(names.BOUNCES), same_environment=True
        )
        topic.add_subscription(subscriptions.LambdaSubscription(listener))
        return topic
