"""The history of the hub's tables."""
