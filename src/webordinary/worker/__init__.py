"""The generic worker process: slots, lease keeper, one job from start to settle."""
