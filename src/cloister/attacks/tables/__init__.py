"""Attacks on released tables: who is who in them, what is true of whom, and who is in them at all."""
