"""Agents from outside, started in a jail and talked to over their standard input and output."""
