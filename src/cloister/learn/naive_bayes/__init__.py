"""Naive Bayes from noisy counts and moments."""
