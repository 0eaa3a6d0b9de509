"""The generic worker process: slots, lease renewer, one job from start to settle."""
