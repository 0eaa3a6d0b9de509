"""Helpers that stand in for the outside world, for this project's tests and for operators who try things out."""
