"""Mails in S3 and DynamoDB, replies through SES."""
