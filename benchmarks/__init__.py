"""Benchmarks of cloister beside the peers that a user would pick instead."""
