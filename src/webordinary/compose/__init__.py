"""The composition root: the only place where ports meet adapters. Import the part that you need."""
