"""Query languages: how a state reads its input and shapes its output. One strategy object each."""
