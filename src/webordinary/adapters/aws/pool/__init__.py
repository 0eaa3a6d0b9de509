"""The pool on AWS: jobs, claims and costs in DynamoDB, wake-ups in SQS, callbacks to Step Functions."""
