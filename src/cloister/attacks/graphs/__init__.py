"""Attacks on released graphs and trajectories: who is recognized by connections, or by a few places and times."""
