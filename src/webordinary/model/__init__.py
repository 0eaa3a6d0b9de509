"""The shared words: values and rules, no I/O."""
