"""Attacks on query interfaces: what an analyst can learn about one person from answers about many."""
