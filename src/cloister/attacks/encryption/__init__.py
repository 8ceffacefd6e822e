"""Attacks on encrypted columns: what equality, order and sizes give away without any key."""
