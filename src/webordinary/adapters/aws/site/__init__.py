"""Sites in buckets, and what a worker on ECS needs to publish them."""
