"""Attacks on releases in two tables: who has which sensitive value, learned over all groups at once."""
