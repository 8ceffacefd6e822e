"""The version of cloister."""

__version__ = "0.1.0"
