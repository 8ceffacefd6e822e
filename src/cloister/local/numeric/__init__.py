"""Protocols for numbers within public bounds: their mean, several means at once, and their distribution."""
