"""Attacks on trained models: who was in the training data, what it says about people, and whether it is copied."""
