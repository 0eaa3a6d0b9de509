"""Who works for whom: jobs, claims and costs in DynamoDB, wake-ups in SQS, answers to Step Functions."""
