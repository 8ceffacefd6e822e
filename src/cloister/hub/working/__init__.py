"""Processes that do the work in the queue, and the one that keeps them running."""
