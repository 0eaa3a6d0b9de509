"""A durable interpreter of Amazon States Language. It imports nothing else of ours."""
