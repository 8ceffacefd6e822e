"""Protocols that estimate how many people have each value of a public domain."""
