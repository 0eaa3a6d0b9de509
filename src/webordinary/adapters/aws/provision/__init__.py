"""What must exist before anything runs: its shapes, making it, checking it, removing it."""
