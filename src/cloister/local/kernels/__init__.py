"""Exact array work that the local protocols stand on: integers in, integers out, no loop over people."""
