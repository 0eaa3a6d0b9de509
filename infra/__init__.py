"""The cloud path as CDK stacks. They name resources and hold no logic; docs/aws.md is the map."""
