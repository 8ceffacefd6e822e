"""Attacks on local reports: what a collector who keeps single reports learns about their senders."""
