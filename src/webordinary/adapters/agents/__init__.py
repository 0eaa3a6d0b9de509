"""Agents from outside, started in a sandbox and talked to over their standard input and output."""
