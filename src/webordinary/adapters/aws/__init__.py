"""The ports on AWS: DynamoDB, SQS, S3, Step Functions and SES, through boto3 in threads."""
