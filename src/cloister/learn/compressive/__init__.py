"""Compressive privacy: projections that keep a task learnable and make another one harder. No guarantee."""
