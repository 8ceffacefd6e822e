"""Scaling and binning under budget."""
