"""Looks at an account of AWS, one thing each; none changes anything."""
