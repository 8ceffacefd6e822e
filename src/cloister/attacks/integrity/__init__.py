"""Attacks that mislead models: poisoned training data and changed inputs. About robustness, not about privacy."""
