"""Clustering with noisy sums."""
