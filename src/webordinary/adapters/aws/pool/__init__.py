"""Who works for whom: jobs and claims in DynamoDB, wake-ups in SQS, answers to Step Functions."""
