"""Noise and selection with exact guarantees."""
