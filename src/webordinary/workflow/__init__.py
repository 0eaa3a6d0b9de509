"""From a stored mail to its answer: the workflow file and one function per step it calls."""
