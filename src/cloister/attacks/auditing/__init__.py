"""Audits of a claim of differential privacy: exact probabilities, or many sampled outputs."""
