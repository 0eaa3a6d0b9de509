"""Queues, claims, fences, interrupts, reconciler: who works for whom."""
