"""Sites in buckets, and what a worker needs to change and publish them."""
