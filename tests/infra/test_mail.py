"""Mail in and out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infra.templates import ACCOUNT, StackTemplates, plain, synthesise
from webordinary.adapters.aws import names

pytestmark = pytest.mark.xdist_group("infra")


def test_ses_keeps_every_mail_of_our_domain_in_the_raw_bucket(cloud: StackTemplates) -> None:
    rule = cloud.mail.only("AWS::SES::ReceiptRule")["Rule"]
    assert rule["Enabled"] is True
    assert rule["ScanEnabled"] is True
    assert rule["Recipients"] == ["mail.example.com"]
    [action] = rule["Actions"]
    assert action["S3Action"]["ObjectKeyPrefix"] == "raw/"
    [bucket] = cloud.mail.of_type("AWS::S3::Bucket")
    assert action["S3Action"]["BucketName"] == {"Ref": bucket}


def test_raw_mails_go_after_the_retention_and_unadmitted_ones_after_three_days(cloud: StackTemplates) -> None:
    bucket = cloud.mail.only("AWS::S3::Bucket")
    assert bucket["BucketName"] == names.raw_bucket(ACCOUNT)
    all_of_them, unadmitted = bucket["LifecycleConfiguration"]["Rules"]
    assert all_of_them["ExpirationInDays"] == 30
    assert "Prefix" not in all_of_them
    assert unadmitted["ExpirationInDays"] == 3
    assert unadmitted["TagFilters"] == [{"Key": "admitted", "Value": "no"}]


def test_a_mail_in_the_bucket_calls_the_intake(cloud: StackTemplates) -> None:
    bucket = cloud.mail.only("AWS::S3::Bucket")
    [configured] = bucket["NotificationConfiguration"]["LambdaConfigurations"]
    assert configured["Event"] == "s3:ObjectCreated:*"
    assert configured["Filter"] == {"S3Key": {"Rules": [{"Name": "prefix", "Value": "raw/"}]}}
    assert plain(configured["Function"]).endswith(f":function:{names.INTAKE}")


def test_only_our_own_bucket_may_call_the_intake(cloud: StackTemplates) -> None:
    [permission] = [
        made
        for made in cloud.mail.of_type("AWS::Lambda::Permission").values()
        if made["Principal"] == "s3.amazonaws.com"
    ]
    assert permission["FunctionName"] == names.INTAKE
    assert permission["SourceAccount"] == {"Ref": "AWS::AccountId"}
    assert plain(permission["SourceArn"]).endswith(f":::{names.raw_bucket('<AWS::AccountId>')}")


def test_only_our_own_receipt_rule_may_write_mails(cloud: StackTemplates) -> None:
    policy = cloud.mail.only("AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    [allowed] = [statement for statement in policy if statement["Effect"] == "Allow"]
    assert allowed["Principal"] == {"Service": "ses.amazonaws.com"}
    assert allowed["Action"] == "s3:PutObject"
    assert plain(allowed["Resource"]).endswith("/raw/*")
    said = allowed["Condition"]["StringEquals"]
    assert said["aws:SourceAccount"] == {"Ref": "AWS::AccountId"}
    rule = cloud.mail.only("AWS::SES::ReceiptRule")["Rule"]["Name"]
    assert plain(said["aws:SourceArn"]).endswith(f":receipt-rule-set/{names.RECEIPT_RULES}:receipt-rule/{rule}")


def test_only_our_own_configuration_set_tells_of_bounces(cloud: StackTemplates) -> None:
    policy = cloud.mail.only("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    [allowed] = [statement for statement in policy if statement["Effect"] == "Allow"]
    [(name, _)] = cloud.mail.of_type("AWS::SES::ConfigurationSet").items()
    assert f":configuration-set/<{name}>" in str(plain(allowed["Condition"]["StringEquals"]["AWS:SourceArn"]))


def test_bounces_and_complaints_are_heard(cloud: StackTemplates) -> None:
    told = cloud.mail.only("AWS::SES::ConfigurationSetEventDestination")["EventDestination"]
    assert {"bounce", "complaint"} <= set(told["MatchingEventTypes"])
    assert told["Enabled"] is True
    subscribed = cloud.mail.only("AWS::SNS::Subscription")
    assert plain(subscribed["Endpoint"]).endswith(f":function:{names.BOUNCES}")
    callers = cloud.mail.of_type("AWS::Lambda::Permission").values()
    assert "sns.amazonaws.com" in {made["Principal"] for made in callers}
    assert cloud.mail.only("AWS::SES::ConfigurationSet")["Name"] == names.CONFIGURATION_SET


def test_mail_goes_out_in_the_name_of_our_mailbox_only(cloud: StackTemplates) -> None:
    """In the sandbox SES authorises the recipient's identity as well (cloudposse/terraform-aws-ses#40)."""
    assert cloud.mail.only("AWS::SES::EmailIdentity")["EmailIdentity"] == "mail.example.com"
    sending = [
        statement
        for role in cloud.lambdas.of_type("AWS::IAM::Role")
        for statement in cloud.lambdas.statements(role)
        if "ses:SendEmail" in statement["Action"]
    ]
    assert sending
    for statement in sending:
        assert statement["Condition"] == {"StringEquals": {"ses:FromAddress": "edit@mail.example.com"}}
        resources = {str(plain(resource)).rpartition(":")[2] for resource in statement["Resource"]}
        assert resources == {"identity/*", f"configuration-set/{names.CONFIGURATION_SET}"}


def test_an_identity_that_exists_already_is_left_alone(tmp_path: Path) -> None:
    """CloudFormation could not make AWS::SES::EmailIdentity a second time: AlreadyExists."""
    cloud = synthesise(tmp_path, identity="existing")
    assert not cloud.mail.of_type("AWS::SES::EmailIdentity")
    assert cloud.mail.only("AWS::SES::ConfigurationSet")["Name"] == names.CONFIGURATION_SET


def test_our_rule_stands_among_others_that_are_active(tmp_path: Path) -> None:
    """SES, SetActiveReceiptRuleSet: one set of rules is active in a region; a second deployment adds its rule to it."""
    cloud = synthesise(tmp_path, receipt_rules="theirs")
    assert not cloud.mail.of_type("AWS::SES::ReceiptRuleSet")
    made = cloud.mail.only("AWS::SES::ReceiptRule")
    assert (made["RuleSetName"], made["Rule"]["Name"]) == ("theirs", f"{names.PREFIX}-keep")
    policy = cloud.mail.only("AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    [allowed] = [statement for statement in policy if statement["Effect"] == "Allow"]
    source = plain(allowed["Condition"]["StringEquals"]["aws:SourceArn"])
    assert source.endswith(f":receipt-rule-set/theirs:receipt-rule/{names.PREFIX}-keep")
