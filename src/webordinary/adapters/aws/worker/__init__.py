"""A worker as a task of ECS: its name there, and protection while it is busy."""
