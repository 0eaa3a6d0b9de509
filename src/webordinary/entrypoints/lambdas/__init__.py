"""The lambdas: each translates an event of AWS and calls the function that the embedded engine calls.

None of them needs Powertools' idempotency. A step may run twice by its own promise, a mail is noted and its
execution named by its content, a dead letter is kept once per reason: a table of seen events would add two calls
to each, and say nothing that these records do not say already.
"""
