"""Algorithms that show how to write one: each folder is an artifact, unpacked."""
